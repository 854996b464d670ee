"""The wheel of a local source: the user's own file, or one built from a copy of the user's folder; kept by digest."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from lab.agents.hermes.pip_command import PipFailed, call_pip
from lab.agents.hermes.source_folder import copy_folder, folder_digest
from lab.agents.hermes.sources import Source, SourceKind, wheel_identity
from lab.agents.hermes.store import Store
from lab.errors import InputError
from lab.records import file_digest

# Time stamps inside the wheel: without this every build of the same folder would be another build.
_SOURCE_DATE_EPOCH = "1735689600"


def ensure_wheel(store: Store, source: Source, progress: Callable[[str], None]) -> Path:
    """The wheel of a local source, alone in a directory of the cache.

    It is kept under the digest of what it was made from, so the same sources give the same bytes as long as the cache
    is kept, whatever their build tools do.

    Raises:
        InputError: The source changed while it was read, or its own build fails.
        EnvironmentUnusable: The cache cannot be written, or this Python has no pip.
    """
    key = f"{source.kind.value}-{source.digest[:32]}"
    directory = store.path("built", key)
    if not directory.is_dir():
        with store.lock("built"):
            if not directory.is_dir():
                with store.making("built", key) as made:
                    _make(store, source, made, progress)
    (wheel,) = directory.glob("*.whl")
    return wheel


def _make(store: Store, source: Source, target: Path, progress: Callable[[str], None]) -> None:
    if source.path is None:
        raise TypeError("a release has no local wheel")
    if source.kind is SourceKind.WHEEL:
        shutil.copyfile(source.path, target / source.path.name)
        if file_digest(target / source.path.name) != source.digest:
            raise InputError(f"{source.path} changed while it was read", "run the command again")
        return
    progress(f"building a wheel from {source.path}")
    with store.scratch("source") as scratch:
        copy = scratch / "source"
        copy.mkdir()
        copy_folder(source.path, copy)
        if folder_digest(copy) != source.digest:
            raise InputError(f"{source.path} changed while it was read", "run the command again")
        try:
            call_pip(
                "wheel", ["--no-deps", "--wheel-dir", str(target), str(copy)], {"SOURCE_DATE_EPOCH": _SOURCE_DATE_EPOCH}
            )
        except PipFailed as error:
            raise InputError(
                f"the wheel of {source.path} could not be built: {error.reason}",
                f"try it on a copy: python3 -m pip wheel --no-deps {shlex.quote(str(source.path))}",
            ) from error
    made = list(target.glob("*.whl"))
    if len(made) != 1 or wheel_identity(made[0])[0] != source.product:
        names = ", ".join(p.name for p in made) or "no wheel"
        raise InputError(
            f"the build of {source.path} made {names}, not one wheel of {source.product}", "mend its build"
        )
