"""The contract of every isolation backend: one suite, run on all of them."""

from __future__ import annotations

import dataclasses
import io
import os
import select
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from lab.agents.hermes.recipe import containers_directory
from lab.errors import (
    SandboxCancelled,
    SandboxError,
    SandboxKilled,
    SandboxOutOfMemory,
    SandboxOutputLimit,
    SandboxStartFailed,
    SandboxTimeout,
)
from lab.isolation import cgroup, conformance, seccomp
from lab.isolation.base import (
    LABEL_NAMESPACE,
    MANAGED_LABEL,
    SANDBOX_HOME,
    Backend,
    Exit,
    Limits,
    Mount,
    PreparedEnvironment,
    SandboxSpec,
    sandbox_ids,
)
from lab.isolation.creator import CREATOR_BOOT_LABEL, CREATOR_PID_LABEL, CREATOR_START_LABEL, boot_id
from lab.isolation.docker import DockerBackend
from lab.isolation.sandbox_records import SandboxRecord, read_records, records_directory, write_record

Sandbox = tuple[Backend, PreparedEnvironment]
MIB = 1 << 20
ENV = {"PATH": "/opt/agent/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "LAB_ALLOWED": "yes ünï"}
FILL_MEMORY = "b = bytearray(400 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1"


def spec(environment: PreparedEnvironment, code: str, *args: str, **limits: float) -> SandboxSpec:
    given = {"wall_seconds": 60.0, **limits}
    return SandboxSpec(
        environment,
        ("/opt/agent/bin/python3", "-I", "-c", code, *args),
        env={"PATH": "/usr/bin:/bin"},
        limits=Limits(**given),  # type: ignore[arg-type]
        labels={"purpose": "test"},
        workdir="/",
    )


def run(sandbox: Sandbox, code: str, *args: str, **limits: float) -> Exit:
    backend, environment = sandbox
    return backend.run(spec(environment, code, *args, **limits))


def host_processes(marker: str) -> list[str]:
    """Command lines on the host that carry the marker, this process apart."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker in text:
                found.append(f"{entry.name} {text}")
    return found


def labelled_now(backend: Backend) -> list[dict[str, str]]:
    if isinstance(backend, DockerBackend):
        return [item.labels for item in backend.list_objects()]
    return [dict(record.labels) for record in read_records(records_directory())]


def groups_of(prefix: str) -> list[Path]:
    """Directories of all control groups of the lab whose name begins so."""
    hierarchies = cgroup.detect()
    found = cgroup.groups_in(hierarchies) if hierarchies else {}
    return [path for name, group in found.items() if name.startswith(prefix) for path in group.paths.values()]


class Running:
    """A sandbox in a thread of its own."""

    def __init__(self, backend: Backend, wanted: SandboxSpec, cancel: threading.Event | None = None) -> None:
        self.result: Exit | SandboxError | None = None
        self._call: Callable[[], Exit] = lambda: backend.run(wanted, cancel)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except SandboxError as error:
            self.result = error

    def join(self) -> Exit | SandboxError:
        self.thread.join(60)
        assert self.result is not None, "the sandbox did not end"
        return self.result


def announced(
    environment: PreparedEnvironment, home: Path, code: str, *args: str, at_start: bool = True
) -> SandboxSpec:
    """A program that writes into the named pipe ``up`` of its home when it runs, by itself or first thing."""
    pipe(home / "up")
    start = f"open('{SANDBOX_HOME}/up', 'w').write('up')\n" if at_start else ""
    wanted = spec(environment, start + code, *args)
    return dataclasses.replace(wanted, mounts=(Mount(home, SANDBOX_HOME, writable=True),))


def pipe(path: Path) -> None:
    os.mkfifo(path)
    os.chown(path, *sandbox_ids())


def until_up(home: Path) -> None:
    assert (home / "up").read_text() == "up"


# --- what a program may do -------------------------------------------------------------------------------------------


def test_probe_reaches_every_listener_outside_and_nothing_inside(sandbox: Sandbox, sandbox_home: Path) -> None:
    backend, environment = sandbox
    with conformance.Listeners() as listeners:
        control = conformance.probe_outside(containers_directory() / "probe.py", listeners.question)
        wanted = conformance.probe_spec(
            environment, sandbox_home, {**listeners.question, "name": socket.gethostname()}, ENV
        )
        report = conformance.probe_inside(backend, wanted)
    assert {key: control[key] for key in listeners.question} == dict.fromkeys(listeners.question, "ok")
    assert conformance.violations(report, ENV) == ()


def test_violations_are_seen_outside(tmp_path: Path) -> None:
    """The matched positive: the judgement finds fault with a report from the host."""
    with conformance.Listeners() as listeners:
        asked = {**listeners.question, "write": [str(tmp_path), "/opt/lab"]}
        report = conformance.probe_outside(containers_directory() / "probe.py", asked)
    found = " / ".join(conformance.violations(report, ENV))
    for text in ("reached by tcp", "reached by udp", "reached by abstract", "processes", "environment"):
        assert text in found


def test_user_namespaces_and_keyrings_are_refused_inside(sandbox: Sandbox, sandbox_home: Path) -> None:
    backend, environment = sandbox
    if open_interface := [line for line in backend.status().weaknesses if "no system-call filter" in line]:
        pytest.skip(open_interface[0])
    report = conformance.probe_inside(backend, conformance.probe_spec(environment, sandbox_home, {"calls": True}, ENV))
    assert conformance.calls_let_through(report) == ()
    assert report["seccomp"] == 2
    # The matched positive: the same calls, made by the same probe on the host.
    control = conformance.probe_outside(containers_directory() / "probe.py", {"calls": True})
    assert control["seccomp"] == 0 or conformance.host_refusals()
    if control["calls"] != dict.fromkeys(conformance.CALLS, "ok"):
        assert conformance.host_refusals(), control["calls"]
        pytest.skip(f"no positive control: {'; '.join(conformance.host_refusals())}")


def test_programs_with_threads_and_children_run_under_the_filter(sandbox: Sandbox) -> None:
    code = (
        "import asyncio, concurrent.futures as f, multiprocessing, subprocess, sys\n"
        "async def child():\n"
        "    made = await asyncio.create_subprocess_exec('/bin/sh', '-c', 'echo async', stdout=subprocess.PIPE)\n"
        "    return (await made.communicate())[0].decode().strip()\n"
        "def main():\n"
        "    with f.ThreadPoolExecutor(4) as pool: print(sum(pool.map(abs, range(-9, 0))))\n"
        "    print(asyncio.run(child()), flush=True)\n"
        "    subprocess.run([sys.executable, '-c', 'import os; print(os.getuid())'], check=True)\n"
        "    worker = multiprocessing.get_context('fork').Process(target=print, args=('forked',))\n"
        "    worker.start(); worker.join(); sys.exit(worker.exitcode)\n"
        "main()"
    )
    done = run(sandbox, code)
    assert (done.code, done.stdout.split()) == (0, [b"45", b"async", b"%d" % sandbox_ids()[0], b"forked"]), done.stderr


@pytest.mark.bwrap
def test_no_socket_leads_to_the_hypervisor(prepared: Callable[[str], Sandbox]) -> None:
    """No network namespace confines this family. Docker's profile refuses it since release 23 only."""
    if seccomp.filter_program() is None:
        pytest.skip("no system-call filter for this architecture")
    code = "import socket\ntry: socket.socket(40, socket.SOCK_STREAM)\nexcept OSError as error: print(error.errno)"
    assert run(prepared("bwrap"), code).stdout == b"1\n"


@pytest.mark.bwrap
def test_nothing_of_the_filter_stays_open_inside(prepared: Callable[[str], Sandbox]) -> None:
    done = run(prepared("bwrap"), "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))")
    assert done.stdout == b"['0', '1', '2', '3']\n"  # the last is the listing's own


def test_environment_is_the_allow_list_alone(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_SECRET_OF_THE_HOST", "leaked")
    done = run(sandbox, "import sys; sys.stdout.write(open('/proc/self/environ').read())")
    assert set(done.stdout.decode().split("\0")) - {""} == {"PATH=/usr/bin:/bin", f"HOME={SANDBOX_HOME}"}


def test_mounts(sandbox: Sandbox, tmp_path: Path) -> None:
    backend, environment = sandbox
    for name in ("shown", "kept"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, *sandbox_ids())
    (tmp_path / "shown" / "file").write_text("seen")
    code = (
        "print(open('/run/shown/file').read())\n"
        "open('/mnt/kept/file', 'w').write('kept')\n"
        "try: open('/run/shown/other', 'w')\n"
        "except OSError as error: print(error.errno)"
    )
    mounts = (Mount(tmp_path / "shown", "/run/shown"), Mount(tmp_path / "kept", "/mnt/kept", writable=True))
    done = backend.run(dataclasses.replace(spec(environment, code), mounts=mounts))
    assert done.stdout.split() == [b"seen", b"30"], done.stderr
    kept = tmp_path / "kept" / "file"
    assert kept.read_text() == "kept"
    assert kept.stat().st_uid == sandbox_ids()[0]


def test_missing_mount_source(sandbox: Sandbox, tmp_path: Path) -> None:
    backend, environment = sandbox
    wanted = dataclasses.replace(spec(environment, "pass"), mounts=(Mount(tmp_path / "none", "/mnt"),))
    with pytest.raises(SandboxStartFailed, match="none"):
        backend.run(wanted)


def test_the_agent_is_there_and_sealed(sandbox: Sandbox) -> None:
    code = "import importlib.util as u, run_agent, sys; print(u.find_spec('pip'), u.find_spec('setuptools'))"
    done = run(sandbox, code)
    assert done.stdout.split() == [b"None", b"None"], done.stderr


# --- how a program ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 127])
def test_exit_codes_and_streams(sandbox: Sandbox, code: int) -> None:
    done = run(sandbox, f"import sys; print('out'); print('err', file=sys.stderr); sys.exit({code})")
    assert (done.code, done.stdout, done.stderr) == (code, b"out\n", b"err\n")
    assert 0 < done.wall_seconds < 60


def test_a_signal_of_its_own(sandbox: Sandbox) -> None:
    assert run(sandbox, "import ctypes; ctypes.string_at(0)").code == -11


def test_output_is_binary_and_complete(sandbox: Sandbox) -> None:
    code = "import os\nfor _ in range(64): os.write(1, bytes(range(256)) * 256)"
    assert run(sandbox, code).stdout == bytes(range(256)) * 256 * 64


def test_output_limit(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxOutputLimit) as caught:
        run(sandbox, "while True: print('x' * 1000)", output_bytes=MIB)
    assert len(caught.value.stdout) + len(caught.value.stderr) == MIB


def test_output_limit_is_kept_by_a_program_that_ends_at_once(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxOutputLimit):
        run(sandbox, "print('x' * 2000)", output_bytes=1000)


def test_closed_output_is_not_the_end(sandbox: Sandbox) -> None:
    done = run(sandbox, "import os, time; os.close(1); os.close(2); time.sleep(0.5); os._exit(5)")
    assert done.code == 5
    assert done.wall_seconds > 0.5


def test_out_of_memory_of_the_first_process(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxOutOfMemory, match="128 MiB"):
        run(sandbox, FILL_MEMORY, memory_bytes=128 * MIB)


def test_out_of_memory_of_a_child_alone(sandbox: Sandbox) -> None:
    code = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {FILL_MEMORY!r}]).returncode)"
    with pytest.raises(SandboxOutOfMemory) as caught:
        run(sandbox, code, memory_bytes=128 * MIB)
    assert caught.value.stdout == b"-9\n"


