"""The files from which an environment is built, where they are found, and the digest that identifies the result."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lab
from lab.agents.hermes.local_wheel import ensure_wheel
from lab.agents.hermes.locks import committed_locks, read_lock, resolve_lock
from lab.agents.hermes.sources import Source, SourceKind
from lab.agents.hermes.store import Store
from lab.errors import InputError
from lab.records import digest, file_digest

CONTAINERS_VARIABLE = "LAB_CONTAINERS"
"""Environment variable that names another ``containers`` folder."""


@dataclass(frozen=True)
class Recipe:
    """All files that decide what is baked in.

    Attributes:
        product: Distribution name of the agent.
        version: Its version, as the lock pins it.
        dockerfile: The image recipe.
        install: The installation script, used by every backend.
        lock: Pinned requirements with hashes, of the agent itself too: what tells one build from another.
        driver: The programs that run inside, by file name.
        wheel: The agent's own wheel where it does not come from the package index.
        lock_is_committed: Whether the lock came with the lab or was resolved on this machine.
    """

    product: str
    version: str
    dockerfile: Path
    install: Path
    lock: Path
    driver: dict[str, Path]
    wheel: Path | None = None
    lock_is_committed: bool = True

    def digest(self, base: str, uid: int) -> str:
        """Identity of the environment over a base: equal digests mean equal contents, on every backend.

        Args:
            base: Identity of the base system.
            uid: User id that the agent is given inside.
        """
        parts = {"dockerfile": file_digest(self.dockerfile), "driver": self.driver_digest()}
        return digest({"system": self.system_digest(base, uid), **parts})

    def system_digest(self, base: str, uid: int) -> str:
        """Identity of base and installation alone, without driver: what a root file system is kept under."""
        return digest(
            {
                "base": base,
                "uid": uid,
                "version": self.version,
                "lock": file_digest(self.lock),
                "install": file_digest(self.install),
            }
        )

    def driver_digest(self) -> str:
        """Identity of the driver files: names and contents."""
        return digest({name: file_digest(path) for name, path in self.driver.items()})


def find_recipe(source: Source, store: Store, progress: Callable[[str], None]) -> Recipe:
    """Finds the files for one build; makes its wheel and its lock where it is local or has no committed lock.

    Raises:
        InputError: The ``containers`` folder, or a file in it, is missing, or the build does not exist or is broken.
        EnvironmentUnusable: The package index cannot be reached.
    """
    containers = containers_directory()
    here = containers / "hermes"
    known = committed_locks(here)
    wheel = None if source.kind is SourceKind.REGISTRY else ensure_wheel(store, source, progress)
    lock = known.get(source.name) if wheel is None else None
    committed = lock is not None
    lock = lock or resolve_lock(store, source, wheel, known, progress)
    version = read_lock(lock).get(source.product)
    if version is None:
        raise InputError(f"{lock} does not pin {source.product} itself", "make the lock again")
    files = [*sorted(here.glob("*.py")), *sorted(here.glob("*.pem")), containers / "probe.py"]
    driver = {path.name: path for path in files}
    recipe = Recipe(source.product, version, here / "Dockerfile", here / "install.sh", lock, driver, wheel, committed)
    for path in (recipe.dockerfile, recipe.install, *driver.values()):
        if not path.is_file():
            raise InputError(f"{path} is missing", f"use a complete checkout or set {CONTAINERS_VARIABLE}")
    return recipe


def containers_directory() -> Path:
    """The ``containers`` folder beside the package, or the one that ``LAB_CONTAINERS`` names.

    Raises:
        InputError: It is not there.
    """
    explicit = os.environ.get(CONTAINERS_VARIABLE)
    directory = Path(explicit) if explicit else Path(lab.__file__).resolve().parent.parent / "containers"
    if not (directory / "hermes").is_dir():
        raise InputError(
            f"the folder {directory} with the agents' recipes is not there",
            f"run from a checkout or set {CONTAINERS_VARIABLE}",
        )
    return directory


def ensure_driver(store: Store, recipe: Recipe) -> Path:
    """A copy of the driver files with plain modes, kept under its digest: an edit never reaches a running lab."""
    key = recipe.driver_digest()[:32]
    directory = store.path("driver", key)
    if not directory.is_dir():
        with store.lock("driver"):
            if not directory.is_dir():
                with store.making("driver", key) as made:
                    copy_driver(recipe, made)
    return directory


def copy_driver(recipe: Recipe, target: Path) -> None:
    """Copies the driver files with mode 0644 whatever the umask of the checkout was."""
    for name, path in recipe.driver.items():
        copy = target / name
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o644)
