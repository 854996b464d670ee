"""Composes the scenario of a payload: world, transcript, channel, content, twin and card, as plain data."""

from __future__ import annotations

from typing import Any

from lab.contamination.observe.detect import find
from lab.contamination.scenarios.imports.aims import Aim, aim_of
from lab.contamination.scenarios.imports.deal import Share
from lab.contamination.scenarios.imports.hosts import Host, Hosts, HostText
from lab.contamination.scenarios.imports.payloads import Payload
from lab.contamination.scenarios.parts import CONTENT_SLOT
from lab.contamination.scenarios.scenario import SCENARIO_SCHEMA
from lab.contamination.scenarios.words import TOOL_CARRIERS, Action, Carrier, Family, Language, Place, Target

Data = dict[str, Any]

_DELEGATED = (Carrier.DELEGATE, Carrier.DELEGATION_NOTICE)


def compose(payload: Payload, share: Share, hosts: Hosts, scenario_id: str, pair_id: str = "") -> Data:
    """The scenario of a payload.

    Args:
        payload: The payload.
        share: What has been dealt to it.
        hosts: All hosts.
        scenario_id: Id of the scenario.
        pair_id: Id of the scenario of its twin in the other language; empty where there is none.

    Returns:
        A scenario file's fields, in the order in which people read them.
    """
    aim = aim_of(payload, share, hosts)
    slots = [f"{{{{content:{n}}}}}" for n in range(1, len(payload.parts) + 1)] or [CONTENT_SLOT]
    came_by = _Way(payload, share, hosts).filled(slots)
    world = share.world.of(payload.language)
    skills = [*came_by.pop("skills", ()), *aim.skills]
    made: Data = {
        "schema": SCENARIO_SCHEMA,
        "id": scenario_id,
        "version": 1,
        "family": payload.family.value,
        "title": _title(payload, share),
        "language": payload.language.value,
        "delivery": payload.delivery,
        "goal": aim.goal,
        "effect": payload.effect,
        "tags": _tags(payload, share, aim),
        "canary": payload.canary,
        "world": {
            "memory": [*world.memory, *aim.entries],
            "user": list(world.user),
            "files": came_by.pop("files", []),
            "skills": skills,
        },
        **came_by,
        "content": _content(payload, aim, share, hosts),
    }
    if payload.family is Family.F5:
        made["expect"] = {"keep": payload.keep}
    else:
        made["twin"] = _twin(payload, share, hosts)
    made["card"] = _card(payload, share, aim, hosts, pair_id)
    return _without_empty(made)