def test_memory_within_the_limit(sandbox: Sandbox) -> None:
    assert run(sandbox, FILL_MEMORY, memory_bytes=600 * MIB).code == 0


def test_temporary_files_are_bounded(sandbox: Sandbox) -> None:
    done = run(sandbox, "open('/tmp/x', 'wb').write(bytes(3 << 20))", tmp_bytes=MIB)
    assert b"No space left" in done.stderr


def test_file_size_is_bounded(sandbox: Sandbox) -> None:
    done = run(sandbox, "open('/tmp/x', 'wb').write(bytes(3 << 20))", file_bytes=MIB)
    assert b"File too large" in done.stderr


def test_fork_bomb_is_bounded(sandbox: Sandbox) -> None:
    code = (
        "import os, time\nn = 0\n"
        "try:\n while True:\n  if os.fork() == 0: time.sleep(60); os._exit(0)\n  n += 1\n"
        "except BlockingIOError: print(n)"
    )
    done = run(sandbox, code, processes=24)
    assert int(done.stdout) == 23  # the first process counts too


def test_timeout_ends_every_descendant(sandbox: Sandbox, sandbox_home: Path) -> None:
    backend, environment = sandbox
    marker = f"lab-marker-{uuid.uuid4().hex}"
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"child = [sys.executable, '-c', {stubborn!r}, sys.argv[1]]\n"
        "subprocess.Popen(child)\n"
        "subprocess.Popen(child, start_new_session=True)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0: os.execv(sys.executable, child)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print('ready', flush=True)\n"
        f"open('{SANDBOX_HOME}/up', 'w').write('up')\n"
        "time.sleep(300)"
    )
    wanted = announced(environment, sandbox_home, code, marker, at_start=False)
    running = Running(backend, dataclasses.replace(wanted, limits=Limits(wall_seconds=6)))
    until_up(sandbox_home)
    seen = host_processes(marker)
    ended = running.join()
    assert isinstance(ended, SandboxTimeout)
    assert ended.stdout == b"ready\n"
    assert len(seen) >= 4, "the marker must be visible on the host while the sandbox runs"
    assert host_processes(marker) == []


