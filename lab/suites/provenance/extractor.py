"""The reference extractor: patterns written on the development part only; rules of form, no model and no list of names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.records import digest
from lab.retrieval.testset import Author
from lab.suites.provenance.data import Labels, Message, Person, Quote, Role, Voice
from lab.suites.provenance.likes import find_holders
from lab.suites.provenance.names import NAME, Named, find_names
from lab.suites.provenance.scoring import same_name, same_span
from lab.suites.provenance.speech import find_quotes, spans

_USER, _AGENT, _UNKNOWN = (Voice(kind=kind) for kind in (Author.USER, Author.AGENT, Author.UNKNOWN))
_SENDERS = {"user": (_USER, _AGENT), "assistant": (_AGENT, _USER), "tool": (_UNKNOWN, _UNKNOWN)}

_TIME = r"\[?(?:\d{1,2}[/.]\d{1,2}(?:[/.]\d{2,4})?,? )?\d{1,2}[:h]\d{2}(?::\d{2})?(?: ?[ap]m)?\]?"
_LOG = re.compile(
    rf"^(?:{_TIME} ?-? ?)?(?:<(?P<nick>[^<>\n]{{1,30}})>:?|(?P<label>[^\W\d_][\w .'-]{{0,30}}?)(?: ?[(\[]?{_TIME}[)\]]?)?:) ?(?P<said>\S.*)$"
)
_HEADER = re.compile(r"^(?:from|to|cc|date|sent|subject|de|para|data|enviado|assunto|re|fwd|enc)$", re.IGNORECASE)
_LABELS = {
    **dict.fromkeys(("me", "eu", "user", "usuário", "usuária", "i"), _USER),
    **dict.fromkeys(("assistant", "assistente", "agent", "agente", "bot", "ai", "ia"), _AGENT),
}
_FROM = re.compile(rf"(?m)^>? ?(?:From|De|FROM|DE): *(?P<name>{NAME})")
_TO = re.compile(rf"(?m)^>? ?(?:To|Para|Cc|TO|PARA): *(?P<name>{NAME})")
_HANDED = re.compile(
    r"^\W*(?:fyi|fwd?|enc|encaminh\w+|segue\w*|see below|veja (?:abaixo|só)|abaixo|forwarded|repassando|mensagem encaminhada"
    r"|forwarding|passing (?:this )?on|pasting|colando|below)\b",
    re.IGNORECASE,
)
_HANDED_FROM = re.compile(
    rf"^[^\n]*\b(?:from|d[aeo]|o que [oa]|what|by|por) (?P<name>{NAME})(?: (?:sent|wrote|mandou|escreveu|enviou|disse))?\s*:?\s*\n"
)
_BYLINE = re.compile(rf"(?m)^(?:By|Por|Autora?:|Author:) (?P<name>{NAME})\s*$")
_SIGNED = re.compile(rf"\n>? ?(?:(?P<dash>--?|—|–) ?)?(?P<name>{NAME})\s*$")
_SIGN_OFF = re.compile(
    r"(?:regards|sincerely|cheers|thanks|thank you|yours|love|best|atenciosamente|abraços?|att|obrigad[oa]|grat[oa]|beijos?|cordialmente)[ \w]*,?\s*$",
    re.IGNORECASE,
)
_PASTED = re.compile(r"^\W*(?:pasted|colado|colei|copiado|copied)\b", re.IGNORECASE)
_NOTICE = re.compile(
    r"^(?:notice|message|note|aviso|recado|comunicado|mensagem) (?:from|d[aeo]) (?:the )?(?P<who>[^:\n]{2,40}):",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"^\W*(?:sub-?agent\w*|relatório do subagente|report from (?:the )?sub-?agent|subagente)\b", re.IGNORECASE
)
_SELF = re.compile(
    rf"(?i:\b(?:this is|my name is|my name's|i am|i'm|it's|call me|here is|aqui é [oa]?|meu nome é|me chamo|sou [oa]|eu sou [oa]?|me chamar? de|aqui quem fala é [oa]?|quem fala é [oa]?))\s*(?P<name>{NAME})"
)


@dataclass
class _Frame:
    """How a message is to be read: its author, who says "I" and "you" in it, and names that its form gives."""

    author: Voice
    me: Voice
    you: Voice
    uttered: list[str] = field(default_factory=list)
    addressed: list[str] = field(default_factory=list)
    lines: list[Quote] = field(default_factory=list)


class ReferenceExtractor:
    """Says who said what by patterns of form."""

    name = "reference"

    def settings(self) -> Mapping[str, Any]:
        """Digest of its patterns, so that a change after the hold-out was seen shows."""
        folder = Path(__file__).parent
        sources = ("extractor.py", "likes.py", "names.py", "speech.py", "words.py")
        return {"patterns": digest({name: (folder / name).read_text(encoding="utf-8") for name in sources})}

    def extract(self, messages: Sequence[Message]) -> list[Labels]:
        """See ``Extractor.extract``; one message knows nothing of another."""
        return [_labels(one) for one in messages]


def _labels(message: Message) -> Labels:
    frame = _frame(message)
    quotes = frame.lines or find_quotes(message.text, frame.me, frame.you)
    speakers = [q.speaker.name for q in quotes if q.speaker.kind is Author.THIRD_PARTY and q.speaker.name[:1].isupper()]
    if frame.lines:
        named = [one for quote in quotes for one in find_names(quote.text)]
        named += [Named(s, True) for q in quotes for s in speakers if q.text.lower().startswith(f"{s.lower()},")]
        speakers = [q.speaker.name for q in quotes if q.speaker.name]
    else:
        named = find_names(_without(message.text, quotes, speech=False))
        # A subject of speech may be "my boss" at the start of a sentence, which is no name.
        speakers = [s for s in speakers if any(same_name(s) == same_name(one.name) for one in named) or " " not in s]
    persons = _persons(named, [*frame.uttered, *speakers], frame.addressed)
    holders: dict[tuple[Author, str], Voice] = {}
    stretches = [(q.text, q.speaker, _other(q.speaker, frame)) for q in quotes]
    if not frame.lines:
        stretches.insert(0, (_without(message.text, quotes, speech=True), frame.me, frame.you))
    for text, me, you in stretches:
        for voice in find_holders(text, me, you):
            holders.setdefault((voice.kind, same_name(voice.name)), voice)
    return Labels(author=frame.author, persons=persons, quotes=tuple(quotes), preferences=tuple(holders.values()))


def _other(speaker: Voice, frame: _Frame) -> Voice:
    return frame.you if speaker == frame.me else _UNKNOWN


def _without(text: str, quotes: Sequence[Quote], *, speech: bool) -> str:
    """The text with blanks where something stands in marks: all of it, or what is no speech."""
    spoken = {same_span(quote.text) for quote in quotes}
    for start, end in spans(text):
        if speech or same_span(text[start:end]) not in spoken:
            text = text[:start] + "_" * (end - start) + text[end:]
    if speech:
        for quote in quotes:
            text = text.replace(quote.text, "_")
    return text


def _persons(named: Sequence[Named], uttered: Sequence[str], addressed: Sequence[str]) -> tuple[Person, ...]:
    """Each person once, in the longest form; the first role that fits counts."""
    forms: dict[str, str] = {}
    every = [*uttered, *addressed, *(one.name for one in named)]
    for name in every:
        longest = max((o for o in every if _part_of(name, o)), key=len)
        forms[name] = longest
    found: dict[str, Person] = {}
    for name in every:
        whole = forms[name]
        called = any(one.called and forms[one.name] == whole for one in named)
        role = Role.MENTIONED
        if any(forms[one] == whole for one in uttered):
            role = Role.UTTERED_BY
        elif called or any(forms[one] == whole for one in addressed):
            role = Role.ADDRESSEE
        found.setdefault(same_name(whole), Person(name=whole, role=role, vocative=called))
    return tuple(found.values())


def _part_of(name: str, other: str) -> bool:
    return f" {same_name(name)} " in f" {same_name(other)} "


def _frame(message: Message) -> _Frame:
    text, (me, you) = message.text, _SENDERS[message.sent_as]
    log = _log(text)
    if log is not None:
        return log
    one = _LOG.match(text)
    label = _LABELS.get((one["label"] or "").lower()) if one and "\n" not in text else None
    if label is not None:
        return _Frame(label, label, _AGENT if label is _USER else _USER)
    if _REPORT.search(text):
        return _Frame(_AGENT, _AGENT, _UNKNOWN)
    addressed = [match["name"] for match in _TO.finditer(text)]
    quoted = all(line.startswith(">") for line in text.splitlines() if line.strip())
    foreign = bool(_HANDED.search(text) or _PASTED.search(text) or quoted or message.sent_as == "tool")
    sent = _FROM.search(text)
    signed = _signature(text, foreign=foreign or sent is not None)
    source = sent or (foreign and (_BYLINE.search(text) or _HANDED_FROM.search(text))) or (foreign and signed)
    if source:
        author = Voice(kind=Author.THIRD_PARTY, name=source["name"])
        uttered = [author.name, *([signed["name"]] if signed else [])]
        return _Frame(author, author, _UNKNOWN, uttered, addressed)
    notice = _NOTICE.search(text)
    if notice and foreign:
        author = Voice(kind=Author.THIRD_PARTY, name=notice["who"])
        return _Frame(author, author, _UNKNOWN)
    if foreign:
        return _Frame(_UNKNOWN, _UNKNOWN, _UNKNOWN, [], addressed)
    own = _SELF.search(text) or signed
    if own and message.sent_as == "user":
        return _Frame(Voice(kind=Author.USER, name=own["name"]), me, you, [own["name"]], addressed)
    return _Frame(me, me, you, [], addressed)


def _signature(text: str, *, foreign: bool) -> re.Match[str] | None:
    match = _SIGNED.search(text)
    if match and (foreign or match["dash"] or _SIGN_OFF.search(text[: match.start()])):
        return match
    return None


def _log(text: str) -> _Frame | None:
    lines = [line for line in text.splitlines() if line.strip()]
    found = [match for match in map(_LOG.match, lines) if match and not _HEADER.match(match["label"] or "")]
    if len(found) < 2 or len(found) < len(lines) - 1:
        return None
    quotes = []
    for match in found:
        label = (match["nick"] or match["label"]).strip()
        speaker = _LABELS.get(label.lower()) or Voice(kind=Author.THIRD_PARTY, name=label)
        quotes.append(Quote(text=match["said"].strip(), speaker=speaker))
    author = Voice(kind=Author.THIRD_PARTY)
    return _Frame(author, _UNKNOWN, _UNKNOWN, [], [], quotes)
