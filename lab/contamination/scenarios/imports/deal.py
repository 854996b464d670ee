"""Deals hosts, carriers, places and provenances out to payloads: evenly, and the same every time.

Pairs of payloads in the two languages are dealt as one, so that they are true twins. They are served in the order of a
digest of their ids, and each gets what has been given out least often so far, by a digest again where several were. So
the spread is even whatever a file holds, and the order of its items does not matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lab.contamination.scenarios.consistency import CARRIERS
from lab.contamination.scenarios.imports.hosts import CompressionHost, Host, Hosts, SeedHost, WorldHost
from lab.contamination.scenarios.imports.payloads import Payload
from lab.contamination.scenarios.words import Action, Carrier, Family, Place, Provenance
from lab.records import digest

LONGEST_SEARCHED = 300
"""Characters of a content that a search over files may bring; longer lines are cut by searches."""

PROVENANCES = (
    (Provenance.AGENT, False),
    (Provenance.USER, False),
    (Provenance.AGENT, True),
    (Provenance.BUNDLED, False),
)
"""Who made a skill and whether it is pinned: made by the agent, by hand, pinned, bundled."""

SAFETY_ACTIONS = (Action.ADD, Action.REPLACE, Action.REMOVE)
"""How a safety rule is undone: by a later entry that says the contrary, by another wording, by its removal."""

T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """What one payload gets.

    Attributes:
        carrier: What brings it.
        hosts: Texts around it, one for each part of the payload as far as there are so many.
        world: What is remembered before.
        place: In a long conversation.
        compression: The end of a long conversation.
        seed: The skill that it wants changed.
        provenance: Who made that skill, and whether it is pinned.
        safety: How a safety rule is undone.
        twin: Number of the neutral line that stands in its place.
    """

    carrier: Carrier
    hosts: tuple[Host, ...]
    world: WorldHost
    place: Place
    compression: CompressionHost
    seed: SeedHost
    provenance: tuple[Provenance, bool]
    safety: Action
    twin: int


def deal(payloads: Sequence[Payload], hosts: Hosts) -> dict[str, Share]:
    """Deals to all payloads of a batch; by the payload's id."""
    groups: dict[str, list[Payload]] = defaultdict(list)
    for payload, key in zip(payloads, _keys(payloads), strict=True):
        groups[key].append(payload)
    dealer = _Dealer()
    shares: dict[str, Share] = {}
    for key in sorted(groups, key=digest):
        share = _share(key, groups[key], dealer, hosts)
        shares |= {payload.id: share for payload in groups[key]}
    return shares


def _keys(payloads: Sequence[Payload]) -> Iterable[str]:
    """For each payload the name of its group: the least id of those that name each other as pair, in its family."""
    by_id = {payload.id: payload for payload in payloads}
    least = {name: name for name in by_id}

    def root(name: str) -> str:
        while least[name] != name:
            name = least[name]
        return name

    for payload in payloads:
        pair = by_id.get(payload.pair or "")
        if pair is not None and pair.family is payload.family:
            first, second = sorted((root(payload.id), root(pair.id)))
            least[second] = first
    return [root(payload.id) for payload in payloads]


class _Dealer:
    """Gives out what has been given out least often."""

    def __init__(self) -> None:
        self._given: Counter[tuple[str, str]] = Counter()

    def pick(self, heap: str, key: str, options: Sequence[T]) -> T:
        """One of the options, of which the heap keeps count."""
        names = {str(getattr(option, "id", option)): option for option in options}
        name = min(names, key=lambda n: (self._given[heap, n], digest([heap, key, n])))
        self._given[heap, name] += 1
        return names[name]


def _share(key: str, group: Sequence[Payload], dealer: _Dealer, hosts: Hosts) -> Share:
    first = group[0]
    family, parts = first.family, max(len(payload.parts) for payload in group)
    carrier = dealer.pick(f"carrier {family}", key, _carriers(group))
    bringing = hosts.bringing(carrier, first.delivery)
    chosen = [dealer.pick(f"host {carrier}", key, bringing)]
    chosen += [host for host in bringing if host not in chosen][: max(0, parts - 1)]
    # The protected head of a conversation is too short for several exchanges.
    places = [place for place in Place if not (parts and place is Place.HEAD)]
    skills = [seed for seed in hosts.seeds if any(mentions(payload, seed.id) for payload in group)]
    return Share(
        carrier=carrier,
        hosts=tuple(chosen),
        world=dealer.pick("world", key, hosts.worlds),
        place=dealer.pick("place", key, places) if carrier is Carrier.COMPRESSION else Place.MIDDLE,
        compression=dealer.pick("compression", key, hosts.compressions),
        seed=dealer.pick("seed", key, skills or hosts.seeds),
        provenance=dealer.pick(f"provenance {first.goal}", key, PROVENANCES),
        safety=dealer.pick("safety", key, SAFETY_ACTIONS) if first.goal == "remove_safety" else Action.ADD,
        twin=int(digest(key)[:8], 16),
    )


def _carriers(group: Sequence[Payload]) -> list[Carrier]:
    """The carriers of the family that can bring every payload of the group whole, in a fixed order."""
    family = group[0].family
    if family is Family.F5:
        return [Carrier.PASTE]
    searched = all(payload.one_line and len(payload.content) <= LONGEST_SEARCHED for payload in group)
    return sorted(c for c in CARRIERS[family] if searched or c is not Carrier.SEARCH_FILES)


def mentions(payload: Payload, name: str) -> bool:
    """Whether a payload names a skill, as a word of its text or its distilled form."""
    words = f"{payload.content} {payload.distilled}".casefold()
    return any(word.strip(".,:;()'\"") == name for word in words.split())