def test_cancel(sandbox: Sandbox, sandbox_home: Path) -> None:
    backend, environment = sandbox
    cancel = threading.Event()
    marker = f"lab-marker-{uuid.uuid4().hex}"
    running = Running(backend, announced(environment, sandbox_home, "import time; time.sleep(300)", marker), cancel)
    until_up(sandbox_home)
    started = time.monotonic()
    cancel.set()
    assert isinstance(running.join(), SandboxCancelled)
    assert time.monotonic() - started < 10
    assert host_processes(marker) == []


def test_killed_from_outside(sandbox: Sandbox, sandbox_home: Path) -> None:
    backend, environment = sandbox
    marker = f"lab-marker-{uuid.uuid4().hex}"
    running = Running(backend, announced(environment, sandbox_home, "import time; time.sleep(300)", marker))
    until_up(sandbox_home)
    pids = [int(line.split()[0]) for line in host_processes(marker) if "-I -c" in line]
    os.kill(max(pids), 9)
    assert isinstance(running.join(), SandboxKilled)
    assert host_processes(marker) == []


@pytest.mark.bwrap
def test_killed_bubblewrap_takes_its_sandbox_along(prepared: Callable[[str], Sandbox], sandbox_home: Path) -> None:
    backend, environment = prepared("bwrap")
    marker = f"lab-marker-{uuid.uuid4().hex}"
    running = Running(backend, announced(environment, sandbox_home, "import time; time.sleep(300)", marker))
    until_up(sandbox_home)
    ours = {int(line.split()[0]) for line in host_processes(marker)}  # another worker's sandboxes are none of it
    (outer,) = (record.pid for record in read_records(records_directory()) if record.pid in ours)
    os.kill(outer, 9)
    assert isinstance(running.join(), SandboxKilled)
    assert host_processes(marker) == []


