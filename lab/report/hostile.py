"""Hostile text made inert and honest for HTML, Markdown and CSV: what hides is shown, nothing is interpreted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from markupsafe import Markup, escape

from lab.report.trial_model import Excerpt

# Marks that carry no visible ink although their category does not say so: variation selectors, fillers,
# joiners.
_INKLESS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = re.compile(r"[\n\t\x20-\x7e]+")
_KEPT = frozenset("\n\t")
# Names and not the pictures of U+2400, which many fonts lack: a box would hide what it should show.
_NAMES = [
    "NUL",
    "SOH",
    "STX",
    "ETX",
    "EOT",
    "ENQ",
    "ACK",
    "BEL",
    "BS",
    "HT",
    "LF",
    "VT",
    "FF",
    "CR",
    "SO",
    "SI",
    "DLE",
    "DC1",
    "DC2",
    "DC3",
    "DC4",
    "NAK",
    "SYN",
    "ETB",
    "CAN",
    "EM",
    "SUB",
    "ESC",
    "FS",
    "GS",
    "RS",
    "US",
]
_ESCAPED = tuple((char, len(escape(char)) - 1) for char in "&<>'\"")
_MAX_MARKS = 40
_HEAVIEST = len("⟦U+10FFFF⟧".encode())
"""Bytes in HTML of the heaviest character."""

_MAX_COMBINING = 4
"""Combining marks in a row that are kept: writing systems need few, a tower of them paints over other lines."""


def _shown(char: str) -> str:
    if char in _KEPT or (char.isascii() and char.isprintable()):
        return char
    code = ord(char)
    if code < 0x20:
        return f"⟦{_NAMES[code]}⟧"
    if code == 0x7F:
        return "⟦DEL⟧"
    if unicodedata.category(char) in _HIDDEN or _INKLESS.match(char):
        return f"⟦U+{code:04X}⟧"
    return char


def visible(text: str) -> str:
    """Makes control, format, bidirectional and inkless characters visible: ``⟦NUL⟧``, ``⟦U+202E⟧``.

    Line breaks and tabs stay. Carriage returns are shown: a terminal or an editor must not write over a line.
    It does not escape for any format.
    """
    if _PLAIN.fullmatch(text):
        return text
    out: list[str] = []
    done = 0
    # Nearly all text is plain: it is taken in whole pieces, and only what stands between them is looked at closely.
    for plain in _PLAIN.finditer(text):
        out += [_closely(text[done : plain.start()]), plain.group()]
        done = plain.end()
    return "".join([*out, _closely(text[done:])])


def _closely(text: str) -> str:
    out: list[str] = []
    stacked = 0
    for char in text:
        stacked = stacked + 1 if unicodedata.combining(char) else 0
        out.append(f"⟦U+{ord(char):04X}⟧" if stacked > _MAX_COMBINING else _shown(char))
    return "".join(out)


@lru_cache(maxsize=256)
def _patterns(needles: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """What to look for, the longest first: each in lower case where it is ASCII, and as a pattern."""
    wanted = sorted({n for n in needles if n.strip()}, key=len, reverse=True)
    return tuple((n.lower() if n.isascii() else "", re.compile(re.escape(n), re.IGNORECASE)) for n in wanted)


def marks_in(text: str, needles: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """Where the needles stand in a text, ignoring case; overlaps are merged."""
    found: list[tuple[int, int]] = []
    lower = text.lower() if text.isascii() else ""
    for needle, pattern in _patterns(tuple(needles)):
        if lower and needle and needle not in lower:
            continue  # says the same as the search below, many times faster
        found += [m.span() for m in pattern.finditer(text)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged[:_MAX_MARKS])


def weight(text: str) -> int:
    """Bytes that a text takes in HTML, made visible and escaped."""
    if _PLAIN.fullmatch(text):
        return len(text) + sum(text.count(char) * more for char, more in _ESCAPED)
    return len(escape(visible(text)).encode())


def cut(text: str, limit: int, needles: Iterable[str] = ()) -> Excerpt:
    """Takes a piece of a text, around the first needle when the whole is too long.

    Args:
        text: Hostile text of any length.
        limit: Longest piece in bytes *as it stands in HTML*, so that no kind of character can blow a report up.
        needles: What to look for and mark.
    """
    if not text:
        return _NOTHING
    wanted = tuple(needles)
    start = 0
    if len(text) > limit:
        spots = marks_in(text, wanted)
        if spots:
            start = max(0, min(spots[0][0] - limit // 3, len(text) - limit))
    piece = _fitting(text[start : start + limit], limit)  # a character takes a byte at least
    return Excerpt(text=piece, before=start, after=len(text) - start - len(piece), marks=marks_in(piece, wanted))


def _fitting(text: str, limit: int) -> str:
    """The longest beginning of a text that weighs no more than the limit; the weight grows with the length."""
    if len(text) * _HEAVIEST <= limit or weight(text) <= limit:
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if weight(text[:middle]) <= limit else (low, middle)
    return text[:low]


_NOTHING = Excerpt()


def omitted(count: int) -> str:
    """``[12,345 characters omitted]``."""
    return f"[{count:,} character{'' if count == 1 else 's'} omitted]"


@lru_cache(maxsize=128)
def html_excerpt(excerpt: Excerpt, *, diff: bool = False) -> Markup:
    """An excerpt as escaped HTML with ``<mark>`` around the content.

    Args:
        excerpt: Hostile text.
        diff: Whether lines that begin with ``+`` or ``-`` are wrapped in ``<ins>`` and ``<del>``.
    """
    # The parts are escaped one by one and joined as plain strings: joining markup would escape each of them again.
    parts: list[str] = []
    if excerpt.before:
        parts.append(f'<span class="cut">{omitted(excerpt.before)}</span> ')
    lines = excerpt.text.split("\n") if diff else [excerpt.text]
    at = 0
    for number, line in enumerate(lines):
        body = _marked(line, [(a - at, b - at) for a, b in excerpt.marks])
        if diff and line[:1] in "+-" and line[:3] not in ("+++", "---") and line:
            tag = "ins" if line[0] == "+" else "del"
            body = f"<{tag}>{body}</{tag}>"
        parts.append(f"\n{body}" if number else body)
        at += len(line) + 1
    if excerpt.after:
        parts.append(f' <span class="cut">{omitted(excerpt.after)}</span>')
    return Markup("".join(parts))  # noqa: S704 - every part that is not ours is escaped


def _marked(line: str, spans: Iterable[tuple[int, int]]) -> str:
    """A line as escaped HTML, with its marks."""
    parts: list[str] = []
    done = 0
    for start, end in spans:
        low, high = max(start, done, 0), min(end, len(line))
        if low >= high:
            continue
        parts += [escape(visible(line[done:low])), f"<mark>{escape(visible(line[low:high]))}</mark>"]
        done = high
    return "".join([*parts, escape(visible(line[done:]))])


def excerpt_text(excerpt: Excerpt) -> str:
    """An excerpt as plain text, with what was left out; still to be escaped for its format."""
    head = f"{omitted(excerpt.before)} " if excerpt.before else ""
    tail = f" {omitted(excerpt.after)}" if excerpt.after else ""
    return f"{head}{excerpt.text}{tail}"


def markdown_code(text: str, limit: int = 300) -> str:
    """Text as one Markdown code span that is safe in a table cell too.

    In a code span neither HTML nor links nor emphasis are interpreted. A pipe would end a table cell even
    there, and its escape is read differently by different renderers, so it is shown as ``│``; line ends are
    shown as ``⏎``.
    """
    piece = cut(text, limit)
    shown = visible(excerpt_text(piece)).replace("|", "│").replace("\n", "⏎").replace("\t", " ")
    if not shown.strip():
        return ""
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def csv_cell(text: str, limit: int = 1000) -> str:
    """Text for a spreadsheet: no control characters, and nothing that a spreadsheet takes for a formula.

    Source: OWASP, *CSV Injection*: cells that begin with ``= + - @``, tab or carriage return.
    """
    risky = text[:1] in ("=", "+", "-", "@", "\t", "\r")
    clean = "".join(c for c in text[: limit * 4] if unicodedata.category(c) not in ("Cc", "Cf", "Cs"))[:limit]
    # Full-width forms count too: some spreadsheets fold them; and a stripped prefix may bare a sign.
    risky = risky or unicodedata.normalize("NFKC", clean.lstrip()[:1]) in ("=", "+", "-", "@")
    return f"'{clean}" if risky else clean
