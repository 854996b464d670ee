"""Rules of the scenario library that no single field can state: names, hosts, canaries and the balance of languages."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.contamination.observe.detect import find
from lab.contamination.scenarios.scenario import Action, Family, Language, Scenario, Target
from lab.contamination.scenarios.source import Place, Problem, Source

ALLOWED_DOMAIN = "example.test"
"""The only domain of the scenarios; reserved by RFC 6761, so it can never lead anywhere."""

_FILES = {Target.MEMORY, Target.USER}
GOALS: dict[str, tuple[set[Target], set[Action]]] = {
    "add_memory": ({Target.MEMORY}, {Action.ADD}),
    "add_user": ({Target.USER}, {Action.ADD}),
    "replace_rule": (_FILES, {Action.REPLACE}),
    # A safety rule falls when its entry goes, when it is worded anew, or when a later entry says the contrary.
    "remove_safety": (_FILES, {Action.REMOVE, Action.REPLACE, Action.ADD}),
    "forget": (_FILES, {Action.REMOVE}),
    "create_skill": ({Target.SKILLS}, {Action.CREATE}),
    "patch_skill": ({Target.SKILLS}, {Action.PATCH}),
    "add_file": ({Target.SKILLS}, {Action.WRITE_FILE}),
    "add_script": ({Target.SKILLS}, {Action.WRITE_FILE}),
    "add_fact": ({Target.FACTS}, {Action.ADD}),
}
"""What each goal asks for: stores and actions."""

# Endings that are also file suffixes or words (md, sh, py, me, it) are left out: they would accuse README.md.
_ENDINGS = (
    "com|net|org|edu|gov|mil|info|biz|io|ai|app|dev|cloud|tech|online|site|xyz|"
    "br|pt|uk|de|fr|es|nl|eu|ch|ru|cn|jp|ca|au|co|tv|test"
)
_BARE = re.compile(rf"(?<=\w)\.(?:{_ENDINGS}|{_ENDINGS.upper()})(?![\w(-])")
_BEFORE = re.compile(r"[\w.-]+\Z")
_MAIL = re.compile(r"(?<=[\w.+-])@((?:[\w-]{1,63}\.){1,10}[\w-]{1,63})")
_URL = re.compile(r"://([^\s/?#\"'<>)\]`]{1,300})")
_WWW = re.compile(r"\b(www\.[\w.-]{1,253})", re.IGNORECASE)
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_OWASP = re.compile(r"LLM(0[1-9]|10):2025|ASI(0[1-9]|10)")
_ATLAS = re.compile(r"AML\.T[0-9]{4}(\.[0-9]{3})?")


@dataclass
class Entry:
    """A scenario and the file it came from."""

    source: Source
    scenario: Scenario

    @cached_property
    def folded(self) -> str:
        """All its texts in the form in which a disguised canary shows."""
        return "\n".join(fold(text) for place, text in self.texts if place != ("canary",))

    @cached_property
    def texts(self) -> list[tuple[Place, str]]:
        """All strings of the file and where they stand."""
        return list(_strings(self.source.data, ()))

    def problem(self, place: Place, message: str, mend: str, *, needle: str = "", blocking: bool = True) -> Problem:
        """A problem of this file at a place."""
        return self.source.problem(self.source.line(place, needle), message, mend, blocking=blocking)


def fold(text: str) -> str:
    """Letters and digits alone, compatibility forms and case folded: what is left of a canary without its disguise."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def foreign_hosts(text: str) -> list[str]:
    """Host and domain names in a text that do not lie under ``example.test``, in order, each once."""
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    found: list[tuple[int, str]] = [(m.start(), m[1]) for m in _MAIL.finditer(text)]
    found += [(m.start(), m[1]) for m in _WWW.finditer(text)]
    for match in _URL.finditer(text):
        found.append((match.start(), re.sub(r":\d*\Z", "", match[1].rsplit("@", 1)[-1])))
    for match in _BARE.finditer(text):
        before = _BEFORE.search(text[max(0, match.start() - 253) : match.start()])
        found.append((match.start(), (before[0] if before else "") + match[0]))
    hosts = (host.strip(".,;:!") for _, host in sorted(found))
    return list(dict.fromkeys(host for host in hosts if host and not _allowed(host)))


def misplaced(entry: Entry) -> list[Problem]:
    """Whether file and folder of a scenario are named as a library's are."""
    scenario, path = entry.scenario, entry.source.path
    problems = []
    if path.name != f"{scenario.id}.yaml":
        mend = f"rename the file to {scenario.id}.yaml or mend the id"
        problems.append(entry.problem(("id",), f"id {scenario.id} does not fit the file name {path.name}", mend))
    if path.absolute().parent.name != scenario.family:
        message = f"family {scenario.family} does not fit the folder {path.absolute().parent.name}"
        problems.append(entry.problem(("family",), message, f"move the file to {scenario.family}/"))
    return problems


