"""One scenario file read with care: bytes to plain data that remembers on which line each value stands."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.resolver import Resolver

from lab.records import Record
from lab.text import printable

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_NODES = 20_000
"""A scenario has a few dozen nodes; the bounds keep a hostile file from costing minutes or the interpreter's stack."""

Place = tuple[str | int, ...]
"""Where a value stands: keys and list positions from the root."""

_STRING = "tag:yaml.org,2002:str"
_PLAIN = {_STRING, *(f"tag:yaml.org,2002:{name}" for name in ("int", "bool", "null"))}


class Problem(Record):
    """One thing that is wrong with a scenario library.

    Attributes:
        file: The file as the caller named it; free of control characters, like message and mend.
        line: Line in the file, from 1.
        message: One line that names what is wrong.
        mend: One line that says what to do.
        blocking: False for a matter of the library's design (balance of languages) that spoils no single scenario.
    """

    file: str
    line: int
    message: str
    mend: str = ""
    blocking: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" + (f" — {self.mend}" if self.mend else "")


class BrokenSource(Exception):
    """A file that gives no scenario; holds the problems found in it."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


@dataclass
class Source:
    """A scenario file's text, its plain data and where each value stands.

    Attributes:
        path: The file.
        text: The whole text.
        data: What YAML says: dicts, lists, strings, integers, booleans and nulls only.
        offsets: Character offset of each value, or of its key in a mapping.
    """

    path: Path
    text: str = ""
    data: Any = None
    offsets: dict[Place, int] = field(default_factory=dict)

    def line_at(self, offset: int) -> int:
        """Line number, from 1, of a character offset."""
        return self.text.count("\n", 0, offset) + 1

    def line(self, place: Sequence[str | int], needle: str = "") -> int:
        """Line of a value, of its nearest parent if it is missing, or of the needle if that stands in it as written."""
        steps = tuple(place)
        while steps and steps not in self.offsets:
            steps = steps[:-1]
        start = self.offsets.get(steps, 0)
        found = self.text.find(needle, start) if needle else -1
        return self.line_at(max(found, start))

    def problem(self, line: int, message: str, mend: str, *, blocking: bool = True) -> Problem:
        """A problem of this file, with what came from the file made fit to print."""
        return Problem(
            file=printable(str(self.path), 400),
            line=line,
            message=printable(message, 400),
            mend=printable(mend, 400),
            blocking=blocking,
        )


class _Refused(Exception):
    """Valid YAML of a kind that no scenario needs."""

    def __init__(self, fault: str, offset: int) -> None:
        super().__init__(fault)
        self.offset = offset


class _Loader(Composer, CParser, SafeConstructor, Resolver):
    """Nodes made in Python from the C library's events, refusing aliases and excess.

    The events come from a state machine, so their reader cannot overrun its stack on deep input as the C library's own
    maker of nodes can; and they come far faster than those of the pure parser.
    """

    def __init__(self, text: str, max_nodes: int) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._max_nodes = max_nodes
        self._depth = 0
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        self._depth += 1
        self._nodes += 1
        fault = ""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            fault = "anchors and aliases (& and *) are not allowed"
        elif self._depth > MAX_DEPTH:
            fault = f"nested deeper than {MAX_DEPTH} levels"
        elif self._nodes > self._max_nodes:
            fault = f"more than {self._max_nodes} values in one file"
        if fault:
            raise _Refused(fault, event.start_mark.index if event and event.start_mark else 0)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def read_source(path: Path, max_nodes: int = MAX_NODES) -> Source:
    """Reads one file without trusting it.

    Args:
        path: The file.
        max_nodes: Values that it may hold.

    Raises:
        BrokenSource: Naming file, line and mend, for anything that is not one YAML document of plain values.
    """
    source = Source(path)
    source.text = _text(source)
    loader = None
    try:
        loader = _Loader(source.text, max_nodes)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            fault = "the file holds no mapping of fields" if root else "the file is empty"
            _fail(source, 1, fault, "write one scenario")
        source.data = _plain(source, loader, root, ())
    except yaml.reader.ReaderError as error:
        line = source.line_at(error.position)
        _fail(source, line, f"raw control character U+{int(error.character):04X}", 'write it as an escape in "quotes"')
    except _Refused as error:
        _fail(source, source.line_at(error.offset), str(error), "write it out plainly")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = source.line_at(mark.index) if mark else 1
        said = ", ".join(part for part in (error.context, error.problem) if part)
        _fail(source, line, f"not valid YAML: {said}", "mend the YAML at this line")
    finally:
        if loader is not None:
            loader.dispose()
    return source


def _fail(source: Source, line: int, message: str, mend: str) -> NoReturn:
    raise BrokenSource(source.problem(line, message, mend))


def _text(source: Source) -> str:
    """The file's text: a regular file, not too large, UTF-8, no NUL."""
    raw = b""
    try:
        # Asked before opening: a named pipe would block for ever.
        if not stat.S_ISREG(source.path.stat().st_mode):
            _fail(source, 1, "not a regular file", "put a YAML file in its place")
        with source.path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        _fail(source, 1, f"cannot be read: {error.strerror or error}", "check that it exists and its permissions")
    except ValueError as error:  # a NUL in the name itself
        _fail(source, 1, f"cannot be read: {error}", "check the name")
    if len(raw) > MAX_BYTES:
        _fail(source, 1, f"larger than {MAX_BYTES // 1024**2} MiB", "shorten the texts")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _fail(source, raw.count(b"\n", 0, error.start) + 1, "not UTF-8", "save the file as UTF-8")
    nul = text.find("\0")
    if nul >= 0:
        _fail(source, text.count("\n", 0, nul) + 1, "holds a NUL byte", 'write it as "\\0" in double quotes')
    # Line ends as an editor counts them; offsets are taken over this text.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _plain(source: Source, loader: _Loader, node: yaml.Node, place: Place) -> Any:
    """The node as plain data; notes the offset of each value on the way."""
    source.offsets.setdefault(place, node.start_mark.index)
    line = source.line_at(node.start_mark.index) if place else 1
    if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
        return _mapping(source, loader, node, place)
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        return [_plain(source, loader, item, (*place, number)) for number, item in enumerate(node.value)]
    if not isinstance(node, yaml.ScalarNode) or node.tag not in _PLAIN:
        kind = node.tag.rsplit(":", 1)[-1]
        _fail(source, line, f"{_dotted(place)} is read by YAML as {kind}", "put it in quotes if text is meant")
    value: Any = None
    try:
        value = loader.construct_object(node)
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        mend = "write the character itself or \\U0001F600"
        _fail(source, line, f"{_dotted(place)} holds half a surrogate pair", mend)
    except ValueError as error:
        _fail(source, line, f"{_dotted(place)} is not a usable value: {error}", "put it in quotes if text is meant")
    return value


def _mapping(source: Source, loader: _Loader, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in node.value:
        line = source.line_at(key.start_mark.index)
        if not isinstance(key, yaml.ScalarNode) or key.tag != _STRING:
            _fail(source, line, f"a key of {_dotted(place)} is not a plain word", "use the field names of the schema")
        if key.value in data:
            first = source.line((*place, key.value))
            _fail(source, line, f"duplicate key {key.value}, first on line {first}", "keep one of the two")
        source.offsets[(*place, key.value)] = key.start_mark.index
        data[key.value] = _plain(source, loader, value, (*place, key.value))
    return data


def _dotted(place: Place) -> str:
    return ".".join(map(str, place)) or "the document"
