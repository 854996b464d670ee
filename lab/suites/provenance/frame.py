"""Reference extractor: the form of a message, which tells whose it is: a log, a forwarded mail, something pasted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lab.retrieval.testset import Author
from lab.suites.provenance.data import Message, Quote, Voice
from lab.suites.provenance.names import NAME
from lab.suites.provenance.speech import PERSON, Talk
from lab.suites.provenance.words import NOT_CALLED, OPENERS, either

USER, AGENT, UNKNOWN = (Voice(kind=kind) for kind in (Author.USER, Author.AGENT, Author.UNKNOWN))
_SENDERS = {"user": Talk(USER, AGENT), "assistant": Talk(AGENT, USER), "tool": Talk(UNKNOWN, UNKNOWN)}

_TIME = r"\[?(?:\d{1,2}[/.]\d{1,2}(?:[/.]\d{2,4})?,? )?\d{1,2}[:h]\d{2}(?::\d{2})?(?: ?[ap]m)?\]?"
_LINE = re.compile(
    rf"^(?:{_TIME} ?-? ?)?(?:<(?P<nick>[^<>\n]{{1,30}})>:?|(?P<label>[^\W\d_][\w .'-]{{0,30}}?)"
    rf"(?: ?[(\[]?{_TIME}[)\]]?)?:) ?(?P<said>\S.*)$"
)
_HEADER = re.compile(r"^(?:from|to|cc|date|sent|subject|de|para|data|enviado|assunto|re|fwd|enc)$", re.IGNORECASE)
_LABELS = {
    **dict.fromkeys(("me", "eu", "user", "usuário", "usuária", "i"), USER),
    **dict.fromkeys(("assistant", "assistente", "agent", "agente", "bot", "ai", "ia"), AGENT),
}
_FROM = re.compile(rf"(?m)^>? ?(?:From|De|FROM|DE): *(?P<name>{NAME})")
_TO = re.compile(rf"(?m)^>? ?(?:To|Para|Cc|TO|PARA): *(?P<name>{NAME})")
_HANDED = re.compile(
    r"^\W*(?:fyi|fwd?|enc|encaminh\w+|segue\w*|see below|veja (?:abaixo|só)|abaixo|forwarded|repassando|below|pasting"
    r"|mensagem encaminhada|forwarding|passing (?:this |it )?on|colando|from|d[aeo]|recebi (?:iss?to|d[aeo]))\b",
    re.IGNORECASE,
)
_HANDED_FROM = re.compile(
    rf"^[^\n]*\b(?:[Ff]rom|[Dd][aeo]|o que [oa]|what|[Bb]y|[Pp]or) (?P<name>{PERSON})"
    r"(?: (?:sent|wrote|mandou|escreveu|enviou|disse))?\s*:?\s*\n"
)
_FORWARDS = re.compile(
    rf"^[^\n]*?\b(?P<name>{PERSON}) [^\n]*\b(?:forward|pass (?:this |it )?on|encaminhar|repassar)\b[^\n]*:\s*\n"
)
_BYLINE = re.compile(rf"(?m)^(?:By|Por|Autora?:|Author:) (?P<name>{NAME})\s*$")
_SIGNED = re.compile(rf"(?P<line>\n>? ?|[,.] )(?:(?P<dash>--?|—|–) ?)?(?P<name>{PERSON})\s*$")
_SIGN_OFF = re.compile(
    either(
        "regards|sincerely|cheers|thanks|thank you|yours|love|best|hugs|warmly|atenciosamente|abraço|abraços|att"
        "|obrigado|obrigada|grato|grata|beijo|beijos|cordialmente|bjs|abs"
    )
    + r"[ \w]*,?\s*$",
    re.IGNORECASE,
)
_PASTED = re.compile(r"^\W*(?:pasted|colado|colei|copiado|copied)\b", re.IGNORECASE)
_NOTICE = re.compile(
    r"^(?:notice|message|note|aviso|recado|comunicado|mensagem) (?:from|d[aeo]) (?:the )?(?P<name>[^:\n]{2,40}):",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"^\W*(?:sub-?agent\w*|relatório do subagente|report from (?:the )?sub-?agent|subagente)\b", re.IGNORECASE
)
_IS = either(
    "this is|my name is|my name's|i am|i'm|call me|aqui é|aqui é a|aqui é o|meu nome é|me chamo|sou a|sou o|eu sou a"
    "|eu sou o|me chamar de|me chame de|me chama de|quem fala é a|quem fala é o|quem escreve é a|quem escreve é o"
    "|eu sou"
)
_SELF = (
    re.compile(rf"(?i:\b{_IS}) (?P<name>{PERSON})"),
    re.compile(rf"\b(?P<name>{PERSON}) (?:here|speaking|falando|aqui)\b[,.!]"),
)


@dataclass(frozen=True)
class Frame:
    """How a message is to be read.

    Attributes:
        author: Whose it is.
        talk: Who says "I" and "you" in it.
        uttered: Names by which its author is named.
        addressed: Names in headers to whom it goes.
        lines: The lines of a log; empty where it is none.
    """

    author: Voice
    talk: Talk
    uttered: tuple[str, ...] = ()
    addressed: tuple[str, ...] = ()
    lines: tuple[Quote, ...] = field(default=())


def frame_of(message: Message) -> Frame:
    """Reads the form of a message."""
    text = message.text
    lines = _log(text)
    if lines:
        return Frame(Voice(kind=Author.THIRD_PARTY), Talk(UNKNOWN, UNKNOWN), lines=lines)
    return _labelled(text) or _mail(message) or _plain(message)


def _labelled(text: str) -> Frame | None:
    """A message that says at its head whether user or agent speaks."""
    one = _LINE.match(text)
    label = _LABELS.get((one["label"] or "").lower()) if one and "\n" not in text else None
    if _REPORT.search(text):
        label = AGENT
    return Frame(label, Talk(label, AGENT if label is USER else USER)) if label else None


def _mail(message: Message) -> Frame | None:
    """Somebody else's text: with a header, a by-line or a signature, or without anything that names its author."""
    text = message.text
    names = (match["name"] for match in _TO.finditer(text))
    addressed = tuple(name for name in names if name.lower() not in OPENERS | NOT_CALLED)
    quoted = all(line.startswith(">") for line in text.splitlines() if line.strip())
    sent = _FROM.search(text)
    foreign = quoted or message.sent_as == "tool" or any(form.search(text) for form in (_HANDED, _PASTED, _FORWARDS))
    if not (foreign or sent):
        return None
    signed = _SIGNED.search(text)
    signed = signed if signed and signed["line"].startswith("\n") else None
    source = sent or _BYLINE.search(text) or _HANDED_FROM.search(text) or _FORWARDS.search(text) or signed
    if source is not None:
        author = Voice(kind=Author.THIRD_PARTY, name=source["name"])
        uttered = (author.name, *((signed["name"],) if signed else ()))
        return Frame(author, Talk(author, UNKNOWN), uttered, addressed)
    notice = _NOTICE.search(text)
    author = Voice(kind=Author.THIRD_PARTY, name=notice["name"]) if notice else UNKNOWN
    # A hand-over without a name and without a second line hands nothing over.
    if message.sent_as == "user" and not (quoted or _PASTED.search(text)) and "\n" not in text:
        return None
    return Frame(author, Talk(author, UNKNOWN), (), addressed)


def _plain(message: Message) -> Frame:
    """The sender's own words, with their name where they give it."""
    talk = _SENDERS[message.sent_as]
    if message.sent_as != "user":
        return Frame(talk.me, talk)
    own = next(filter(None, (form.search(message.text) for form in _SELF)), None)
    signed = _SIGNED.search(message.text)
    if own is None and signed and (signed["dash"] or _SIGN_OFF.search(message.text[: signed.start()])):
        own = signed
    if own is None or own["name"].split(" ")[0].lower() in OPENERS:
        return Frame(talk.me, talk)
    return Frame(Voice(kind=Author.USER, name=own["name"]), talk, (own["name"],))


def _log(text: str) -> tuple[Quote, ...]:
    """The lines of a chat log, of which all but one have a label; empty where it is none."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = [match for match in map(_LINE.match, lines) if match and not _HEADER.match(match["label"] or "")]
    if len(found) < max(2, len(lines) - 1):
        return ()
    quotes = []
    for match in found:
        label = (match["nick"] or match["label"]).strip()
        speaker = _LABELS.get(label.lower()) or Voice(kind=Author.THIRD_PARTY, name=label)
        quotes.append(Quote(text=match["said"].strip(), speaker=speaker))
    return tuple(quotes)
