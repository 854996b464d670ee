"""Packages of the ``bench`` extra: imported when they are needed, named with their mend where they are missing."""

from __future__ import annotations

import hashlib
import importlib
from importlib import resources
from types import ModuleType

from lab.errors import EnvironmentUnusable

INSTALL = "pip install -e '.[bench]' in the lab's folder, as make bench does"


def bench_package(module: str, install: str = INSTALL) -> ModuleType:
    """Imports a package of the ``bench`` extra, or of another one.

    Args:
        module: Its module.
        install: What mends its absence.

    Raises:
        EnvironmentUnusable: It is not installed, or cannot be loaded here.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise EnvironmentUnusable(f"the package {error.name or module} is not installed", install) from error
    except (ImportError, OSError) as error:
        raise EnvironmentUnusable(f"the package {module} cannot be loaded: {error}", install) from error


def shipped_digest(module: str, *parts: str) -> str:
    """Hex SHA-256 of a data file that an installed package ships.

    Raises:
        EnvironmentUnusable: The file is not there.
    """
    resource = resources.files(module).joinpath(*parts)
    try:
        with resource.open("rb") as stream:
            # A resource need not be a plain file, so it is read piece by piece instead of by hashlib.file_digest.
            found = hashlib.sha256()
            while piece := stream.read(1 << 20):
                found.update(piece)
    except OSError as error:
        name = "/".join(parts)
        raise EnvironmentUnusable(f"{module} does not ship {name}: {error}", f"install it again: {INSTALL}") from error
    return found.hexdigest()
