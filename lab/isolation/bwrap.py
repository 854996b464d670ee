"""Isolation by bubblewrap: kernel namespaces and control groups over a prepared root file system, without an engine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.errors import SandboxStartFailed
from lab.isolation import cgroup
from lab.isolation.base import BackendStatus, Exit, ReapReport, SandboxSpec
from lab.isolation.bwrap_command import (
    bwrap_command,
    filter_options,
    launch_command,
    missing_program,
    namespace_options,
)
from lab.isolation.bwrap_reap import group_identity, reap_sandboxes
from lab.isolation.creator import process_start, sandbox_labels
from lab.isolation.pump import STDERR, STDOUT, Ending, Pump, conclude
from lab.isolation.sandbox_records import SandboxRecord, records_directory, remove_record, write_record
from lab.isolation.seccomp import filter_file, filter_program

BWRAP_MEND = "apt-get install -y bubblewrap"
"""What makes bubblewrap available on a machine that has none."""

_USERNS_MEND = "run the lab as root, or allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
_PRIVILEGE_MEND = "give this container the right to mount (privileged), or use a Docker Engine"
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CHUNK = 1 << 16
_TRIAL_SECONDS = 20
_DRAIN_SECONDS = 30.0
_BACKEND_PROCESSES = 2  # bubblewrap and, as root, its warden
_NOT_EXECUTED = (126, 127)


class BwrapBackend:
    """Runs programs with bubblewrap; as root with true foreign ids, otherwise in a user namespace of the own id."""

    @property
    def name(self) -> str:
        """Always ``bwrap``."""
        return "bwrap"

    def status(self) -> BackendStatus:
        """Starts a trivial sandbox with namespaces and filter of a real one; names the mend where that fails."""
        program = shutil.which("bwrap", path=_SEARCH_PATH)
        if program is None:
            return BackendStatus(usable=False, problem="bubblewrap is not installed", mend=BWRAP_MEND)
        as_root = os.geteuid() == 0
        trial = [program, *namespace_options(as_root), "--die-with-parent", "--ro-bind", "/", "/"]
        try:
            version = _output([program, "--version"]).split()[-1]
            with _open_filter() as filter_fd:
                trial += ["--proc", "/proc", "--dev", "/dev", *filter_options(filter_fd)]
                _output([*trial, "--", "/bin/true"], *_present(filter_fd))
        except (OSError, subprocess.SubprocessError, IndexError) as error:
            return BackendStatus(
                usable=False,
                problem=f"bubblewrap cannot make a sandbox ({_complaint(error)})",
                mend=_PRIVILEGE_MEND if as_root else _USERNS_MEND,
            )
        return BackendStatus(usable=True, version=version, weaknesses=_weaknesses(as_root))

    def run(self, spec: SandboxSpec, cancel: threading.Event | None = None) -> Exit:
        """See ``Backend.run``."""
        program = _check(spec)
        directory = records_directory()
        hierarchies = cgroup.detect()
        identity = group_identity(uuid.uuid4().hex[:12])
        group = cgroup.Group.named(hierarchies, identity) if hierarchies else None
        paths = {key: str(path) for key, path in group.paths.items()} if group else {}
        record = SandboxRecord(identity, sandbox_labels(spec.labels), paths)
        # The record comes first: whatever is made after it can be found again by ``reap``.
        write_record(directory, record)
        try:
            if group:
                group.create(spec.limits, extra_processes=_BACKEND_PROCESSES if os.geteuid() == 0 else 1)
            return self._run_recorded(program, spec, cancel, group, directory, record)
        except OSError as error:
            raise SandboxStartFailed(f"the sandbox could not be made: {error}") from error
        finally:
            removed = True
            if group:
                group.kill()
                removed = group.remove()
            if removed:
                remove_record(directory, identity)

    def reap(self, include_images: bool = False) -> ReapReport:
        """Ends what dead labs left; with ``include_images`` also removes the prepared root file systems."""
        return reap_sandboxes(include_images)

    @staticmethod
    def _run_recorded(
        program: str,
        spec: SandboxSpec,
        cancel: threading.Event | None,
        group: cgroup.Group | None,
        directory: Path,
        record: SandboxRecord,
    ) -> Exit:
        pump = Pump(spec.limits.output_bytes)
        started = time.monotonic()
        sandbox = _Process(program, spec, group, pump)
        try:
            start = process_start(sandbox.pid)
            write_record(directory, dataclasses.replace(record, pid=sandbox.pid, start=start))
            ending = pump.wait(spec.limits.wall_seconds, cancel)
        except BaseException:
            sandbox.kill()
            sandbox.close()
            raise
        if ending is not Ending.ENDED:
            sandbox.kill()
        sandbox.close()
        kills = group.memory_kills() if group else 0
        status = sandbox.status
        if ending is Ending.ENDED and kills == 0 and sandbox.failed_to_start:
            raise SandboxStartFailed(
                f"bubblewrap could not start the program: {_last_line(pump.stderr)}", stderr=pump.stderr
            )
        wall_seconds = time.monotonic() - started
        return conclude(ending, pump, spec.limits, status=status, out_of_memory=kills > 0, wall_seconds=wall_seconds)


class _Process:
    """One bubblewrap process and the thread that reads its three pipes and waits for its end.

    The program is PID 1 of its namespace and bubblewrap waits for it: at that end every other process of the sandbox
    is gone.
    """

    def __init__(self, program: str, spec: SandboxSpec, group: cgroup.Group | None, pump: Pump) -> None:
        self._group = group
        self._pump = pump
        self._status_text = b""
        as_root = os.geteuid() == 0
        status_read, status_write = os.pipe()
        try:
            with _open_filter() as filter_fd:
                line = bwrap_command(program, spec, as_root=as_root, status_fd=status_write, filter_fd=filter_fd)
                entries = group.entry_files() if group else ()
                self._popen = subprocess.Popen(
                    launch_command(spec.limits, entries, line, as_root=as_root, group_less=group is None),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(status_write, *_present(filter_fd)),
                    env={"PATH": _SEARCH_PATH},
                    cwd="/",
                    start_new_session=True,  # a Ctrl-C of the terminal reaches the lab alone, which cancels in order
                )
        except BaseException:
            os.close(status_read)
            raise
        finally:
            os.close(status_write)
        self._status_read = status_read
        self._outer = os.pidfd_open(self._popen.pid)
        self._reader = threading.Thread(target=self._watch, name=f"bwrap-{self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id of bubblewrap on the host."""
        return self._popen.pid

    @property
    def status(self) -> int | None:
        """Exit status of the program as bubblewrap reported it; None when bubblewrap was killed before."""
        for line in self._status_text.splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(line).get("exit-code")
                if isinstance(value, int):
                    return value
        return None

    @property
    def failed_to_start(self) -> bool:
        """True when bubblewrap gave up by itself before the program ran, or the program could not be executed."""
        code = self._popen.returncode
        if self.status is None:
            return code is not None and code > 0
        return self.status in _NOT_EXECUTED and self._pump.stderr.startswith(b"/usr/bin/env: ")

    def kill(self) -> None:
        """Kills bubblewrap, whose end is that of the whole tree, and whatever the control group still shows."""
        self._popen.kill()
        if self._group is not None:
            self._group.kill()

    def close(self) -> None:
        """Waits for the reader and reaps bubblewrap."""
        self._reader.join(_DRAIN_SECONDS)
        self._popen.wait()
        os.close(self._outer)

    def _watch(self) -> None:
        out, err = self._popen.stdout, self._popen.stderr
        assert out is not None and err is not None  # noqa: S101 - given to Popen as pipes
        takers: dict[int, Callable[[bytes], None]] = {
            out.fileno(): lambda data: self._pump.feed(STDOUT, data),
            err.fileno(): lambda data: self._pump.feed(STDERR, data),
            self._status_read: self._take_status,
        }
        with selectors.DefaultSelector() as selector:
            for descriptor in (*takers, self._outer):
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    taker = takers.get(key.fd)
                    data = os.read(key.fd, _CHUNK) if taker else b""
                    if taker and data:
                        taker(data)
                    else:
                        selector.unregister(key.fd)
        out.close()
        err.close()
        os.close(self._status_read)
        self._popen.wait()
        self._pump.finish()

    def _take_status(self, data: bytes) -> None:
        self._status_text += data


