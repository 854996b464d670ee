"""The suite of provenance: extractors asked who said what, and held against labelled utterances."""

from __future__ import annotations

from collections.abc import Sequence

from lab.errors import EnvironmentUnusable, SystemFailed
from lab.retrieval.testset import Purpose
from lab.suites.base import Number, Rate, SuiteContext, SuiteResult
from lab.suites.provenance import shipped
from lab.suites.provenance.alarms import alarms
from lab.suites.provenance.baselines import Extractor, all_user, majority
from lab.suites.provenance.data import Part, load_parts
from lab.suites.provenance.extractor import ReferenceExtractor
from lab.suites.provenance.plants import planted
from lab.suites.provenance.scoring import rates
from lab.suites.provenance.shipped import ShippedPatterns

NAME = "provenance"
TITLE = "Provenance: who said it, who is named, whose words and whose preference"
QUESTION = (
    "Does what is extracted from a message keep apart who said it, who is only named, and whose preference it is?"
)


def run(context: SuiteContext) -> SuiteResult:
    """Asks every extractor of every part, and plants faults into the truth of the development part.

    Raises:
        InputError: An utterance is broken; file and line are named.
    """
    parts = load_parts(context.data / NAME)
    development = parts[0]
    notes = [_READING]
    if all(part.purpose is not Purpose.HOLD_OUT for part in parts):
        notes.append("There is no hold-out part: the reference extractor is measured on what it was written on alone.")
    reference = ReferenceExtractor()
    extractors: list[Extractor] = [all_user(), majority(development), reference]
    try:
        extractors.append(ShippedPatterns(context.tools.plugin(numpy=False)))
    except EnvironmentUnusable as error:
        notes.append(f"{shipped.NAME} is left out: {error}")
    found: list[Rate] = []
    numbers: list[Number] = []
    errors: dict[str, int] = {}
    settings: dict[str, object] = {}
    for at, extractor in enumerate(extractors):
        context.progress(at, len(extractors))
        for part in parts:
            try:
                answers = extractor.extract([one.message for one in part.utterances])
            except (SystemFailed, EnvironmentUnusable) as error:
                errors[f"{extractor.name}: {error}"] = len(part.utterances)
                continue
            split = extractor is reference or isinstance(extractor, ShippedPatterns)
            found += rates(part, answers, extractor.name, split=split)
            told = alarms(part, answers)
            notes += [f"{extractor.name} on {part.name}: {name}: {detail}" for name, detail in told.items()]
            if isinstance(extractor, ShippedPatterns):
                numbers.append(_stored(extractor, part))
        settings[extractor.name] = dict(extractor.settings())
        if isinstance(extractor, ShippedPatterns) and extractor.columns:
            notes.append(f"{extractor.name} keeps of a fact: {', '.join(extractor.columns)}. {shipped.READING}")
    context.progress(len(extractors), len(extractors))
    notes += fallen(found, parts, reference.name)
    return SuiteResult(
        suite=NAME,
        title=TITLE,
        question=QUESTION,
        data=tuple(part.info() for part in parts),
        rates=tuple(found),
        numbers=tuple(numbers),
        plants=tuple(planted(development, context.work)),
        errors=errors,
        notes=tuple(notes),
        settings=settings,
    )


_READING = (
    "Spans are compared without case and outer punctuation, names without case and article. False positives of "
    "persons, quotations and another's preference are counted among utterances that hold none."
)


def _stored(extractor: ShippedPatterns, part: Part) -> Number:
    return Number(
        measure="facts stored",
        system=extractor.name,
        data=part.name,
        value=float(extractor.stored),
        unit="facts",
        detail=f"of {len(part.utterances)} messages, each a session of its own",
    )


def fallen(found: Sequence[Rate], parts: Sequence[Part], system: str) -> list[str]:
    """Measures of the reference extractor whose intervals on the two parts do not meet."""
    by_part = [
        {rate.measure: rate for rate in found if rate.system == system and rate.data == part.name and not rate.group}
        for part in parts
    ]
    if len(by_part) < 2:
        return []
    apart = []
    for measure, seen in by_part[0].items():
        one, other = seen.proportion, by_part[1][measure].proportion if measure in by_part[1] else None
        if other is None or one.low is None or one.high is None or other.low is None or other.high is None:
            continue
        if one.low > other.high or other.low > one.high:
            apart.append(f"{measure} ({one.percent} against {other.percent})")
    told = "; ".join(apart) or "none"
    return [f"{system}: measures whose intervals on development and hold-out do not meet: {told}."]