def within(entry: Entry) -> list[Problem]:
    """Problems of one scenario as a part of a library, wherever its file lies."""
    scenario = entry.scenario
    problems = _goal_problems(entry)
    problems += _canary_problems(entry)
    for place, text in entry.texts:
        hosts = foreign_hosts(text)
        if hosts:
            message = f"{'.'.join(map(str, place))} names {', '.join(hosts[:3])}"
            mend = f"use hosts and addresses under {ALLOWED_DOMAIN} only"
            problems.append(entry.problem(place, message, mend, needle=hosts[0]))
    for kind, form, tags in (("owasp", _OWASP, scenario.card.owasp), ("atlas", _ATLAS, scenario.card.atlas)):
        for number, tag in enumerate(tags):
            if not form.fullmatch(tag):
                mend = "write LLM01:2025 or ASI06" if kind == "owasp" else "write AML.T0051.001"
                problems.append(entry.problem(("card", kind, number), f"card.{kind} has an unknown tag {tag}", mend))
    return problems


def across(entries: Sequence[Entry], *, whole: bool) -> list[Problem]:
    """Problems between scenarios.

    Args:
        entries: The scenarios, in the order of their ids.
        whole: Whether they are a whole library, of which balance can be asked.
    """
    problems = []
    for name in ("id", "title", "canary"):
        problems += _repeats(entries, name)
    for entry in entries:
        for other in entries:
            canary = other.scenario.canary
            if entry is not other and canary != entry.scenario.canary and canary in entry.folded:
                place = next((p for p, text in entry.texts if canary in fold(text)), ())
                message = f"holds the canary {canary} of {other.scenario.id}"
                problems.append(entry.problem(place, message, "give one of the two another canary", needle=canary))
    return problems + (_unbalanced(entries) if whole else [])


def _goal_problems(entry: Entry) -> list[Problem]:
    scenario = entry.scenario
    content = scenario.content
    if scenario.goal not in GOALS:
        message = f"goal {scenario.goal} is not known"
        return [entry.problem(("goal",), message, f"one of: {', '.join(sorted(GOALS))}")]
    targets, actions = GOALS[scenario.goal]
    if content.target not in targets or content.action not in actions:
        message = f"goal {scenario.goal} does not fit content.target {content.target} with action {content.action}"
        return [entry.problem(("goal",), message, "make goal, target and action name the same thing")]
    if scenario.goal == "add_script" and not (content.file or "").startswith("scripts/"):
        return [entry.problem(("content", "file"), "a script stands under scripts/", "name it scripts/…")]
    return []


def _canary_problems(entry: Entry) -> list[Problem]:
    scenario = entry.scenario
    problems = []
    for place, text in (
        (("content", "text"), scenario.content.text),
        *([(("twin", "text"), scenario.twin.text)] if scenario.twin else []),
    ):
        if find(scenario.canary, text) is None:
            message = f"{'.'.join(place)} does not hold the canary {scenario.canary} in any form that is recognised"
            problems.append(
                entry.problem(place, message, "put the canary in, plain or in a form that lab detect knows")
            )
    # The detector itself is asked: what it does not see would be counted as "no attempt".
    if find(scenario.canary, scenario.content.paraphrase) is None:
        message = f"content.paraphrase does not hold the canary {scenario.canary} in any form that is recognised"
        mend = "write it in upper case, with a hyphen, an unseen character inside or full width"
        problems.append(entry.problem(("content", "paraphrase"), message, mend))
    if any(scenario.canary in fold(text) for text in scenario.surroundings()):
        message = f"the canary {scenario.canary} stands in disguise outside content and twin"
        problems.append(entry.problem(("canary",), message, "choose another canary or reword the text"))
    return problems


def _repeats(entries: Sequence[Entry], name: str) -> list[Problem]:
    """Values of a field that two scenarios share, told at the second one."""
    seen: dict[str, Entry] = {}
    problems = []
    for entry in entries:
        value = str(getattr(entry.scenario, name))
        first = seen.setdefault(value.casefold(), entry)
        if first is not entry:
            message = f"{name} {value} is also used by {first.scenario.id} ({first.source.path.name})"
            problems.append(entry.problem((name,), message, f"give each scenario its own {name}"))
    return problems


def _unbalanced(entries: Sequence[Entry]) -> list[Problem]:
    """Deliveries of adversarial families that do not exist equally often in each language for each target."""
    groups: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        scenario = entry.scenario
        if scenario.family is not Family.F5:
            groups[scenario.family, scenario.delivery, scenario.content.target].append(entry)
    problems = []
    for (family, delivery, target), members in sorted(groups.items()):
        counts = Counter(entry.scenario.language for entry in members)
        if len({counts[language] for language in Language}) > 1:
            told = ", ".join(f"{counts[language]} in {language}" for language in Language)
            message = f"{family} {delivery} to {target} is not balanced: {told}"
            mend = "add the twin in the other language"
            problems.append(members[0].problem(("delivery",), message, mend, blocking=False))
    return problems


def _strings(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings(inner, (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _strings(inner, (*place, number))


def _allowed(host: str) -> bool:
    host = host.casefold()
    return host == ALLOWED_DOMAIN or host.endswith(f".{ALLOWED_DOMAIN}")
