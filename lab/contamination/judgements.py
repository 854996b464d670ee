"""Judging old evidence again: the earlier judgement is kept beside the new one, and what changed is told by stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from lab.contamination.outcome import Outcome
from lab.records import Record, Status, TrialResult, digest
from lab.runs.folder import RESULT, write_atomic

JUDGEMENTS = "judgements"
"""Folder of a trial with its earlier judgements, byte for byte: ``1.json`` is the first."""

NO_VERDICT = "–"
_NOT_A_VERDICT = {"detectors", "schema_version"}


class Change(Record):
    """One verdict that is another now.

    Attributes:
        trial: Id of the trial.
        part: A stage, or ``status``, ``decisions``, ``notice``, ``old entry``, ``after the operator``.
        before: What it was.
        after: What it is.
    """

    trial: str
    part: str
    before: str
    after: str


class Rejudged(Record):
    """What judging one trial again came to.

    Attributes:
        trial: Id of the trial.
        before: Detectors of the earlier judgement; None where there was none to compare with.
        same: Whether both judgements say the same in every field, evidence included.
        unsealed: Whether a ``result.json`` was found that is not the sealed one; it is no earlier judgement.
        changes: The verdicts that differ.
    """

    trial: str
    before: str | None
    same: bool
    unsealed: bool = False
    changes: tuple[Change, ...] = ()


class Rescored(Record):
    """What judging a run again came to.

    Attributes:
        detectors: Which detectors judged now.
        before: Trials by the detectors that had judged them; empty for results from before these had a name.
        judged: Trials that were judged.
        same: Trials of which both judgements say the same.
        other_evidence: Trials whose verdicts are the same, but not all that is told with them.
        changed: Trials of which at least one verdict is another.
        first: Trials that had no judgement to compare with.
        unsealed: Trials whose ``result.json`` was not the sealed one; it was written again.
        counts: How many verdicts went from what to what, by part.
        changes: Each of them.
    """

    detectors: str
    before: dict[str, int]
    judged: int
    same: int
    other_evidence: tuple[str, ...]
    changed: tuple[str, ...]
    first: tuple[str, ...]
    unsealed: tuple[str, ...]
    counts: dict[str, dict[str, int]]
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, detectors: str, trials: Iterable[Rejudged]) -> Rescored:
        """Adds up the trials; what is kept in memory are the changes alone."""
        before: Counter[str] = Counter()
        judged = same = 0
        other: list[str] = []
        first: list[str] = []
        unsealed: list[str] = []
        changes: list[Change] = []
        for one in trials:
            judged += 1
            changes += one.changes
            unsealed += [one.trial] if one.unsealed else []
            if one.before is None:
                first.append(one.trial)
                continue
            before[one.before] += 1
            same += one.same
            other += [one.trial] if not one.same and not one.changes else []
        counts: dict[str, dict[str, int]] = {}
        for change in changes:
            steps = counts.setdefault(change.part, {})
            step = f"{change.before} → {change.after}"
            steps[step] = steps.get(step, 0) + 1
        return cls(
            detectors=detectors,
            before=dict(sorted(before.items())),
            judged=judged,
            same=same,
            other_evidence=tuple(other),
            changed=tuple(dict.fromkeys(change.trial for change in changes)),
            first=tuple(first),
            unsealed=tuple(unsealed),
            counts=counts,
            changes=tuple(changes),
        )


def write_judgement(folder: Path, result: TrialResult, sealed: str | None = None) -> Rejudged:
    """Writes a new judgement of a trial; the one that stood there is kept.

    Each file appears in one step and the old judgement is kept before the new one stands, so that a kill at any point
    loses neither. The comparison is with the last judgement of which a report was sealed: rescoring that was
    interrupted tells all changes when it is done again.

    Args:
        folder: The trial's folder.
        result: The new judgement.
        sealed: Digest under which the run's seal has the trial's result; None where there is no seal.

    Raises:
        OSError: A file cannot be read or written.
    """
    path = folder / RESULT
    standing = path.read_bytes() if path.is_file() else None
    kept = earlier_judgements(folder)
    candidates = [data for data in (standing, kept[-1].read_bytes() if kept else None) if data is not None]
    earlier = next((data for data in candidates if sealed in (None, digest(data))), None)
    before = _read(earlier)
    data = result.model_dump_json(indent=2).encode() + b"\n"
    if standing != data:
        if standing is not None and standing == earlier and before is not None:
            _keep(folder, standing)
        write_atomic(path, data)
    # What an interrupted rescoring by the same detectors left is the new judgement itself.
    unsealed = standing is not None and standing not in (earlier, data)
    if before is None:
        return Rejudged(trial=result.trial, before=None, same=False, unsealed=unsealed)
    return Rejudged(
        trial=result.trial,
        before=before.detectors,
        same=_told(before) == _told(result),
        unsealed=unsealed,
        changes=changes(before, result),
    )


def earlier_judgements(folder: Path) -> list[Path]:
    """The kept judgements of a trial, the oldest first."""
    found = (path for path in (folder / JUDGEMENTS).glob("*.json") if path.stem.isdigit())
    return sorted(found, key=lambda path: int(path.stem))


def changes(before: TrialResult, after: TrialResult) -> tuple[Change, ...]:
    """The verdicts in which two judgements of a trial differ, in the order of the stages."""
    old, new = verdicts(before), verdicts(after)
    return tuple(
        Change(trial=after.trial, part=part, before=old[part], after=new[part])
        for part in new
        if old[part] != new[part]
    )


def verdicts(result: TrialResult) -> dict[str, str]:
    """All that a judgement decides, each in words; what it tells as evidence is not in it."""
    outcome = Outcome.of(result)
    return {
        "status": result.status.value if result.status is Status.VALID else f"{result.status} ({result.cause})",
        **{stage.value: verdict.value.value for stage, verdict in result.verdicts.items()},
        "decisions": outcome.decisions_text,
        "notice": result.notice.value,
        "old entry": outcome.rule.value if outcome.rule else NO_VERDICT,
        "after the operator": outcome.settled.value if outcome.settled else NO_VERDICT,
    }


def _told(result: TrialResult) -> dict[str, object]:
    return result.model_dump(mode="json", exclude=_NOT_A_VERDICT)


def _read(data: bytes | None) -> TrialResult | None:
    """An earlier judgement; a damaged one says nothing."""
    try:
        return None if data is None else TrialResult.model_validate_json(data)
    except ValidationError:
        return None


def _keep(folder: Path, data: bytes) -> None:
    kept = earlier_judgements(folder)
    if kept and kept[-1].read_bytes() == data:
        return
    (folder / JUDGEMENTS).mkdir(exist_ok=True)
    number = int(kept[-1].stem) + 1 if kept else 1
    write_atomic(folder / JUDGEMENTS / f"{number}.json", data)
