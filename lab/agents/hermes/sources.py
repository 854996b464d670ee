"""Names of builds: a release of a package index, a local wheel, or a local source folder, of any distribution name."""

from __future__ import annotations

import re
import tomllib
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from enum import StrEnum
from pathlib import Path
from typing import Any

from lab.agents.hermes.source_folder import folder_digest
from lab.errors import InputError
from lab.records import file_digest
from lab.text import printable

DEFAULT_PRODUCT = "hermes-agent"
DEFAULT_BUILD = "0.19.0"
"""What is built where nothing is named."""

FORMS = f"0.17.0, {DEFAULT_PRODUCT}==0.17.0, a path to a .whl file, or a path to a folder with pyproject.toml"

_PRODUCT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"(\d+!)?\d+(\.\d+)*[A-Za-z0-9.+_-]*")
_WHEEL_NAME = re.compile(r"(?P<product>[\w.]+)-(?P<version>[\w.!+]+)(-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl", re.ASCII)
_SHOWN_DIGITS = 8


class SourceKind(StrEnum):
    """Where a build comes from."""

    REGISTRY = "registry"
    WHEEL = "wheel"
    FOLDER = "folder"


@dataclass(frozen=True)
class Source:
    """One build, named but not yet made.

    Attributes:
        kind: Where it comes from.
        product: Distribution name in its normal form (``hermes-agent``).
        version: Exact version; empty for a folder whose version only its own build tells.
        name: Short, stable and made of ``[A-Za-z0-9._-]`` alone: part of trial ids.
        text: The specification that names it again, with a local path made absolute.
        path: The wheel or the folder; None for a release.
        digest: SHA-256 of the local contents; empty for a release, which its lock identifies.
    """

    kind: SourceKind
    product: str
    version: str
    name: str
    text: str
    path: Path | None = None
    digest: str = ""


def parse_source(text: str) -> Source:
    """Reads one specification.

    A text with a slash, one that begins with ``.`` or ``~`` or ends in ``.whl``, and the name of a folder that is
    there, are paths; all else is a release.

    Raises:
        InputError: It is none of the forms, or what it points to is missing, damaged or no Python project.
    """
    text = text.strip()
    if not text:
        raise InputError("a build has no name", f"one of: {FORMS}")
    if "/" in text or text.startswith((".", "~")) or text.endswith(".whl") or Path(text).is_dir():
        path = _expanded(text).absolute()
        return _wheel(path) if text.endswith(".whl") else _folder(path)
    product, separator, version = text.partition("==")
    if not separator:
        product, version = DEFAULT_PRODUCT, text
    product, version = product.strip(), version.strip()
    if not _PRODUCT.fullmatch(product) or not _VERSION.fullmatch(version):
        raise InputError(f"{printable(text)!r} names no build", f"one of: {FORMS}")
    product = normal_name(product)
    return Source(SourceKind.REGISTRY, product, version, _name(product, version), f"{product}=={version}")


def split_sources(text: str) -> tuple[str, ...]:
    """Splits a comma-separated list of specifications; a path that holds a comma is given alone."""
    whole = text.strip()
    if _expanded(whole).exists():
        return (whole,)
    return tuple(part.strip() for part in text.split(",") if part.strip())


def normal_name(product: str) -> str:
    """The one spelling of a distribution name under which all its spellings are the same."""
    return re.sub(r"[-_.]+", "-", product).lower()


def wheel_identity(path: Path) -> tuple[str, str]:
    """Product and version of a wheel, by its own metadata, every byte of it checked.

    Raises:
        InputError: It is missing, damaged, no wheel, or renamed so that an installer would refuse it.
    """
    shown = printable(str(path))
    named = _WHEEL_NAME.fullmatch(path.name)
    if not named:
        raise InputError(f"{shown} has not the name of a wheel", "give it the name that its build gave it")
    try:
        with zipfile.ZipFile(path) as archive:
            if broken := archive.testzip():
                raise InputError(f"{shown} is damaged at {printable(broken)}", "build or fetch it again")
            metadata = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
            headers = HeaderParser().parsestr(archive.read(metadata).decode("utf-8", "replace"))
    except StopIteration:
        raise InputError(f"{shown} holds no metadata of a distribution", "build or fetch it again") from None
    except FileNotFoundError:
        raise InputError(f"there is no wheel {shown}", "check the path of --build") from None
    except (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
        raise InputError(f"{shown} is no readable wheel: {error}", "build or fetch it again") from error
    product, version = str(headers["Name"] or ""), str(headers["Version"] or "")
    _check(shown, product, version)
    if (normal_name(product), version.replace("-", "_")) != (normal_name(named["product"]), named["version"]):
        raise InputError(
            f"{shown} says in its metadata that it is {product} {version}", "give it the name that its build gave it"
        )
    return normal_name(product), version


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # the home of a user who is not there: the path stays as it is and is not found
        return Path(text)


def _wheel(path: Path) -> Source:
    product, version = wheel_identity(path)
    return _local(SourceKind.WHEEL, path, product, version, file_digest(path))


def _folder(path: Path) -> Source:
    shown = printable(str(path))
    if not path.is_dir():
        raise InputError(f"there is no source folder {shown}", f"a build is one of: {FORMS}")
    declaration = path / "pyproject.toml"
    try:
        table: Any = tomllib.loads(declaration.read_text(encoding="utf-8")).get("project")
    except FileNotFoundError:
        raise InputError(
            f"{shown} is not a Python project: it has no pyproject.toml", "name the folder that holds pyproject.toml"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{shown}/pyproject.toml cannot be read: {error}", "mend it") from error
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise InputError(f"{shown}/pyproject.toml has no [project] table with a name", "add one")
    product, version = table["name"], table.get("version", "")
    _check(shown, product, version or "0")
    return _local(SourceKind.FOLDER, path, normal_name(product), version, folder_digest(path))


def _check(shown: str, product: str, version: object) -> None:
    if not _PRODUCT.fullmatch(product):
        raise InputError(f"{shown} is of a distribution named {printable(product)!r}", "mend its name")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise InputError(f"{shown} is of a version {printable(str(version))!r}", "mend its version")


def _local(kind: SourceKind, path: Path, product: str, version: str, digest: str) -> Source:
    name = f"{_name(product, version)}-local-{digest[:_SHOWN_DIGITS]}"
    return Source(kind, product, version, name, str(path), path, digest)


def _name(product: str, version: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{product}-{version}" if version else product)
