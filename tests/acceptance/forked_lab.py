"""Forks a ``lab`` for each command from one process that has imported it: importing alone costs a second of CPU.

Reads one command a line from standard input, as JSON: ``arguments``, ``cwd``, ``environment``, and the files ``out``
and ``err`` for what it writes. Answers with a line of its process id, and with a line of its exit code when it has
ended. All have one seed of hashes: whether two processes agree to the byte is tested with the installed command.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from lab.cli.app import main


def become(command: dict[str, Any]) -> None:
    """Makes this process what the installed command would have been."""
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["environment"])
    files = (os.devnull, os.O_RDONLY), (command["out"], os.O_WRONLY), (command["err"], os.O_WRONLY)
    for descriptor, (path, flags) in enumerate(files):
        opened = os.open(path, flags | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = ["lab", *command["arguments"]]
    main()


def serve() -> None:
    """Runs one command after the other until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answers.close()
            become(json.loads(line))
        print(child, file=answers, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


if __name__ == "__main__":
    serve()