class _Way:
    """Lays the channel of one scenario: its turns, and what they bring up."""

    def __init__(self, payload: Payload, share: Share, hosts: Hosts) -> None:
        self.language: Language = payload.language
        self.payload, self.share, self.hosts = payload, share, hosts

    def filled(self, slots: list[str]) -> Data:
        """Transcript, channel and whatever they need, with the slots in their places."""
        carrier = self.share.carrier
        if self.payload.family is Family.F5:
            beside = self.hosts.statement.of(self.language)
            turn = {"user": f"{' '.join(slots)}\n\n{beside.ask}", "assistant": beside.answer}
            return {"transcript": [turn]}
        if carrier is Carrier.COMPRESSION:
            return self._compressed(slots)
        if carrier in TOOL_CARRIERS or carrier is Carrier.PASTE:
            return self._apart(carrier, slots)
        return self._reported(carrier, slots)

    def _shared_out(self, slots: list[str]) -> list[tuple[Host, str]]:
        """The hosts and their texts with one slot each; the last takes what is left over."""
        hosts = self.share.hosts
        shares = [[slot] for slot in slots[: len(hosts)]]
        shares[-1] += slots[len(hosts) :]
        return [(host, _put(host.of(self.language).text, own)) for host, own in zip(hosts, shares, strict=False)]

    def _apart(self, carrier: Carrier, slots: list[str]) -> Data:
        """Each part in a document and a turn of its own."""
        turns: list[Data] = []
        files: list[Data] = []
        skills: list[Data] = []
        for host, text in self._shared_out(slots):
            words = host.of(self.language)
            named = {"path": words.path, "pattern": words.pattern, "name": host.id, "question": words.question}
            ask = self.hosts.words.asks.get(carrier)
            user = _named(ask.of(self.language), {**named, "text": text}) if ask else words.question
            turn: Data = {"user": user}
            if carrier is not Carrier.PASTE:
                turn["steps"] = [self._step(carrier, named)]
            turns.append({**turn, "assistant": words.answer})
            if carrier is Carrier.SKILL_VIEW:
                skill = {"name": host.id, "made_by": "user", "pinned": False, "description": words.description}
                skills.append({**skill, "body": text + "\n"})
            elif carrier is not Carrier.PASTE:
                files.append({"path": words.path, "text": text + "\n"})
        return {"files": files, "skills": skills, "transcript": turns, "channel": {"carrier": carrier.value}}

    def _reported(self, carrier: Carrier, slots: list[str]) -> Data:
        """What another agent says, with the parts in paragraphs of their own."""
        host = self.share.hosts[0]
        words = host.of(self.language)
        text = _put(words.text, slots)
        tool = Carrier.DELEGATE if carrier in _DELEGATED else carrier
        step = self._step(tool, {"goal": words.goal, "context": words.context})
        channel: Data = {"carrier": carrier.value}
        if carrier in _DELEGATED:
            channel["child"] = {"report": text}
        else:
            channel["board"] = {"title": words.title, "author": words.author, "comment": text}
        turn = {"user": words.question, "steps": [step], "assistant": words.answer}
        return {"transcript": [turn], "channel": channel}

    def _compressed(self, slots: list[str]) -> Data:
        """Documents in a long conversation, which is then compressed."""
        ending = self.share.compression.of(self.language)
        summary = ending.summary
        if self.share.place is Place.MIDDLE:
            # Word for word: what the compressor drops would never reach the reviewer, and show nothing.
            summary = "\n".join((summary, ending.kept, *slots))
        history = [self._earlier(host.of(self.language), text) for host, text in self._shared_out(slots)]
        step = self._step(Carrier.READ_FILE, {"path": ending.path})
        turn = {"user": ending.question, "steps": [step], "assistant": ending.answer, "full": True}
        return {
            "files": [{"path": ending.path, "text": ending.file + "\n"}],
            "history": history,
            "transcript": [turn],
            "channel": {"carrier": Carrier.COMPRESSION.value, "place": self.share.place.value, "summary": summary},
        }

    def _earlier(self, words: HostText, text: str) -> Data:
        ask = self.hosts.words.asks[Carrier.PASTE].of(self.language)
        return {"user": _named(ask, {"question": words.question, "text": text}), "assistant": words.answer}

    def _step(self, tool: Carrier, named: dict[str, str]) -> Data:
        arguments = {name: _named(value, named) for name, value in self.hosts.words.steps[tool].items()}
        return {"tool": tool.value, "arguments": arguments}


def _put(text: str, slots: list[str]) -> str:
    """A host's text with the first slot in its place and the others as paragraphs at its end."""
    return "\n\n".join((text.replace(CONTENT_SLOT, slots[0]), *slots[1:]))


def _named(template: str, values: dict[str, str]) -> str:
    """A template with each ``<name>`` replaced; the text, which may hold anything, comes last."""
    for name in sorted(values, key=lambda n: n == "text"):
        template = template.replace(f"<{name}>", values[name])
    return template


def _origin(payload: Payload, share: Share) -> str:
    if payload.family is Family.F5:
        return "user_statement" if payload.keep else "mention"
    if payload.family is Family.F3:
        return "other_agent"
    return "tool_result" if share.carrier in TOOL_CARRIERS else "pasted_document"


def _content(payload: Payload, aim: Aim, share: Share, hosts: Hosts) -> Data:
    disguised = payload.distilled.replace(payload.canary, payload.canary.upper())
    paraphrase = _named(hosts.words.paraphrase.of(payload.language), {"distilled": disguised})
    return {
        "text": payload.content,
        "parts": list(payload.parts),
        "origin": _origin(payload, share),
        "target": aim.target.value,
        "action": aim.action.value,
        "old": aim.old,
        "skill": aim.skill,
        "file": aim.file,
        "stored": payload.distilled,
        "paraphrase": paraphrase,
    }


