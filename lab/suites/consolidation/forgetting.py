"""Judges decay: which preferences, procedures and error patterns are lost because their type was guessed wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.memories.consolidation.decay import FLOOR, SCALE_HOURS, SHAPE, is_archived, lifetime, strength
from lab.memories.consolidation.kinds import MemoryType, guess_type
from lab.suites.base import Curve, Number, Plant, Published, Rate
from lab.suites.consolidation.data import Aged, Part
from lab.suites.rates import rate

Typing = Callable[[Aged], MemoryType]
"""Says of which type a memory is."""

TYPINGS: dict[str, Typing] = {
    "types as labelled": lambda case: case.kind,
    "types guessed by cue words": lambda case: guess_type(case.text),
}
SHAPES = (0.5, SHAPE, 2.0)
"""Shapes that are drawn, since the design states none."""

_EXEMPT = tuple(kind for kind in MemoryType if kind not in SCALE_HOURS)
_DAY = 24.0
_DAYS = tuple(range(0, 366, 5))
_MARK = SCALE_HOURS[MemoryType.OBSERVATION] / _DAY


def _lost(cases: Sequence[Aged], typing: Typing) -> list[str]:
    return [case.id for case in cases if is_archived(typing(case), case.age_hours)]


def forgetting_rates(part: Part) -> list[Rate]:
    """Honest memories lost, memories kept for ever by mistake, and how often the guess is right."""
    return [one for name, typing in TYPINGS.items() for one in _typing_rates(part, name, typing)]


def _typing_rates(part: Part, name: str, typing: Typing) -> list[Rate]:
    def share(measure: str, better: str, of: str, among: Sequence[Aged], counted: Sequence[str]) -> Rate:
        return rate(
            measure,
            system=name,
            data=part.info.name,
            counted=counted,
            among=[case.id for case in among],
            of=of,
            better=better,
        )

    found = []
    for kind in MemoryType:
        cases = [case for case in part.aged if case.kind is kind]
        if kind in SCALE_HOURS:
            kept = [case.id for case in cases if typing(case) in _EXEMPT]
            found.append(share(f"{kind}s exempt by mistake", "low", f"{kind}s", cases, kept))
        else:
            found.append(share(f"{kind}s lost to decay", "low", f"{kind}s", cases, _lost(cases, typing)))
    right = [case.id for case in part.aged if typing(case) is case.kind]
    found.append(share("typed right", "high", "memories of an age", part.aged, right))
    return found


def forgetting_numbers() -> list[Number]:
    """Ages at which a memory is archived, by type and shape: arithmetic, no measurement."""
    return [
        Number(
            measure=f"{kind}s: age at which they are archived, shape {shape}",
            system="decay",
            value=round(lifetime(kind, shape=shape) / _DAY, 1),
            unit="days",
            detail=f"scale {scale:.0f} h, floor {FLOOR}: arithmetic, not measured",
        )
        for kind, scale in SCALE_HOURS.items()
        for shape in SHAPES
    ]


def strength_curve() -> Curve:
    """Strength by age, for each type that decays and several shapes."""
    lines = {
        f"{kind}, shape {shape}": tuple((float(day), strength(kind, day * _DAY, shape=shape)) for day in _DAYS)
        for kind in SCALE_HOURS
        for shape in SHAPES
    }
    return Curve(title="Strength by age", x="age in days", y="strength", lines=lines, mark=_MARK)


def archived_curve(part: Part) -> Curve:
    """How much of each type would be archived by an age if types are guessed."""
    guessed = {kind: [guess_type(case.text) for case in part.aged if case.kind is kind] for kind in MemoryType}
    lines = {
        f"{kind}s": tuple(
            (float(day), sum(is_archived(guess, day * _DAY) for guess in guesses) / len(guesses)) for day in _DAYS
        )
        for kind, guesses in guessed.items()
        if guesses
    }
    title = f"Archived by age where types are guessed, {part.info.name}"
    return Curve(title=title, x="age in days", y="share archived", lines=lines, mark=_MARK)


def forgetting_plants(part: Part) -> list[Plant]:
    """Preferences that decay like observations must be missed; with their own type none may be."""
    preferences = [case for case in part.aged if case.kind is MemoryType.PREFERENCE]
    typings: tuple[tuple[str, Typing, bool], ...] = (
        ("preferences are not exempt", lambda _: MemoryType.OBSERVATION, False),
        ("preferences with their own type", TYPINGS["types as labelled"], True),
    )
    found = []
    for fault, typing, clean in typings:
        lost = _lost(preferences, typing)
        detail = f"{part.info.name}: {len(lost)} of {len(preferences)} preferences lost"
        found.append(Plant(fault=fault, clean=clean, reported=bool(lost), detail=detail))
    return found


def forgetting_published(part: Part) -> list[Published]:
    """The exemption and the scales beside what was measured."""
    preferences = [case for case in part.aged if case.kind is MemoryType.PREFERENCE]
    measured = "; ".join(
        f"{name}: {len(_lost(preferences, typing))}/{len(preferences)} lost" for name, typing in TYPINGS.items()
    )
    old = sum(case.age_hours > lifetime(MemoryType.OBSERVATION) for case in preferences)
    return [
        Published(
            claim="preferences, procedures and error patterns are exempt from decay",
            published="0 lost",
            measured=f"{part.info.name}, preferences: {measured}",
            same_task=True,
            same_data=False,
            note="the exemption is as good as the guess of the type; the design states no way to make it",
        ),
        Published(
            claim="observations decay on a scale of 336 h, working facts of 2,160 h",
            published="336 h; 2,160 h",
            measured=f"{part.info.name}: {old} of {len(preferences)} preferences are older than an observation lives",
            same_task=False,
            same_data=False,
            note=f"shape ({SHAPE}) and floor ({FLOOR}) are ours: the design states neither, and they decide the day. "
            "Whether the scales are good for anybody our data cannot tell",
        ),
    ]
