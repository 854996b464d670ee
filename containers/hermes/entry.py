"""First process of a sandbox: starts the relay and the session, reaps orphans, ends everything when the session ends.

Standard library only. Exit codes: the session's own, or 97 when the gateway outside is gone, 98 when the relay
could not start or failed.
"""

import os
import resource
import signal
import socket
import subprocess
import sys

UPSTREAM_GONE = 97
RELAY_FAILED = 98
BACKLOG = 128


def listen(port: int) -> socket.socket:
    """The relay's listening socket: bound here, so that the session need not wait until the relay is up."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    return listener


def end_of_session(code: int, relay_code: int) -> int:
    """Exit code for a session that has ended, given how the relay ended that was killed after it.

    A relay that finds no gateway drops its connections, and a session may end over that before the relay has: the
    loss of the gateway is then the cause, whichever of the two was seen to end first.
    """
    if relay_code == UPSTREAM_GONE:
        return UPSTREAM_GONE
    return code if code >= 0 else 128 - code


def main() -> int:
    """Runs ``entry.py SOCKET PORT COMMAND…``."""
    socket_path, port, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    # As under a warm start, where a message queue could outlive its session.
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))
    # A lab that was started in the background ignores Ctrl-C, and everything that it starts would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    relay_script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py")
    try:
        listener = listen(port)
    except OSError as error:
        print(f"entry: the relay cannot listen: {error}", file=sys.stderr)
        return RELAY_FAILED
    relay_command = [sys.executable, "-I", "-S", relay_script, socket_path, str(listener.fileno())]
    relay = subprocess.Popen(relay_command, pass_fds=[listener.fileno()])
    listener.close()
    session = subprocess.Popen(command)

    def forward(signum: int, _frame: object) -> None:
        session.send_signal(signum)

    signal.signal(signal.SIGTERM, forward)
    # As process 1 of its namespace this program inherits every orphan, so it waits for any child and not for two of
    # them.
    while True:
        pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        if pid == session.pid:
            relay.kill()
            return end_of_session(code, relay.wait())
        if pid == relay.pid:
            gone = code == UPSTREAM_GONE
            print(f"entry: {'the gateway outside is gone' if gone else 'the relay failed'}", file=sys.stderr)
            session.kill()
            return UPSTREAM_GONE if gone else RELAY_FAILED


if __name__ == "__main__":
    sys.exit(main())