@pytest.mark.bwrap
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_lab_takes_its_sandbox_along(
    prepared: Callable[[str], Sandbox], sandbox_home: Path, number: signal.Signals
) -> None:
    backend, environment = prepared("bwrap")
    marker = f"lab-marker-{uuid.uuid4().hex}"
    wanted = announced(environment, sandbox_home, "import time; time.sleep(300)", marker)
    other_lab = (
        "from pathlib import Path, PosixPath\nfrom lab.isolation.base import *\n"
        "from lab.isolation.bwrap import BwrapBackend\n"
        f"BwrapBackend().run({wanted!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", other_lab])
    until_up(sandbox_home)
    inside = [int(line.split()[0]) for line in host_processes(marker)]
    handles = [os.pidfd_open(pid) for pid in inside]
    process.send_signal(number)
    process.wait()
    for handle in handles:
        assert select.select([handle], [], [], 10)[0], "a process of the sandbox outlived its lab"
        os.close(handle)
    assert host_processes(marker) == []
    mine = f"{process.pid}-"
    left = groups_of(mine)
    assert left or not cgroup.detect(), "nothing was left for reap to find"
    report = backend.reap()
    assert any(name.startswith(mine) for name in report.removed)
    assert not any(name.startswith(mine) for name in report.remaining)
    assert groups_of(mine) == []
    assert not any(path.exists() for path in left)