def _check(spec: SandboxSpec) -> str:
    program = shutil.which("bwrap", path=_SEARCH_PATH)
    if program is None:
        raise SandboxStartFailed("bubblewrap is not installed", BWRAP_MEND)
    root = Path(spec.environment.reference)
    if not (root / "usr").is_dir():
        raise SandboxStartFailed(f"the root file system {root} is not there", "lab build")
    if spec.environment.driver is not None and not spec.environment.driver.is_dir():
        raise SandboxStartFailed(f"the driver directory {spec.environment.driver} is not there", "lab build")
    for mount in spec.mounts:
        if not mount.source.exists():
            raise SandboxStartFailed(f"the mount source {mount.source} is not there")
    if missing_program(spec):
        raise SandboxStartFailed(f"the program {spec.command[0]} is not in the root file system", "lab build")
    return program


def _weaknesses(as_root: bool) -> tuple[str, ...]:
    if filter_program() is None:
        found = [f"bwrap: no system-call filter for {os.uname().machine}: the whole kernel interface is open"]
    else:
        found = [
            "bwrap: the system-call filter is a deny list (namespaces, keyrings, mounts, tracing, administration);"
            " every call that it does not name goes through"
        ]
    if not as_root:
        found.append("bwrap: the program has the lab's own user id on the host")
    hierarchies = cgroup.detect()
    if hierarchies is None:
        found.append(
            "bwrap: no control group is writable; memory is bounded per process, processes per user, CPU not at all,"
            " and a memory kill is not told from a failed allocation"
        )
    elif hierarchies.missing:
        found.append(f"bwrap: no control group for {', '.join(hierarchies.missing)}")
    return tuple(found)


@contextlib.contextmanager
def _open_filter() -> Iterator[int | None]:
    """The filter of this machine as a descriptor to pass on; None where there is none."""
    program = filter_program()
    if program is None:
        yield None
        return
    descriptor = filter_file(program)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _present(descriptor: int | None) -> tuple[int, ...]:
    return () if descriptor is None else (descriptor,)


def _output(command: list[str], *descriptors: int) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TRIAL_SECONDS,
        check=True,
        pass_fds=descriptors,
    )
    return done.stdout


def _complaint(error: Exception) -> str:
    stderr = getattr(error, "stderr", None)
    return (stderr.strip().splitlines()[-1] if stderr and stderr.strip() else str(error))[:200]


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "no reason given"