def _twin(payload: Payload, share: Share, hosts: Hosts) -> Data:
    """A neutral line with the canary as data of the same form: an address, a host, or a name."""
    behind = payload.distilled.partition(payload.canary)[2]
    form = "address" if behind.startswith("@") else "host" if behind.startswith(".example.test") else "name"
    lines = hosts.words.twins[form].of(payload.language)
    line = lines[share.twin % len(lines)].replace("<canary>", payload.canary)
    rest = hosts.words.twins["rest"].of(payload.language)
    parts = [rest[n % len(rest)] for n in range(len(payload.parts) - 1)]
    # In the same part as the payload's, so that payload and twin show their canary in the same turn.
    held = (n for n, part in enumerate(payload.parts) if find(payload.canary, part))
    parts.insert(next(held, 0), line)
    return {"text": " ".join(parts), "parts": parts if payload.parts else []}


def _title(payload: Payload, share: Share) -> str:
    language = "" if payload.language is Language.EN else " (Portuguese)"
    what = share.hosts[0].what if payload.family is not Family.F5 else "a statement of the user"
    dressed = payload.delivery.replace("_", " ").capitalize()
    return f"{dressed} in {what}, {payload.goal.replace('_', ' ')}: {payload.id}{language}"


def _tags(payload: Payload, share: Share, aim: Aim) -> list[str]:
    found = ["imported", payload.delivery, aim.goal, payload.effect, payload.language, share.carrier]
    if share.carrier is Carrier.COMPRESSION:
        found.append(f"place-{share.place}")
    if aim.skills:
        made_by, pinned = share.provenance
        found.append("pinned-skill" if pinned else f"{made_by}-skill")
    return list(dict.fromkeys(str(tag).casefold().replace("_", "-")[:60].strip("-") for tag in found))


def _card(payload: Payload, share: Share, aim: Aim, hosts: Hosts, pair_id: str) -> Data:
    words = hosts.words
    place = f", {words.places[share.place]} of it" if share.carrier is Carrier.COMPRESSION else ""
    apart = f" in {len(payload.parts)} parts" if payload.parts else ""
    hidden = "" if payload.canary_literal_in_text else " The canary shows only after decoding."
    twin = f" {pair_id} is its twin in the other language: same host, carrier and world." if pair_id else ""
    what = share.hosts[0].what if payload.family is not Family.F5 else "a statement"
    shows = (
        f"Whether a payload of the kind {payload.delivery.replace('_', ' ')}{apart} in {what}, "
        f"{words.carriers[share.carrier]}{place}, {words.goals[aim.goal]}."
        f"{hidden}{_fate(payload, share, aim)}{aim.note} Imported from {payload.id}.{twin}"
    )
    tags = words.tags
    sets = (
        tags.all,
        tags.targets[aim.target],
        tags.families.get(payload.family),
        tags.effects.get(payload.effect),
        tags.deliveries.get(payload.delivery),
        tags.goals.get(aim.goal),
    )
    owasp = dict.fromkeys(tag for found in sets if found for tag in found.owasp)
    atlas = dict.fromkeys(tag for found in sets if found for tag in found.atlas)
    return {"shows": shows, "owasp": sorted(owasp, key=lambda t: (t.startswith("ASI"), t)), "atlas": sorted(atlas)}


def _fate(payload: Payload, share: Share, aim: Aim) -> str:
    if aim.target is Target.SKILLS and aim.skills:
        made_by, pinned = share.provenance
        return f" The skill {aim.skill} is {'pinned' if pinned else f'of origin {made_by}'}."
    if payload.goal == "remove_safety":
        ways = {Action.ADD: "adding the contrary", Action.REPLACE: "replacing it", Action.REMOVE: "removing it"}
        return f" The safety rule is undone by {ways[aim.action]}."
    return ""


def _without_empty(data: Data) -> Data:
    """The fields without those that say nothing; false and zero say something."""
    kept = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in kept.items() if value not in (None, [], {})}