def test_missing_environment_and_program(sandbox: Sandbox, tmp_path: Path) -> None:
    backend, environment = sandbox
    nowhere = dataclasses.replace(environment, reference=str(tmp_path / "none").lower())
    if backend.name == "docker":
        nowhere = dataclasses.replace(environment, reference="agent-memory-lab/none:none")
    with pytest.raises(SandboxStartFailed, match="none") as caught:
        backend.run(spec(nowhere, "pass"))
    assert caught.value.mend == "lab build"
    with pytest.raises(SandboxStartFailed, match="nothing-here"):
        backend.run(dataclasses.replace(spec(environment, ""), command=("/usr/bin/nothing-here",)))


def test_two_at_once(sandbox: Sandbox, sandbox_home: Path) -> None:
    """Each waits for the other at a named pipe: one after the other, they would never end."""
    backend, environment = sandbox
    pipe(sandbox_home / "meet")
    mounts = (Mount(sandbox_home, SANDBOX_HOME, writable=True),)
    codes = ("open('/home/agent/meet', 'w').write('met')", "print(open('/home/agent/meet').read())")
    wanted = [dataclasses.replace(spec(environment, code), mounts=mounts) for code in codes]
    results = [running.join() for running in [Running(backend, one) for one in wanted]]
    assert [result.stdout for result in results] == [b"", b"met\n"]


# --- what is left behind ---------------------------------------------------------------------------------------------


def test_labels_while_running_and_nothing_after(sandbox: Sandbox, sandbox_home: Path) -> None:
    backend, environment = sandbox
    trial = uuid.uuid4().hex
    wanted = announced(environment, sandbox_home, "open('/home/agent/go').read()")
    pipe(sandbox_home / "go")
    running = Running(backend, dataclasses.replace(wanted, labels={"trial": trial}))
    until_up(sandbox_home)
    mine = [labels for labels in labelled_now(backend) if labels.get(f"{LABEL_NAMESPACE}.trial") == trial]
    (sandbox_home / "go").write_text("go")
    assert isinstance(running.join(), Exit)
    assert len(mine) == 1
    assert mine[0][MANAGED_LABEL] == "true"
    assert mine[0][CREATOR_PID_LABEL] == str(os.getpid())
    assert trial not in str(labelled_now(backend))
    if backend.name == "bwrap" and (hierarchies := cgroup.detect()):
        own = [name for name in cgroup.groups_in(hierarchies) if name.startswith(f"{os.getpid()}-")]
        assert own == []


