"""First process of a sandbox: starts the relay and the session, reaps orphans, ends everything when the session ends.

Standard library only. Exit codes: the session's own, or 97 when the gateway outside is gone, 98 when the relay
could not start.
"""

import os
import signal
import subprocess
import sys

UPSTREAM_GONE = 97
RELAY_FAILED = 98


def main() -> int:
    """Runs ``entry.py SOCKET PORT COMMAND…``."""
    socket_path, port, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    relay_script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py")
    relay = subprocess.Popen([sys.executable, "-I", relay_script, socket_path, port], stdout=subprocess.PIPE)
    if relay.stdout is None or relay.stdout.readline() != b"ready\n":
        print("entry: the relay did not start", file=sys.stderr)
        return RELAY_FAILED
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
            return code if code >= 0 else 128 - code
        if pid == relay.pid:
            print("entry: the gateway outside is gone", file=sys.stderr)
            session.kill()
            return UPSTREAM_GONE


if __name__ == "__main__":
    sys.exit(main())
