"""One small file per running bubblewrap sandbox, so that what a dead lab left behind can be found and ended."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab.errors import EnvironmentUnusable


@dataclass(frozen=True)
class SandboxRecord:
    """What is known of a running sandbox.

    Attributes:
        identity: Name of record and control groups.
        labels: All labels, namespaced.
        cgroups: Directories of its control groups by controller.
        pid: Process id of bubblewrap on the host; 0 before it has started.
        start: Start time of that process, against ids given away again.
    """

    identity: str
    labels: Mapping[str, str]
    cgroups: Mapping[str, str] = field(default_factory=dict)
    pid: int = 0
    start: str = ""


def records_directory() -> Path:
    """The directory of the records of this user, made when missing.

    Raises:
        EnvironmentUnusable: Somebody else owns the directory.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        base = Path(runtime) / "agent-memory-lab"
    else:
        base = Path(tempfile.gettempdir()) / f"agent-memory-lab-{os.geteuid()}"
    directory = base / "sandboxes"
    try:
        for path in (base, directory):
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
                raise EnvironmentUnusable(f"{path} is not a directory of this user", f"rm -r {path}")
    except OSError as error:
        raise EnvironmentUnusable(f"no directory for sandbox records: {error}") from error
    return directory


def write_record(directory: Path, record: SandboxRecord) -> None:
    """Writes or replaces the record of one sandbox in one step."""
    path = directory / f"{record.identity}.json"
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(record)))
    partial.replace(path)


def remove_record(directory: Path, identity: str) -> None:
    """Removes the record of one sandbox; one that is gone already is fine."""
    for suffix in (".json", ".partial"):
        (directory / f"{identity}{suffix}").unlink(missing_ok=True)


def read_records(directory: Path) -> Iterator[SandboxRecord]:
    """All records, in order of their names; half-written ones are passed over."""
    for path in sorted(directory.glob("*.json")):
        try:
            data = json.loads(path.read_text())
            yield SandboxRecord(
                identity=path.stem,
                labels=dict(data["labels"]),
                cgroups=dict(data["cgroups"]),
                pid=int(data["pid"]),
                start=str(data["start"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