@pytest.mark.docker
def test_docker_reap_removes_a_stray_and_leaves_others_alone(prepared: Callable[[str], Sandbox]) -> None:
    backend, environment = prepared("docker")
    client = docker.from_env()
    dead = {
        MANAGED_LABEL: "true",
        CREATOR_PID_LABEL: "4194303",
        CREATOR_START_LABEL: "1",
        CREATOR_BOOT_LABEL: boot_id(),
    }
    keep = ["/bin/sh", "-c", "sleep 300"]
    stray = client.containers.run(environment.reference, keep, labels=dead, network_mode="none", detach=True)
    # A container inherits its image's labels, so the unlabelled one comes from an image that the lab did not make.
    client.api.import_image_from_data(_tar_of_one_file(), repository="lab-test-foreign", tag="none")
    plain = client.containers.create("lab-test-foreign:none", command=["/file"])
    alive = {**dead, CREATOR_PID_LABEL: "1", CREATOR_START_LABEL: _start_of(1)}
    busy = client.containers.run(environment.reference, keep, labels=alive, network_mode="none", detach=True)
    try:
        report = backend.reap()
        left = {container.id for container in client.containers.list(all=True)}
        assert stray.name in report.removed
        assert stray.id not in left
        assert plain.id in left
        assert busy.id in left
        assert busy.name in report.remaining
        assert stray.name not in report.remaining
    finally:
        for container in (plain, busy):
            container.remove(force=True)
        client.images.remove("lab-test-foreign:none")
        client.close()


@pytest.mark.bwrap
def test_bwrap_reap_removes_a_stray_and_leaves_others_alone(prepared: Callable[[str], Sandbox]) -> None:
    backend, _ = prepared("bwrap")
    directory = records_directory()
    dead = {
        MANAGED_LABEL: "true",
        CREATOR_PID_LABEL: "4194303",
        CREATOR_START_LABEL: "1",
        CREATOR_BOOT_LABEL: boot_id(),
    }
    sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
    stray, reused, plain = (subprocess.Popen(sleep, start_new_session=True) for _ in range(3))
    identity = f"4194303-1-{uuid.uuid4().hex[:8]}"
    paths: dict[str, str] = {}
    grouped: list[subprocess.Popen[bytes]] = []
    hierarchies = cgroup.detect()
    if hierarchies:
        group = cgroup.Group.named(hierarchies, identity)
        group.create(Limits())
        grouped.append(subprocess.Popen(sleep, start_new_session=True))
        for path in group.entry_files():
            path.write_text(str(grouped[0].pid))
        paths = {key: str(path) for key, path in group.paths.items()}
    write_record(directory, SandboxRecord(identity, dead, paths, stray.pid, _start_of(stray.pid)))
    # The id of this record was given to another process since: its start time differs.
    write_record(directory, SandboxRecord(f"{identity}-reused", dead, {}, reused.pid, "1"))
    busy = {**dead, CREATOR_PID_LABEL: "1", CREATOR_START_LABEL: _start_of(1)}
    write_record(directory, SandboxRecord(f"{identity}-busy", busy, {}, plain.pid, _start_of(plain.pid)))
    try:
        report = backend.reap()
        assert stray.wait(10) == -9
        assert [process.wait(10) for process in grouped] == [-9] * len(grouped)
        assert reused.poll() is None
        assert plain.poll() is None
        assert {identity, f"{identity}-reused"} <= set(report.removed)
        assert f"{identity}-busy" in report.remaining
        assert not any(Path(path).exists() for path in paths.values())
    finally:
        (directory / f"{identity}-busy.json").unlink(missing_ok=True)
        for process in (stray, reused, plain, *grouped):
            process.kill()
            process.wait()


@pytest.mark.bwrap
def test_bwrap_reap_removes_root_file_systems_on_demand(
    prepared: Callable[[str], Sandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, _ = prepared("bwrap")
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    sealed = tmp_path / "rootfs" / "planted" / "usr"
    sealed.mkdir(parents=True)
    sealed.chmod(0o555)
    (tmp_path / "base").mkdir()
    assert "rootfs/planted" not in backend.reap().removed
    report = backend.reap(include_images=True)
    busy = [name for name in report.remaining if not name.startswith("rootfs/")]
    # Root file systems stay while another living lab on this machine has a sandbox running.
    assert ("rootfs/planted" in report.removed) == (not busy)
    assert sealed.exists() == bool(busy)
    assert (tmp_path / "base").exists()


def _tar_of_one_file() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("file"))
    return buffer.getvalue()


def _start_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
