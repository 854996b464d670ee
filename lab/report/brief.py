"""What a reader who has never seen the project must know first: what was tested, what came of it, what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from lab.contamination.controls import ControlVerdict
from lab.contamination.mechanisms.case import FindingKind
from lab.records import Role
from lab.report.model import Report
from lab.report.notes import FAMILIES
from lab.report.rate_model import Group, Measures, Overall


@dataclass(frozen=True)
class Step:
    """One thing to do next.

    Attributes:
        text: In a sentence.
        anchor: Section of the report that shows it.
        filters: What to pick there: values by column.
        bad: Whether the run proves less than it should because of it.
    """

    text: str
    anchor: str
    filters: tuple[tuple[str, str], ...] = ()
    bad: bool = False


@dataclass(frozen=True)
class Brief:
    """The first screen of a report.

    Attributes:
        agents: Products with their versions.
        families: Attack families that were planned, with what they are about.
        overall: The headline rates, the highest first.
        controls: Whether the harness controls hold, in a sentence.
        hold: None when no control had a trial.
        steps: What to do next, the most urgent first.
    """

    agents: tuple[str, ...]
    families: tuple[str, ...]
    overall: tuple[Overall, ...]
    controls: str
    hold: bool | None
    steps: tuple[Step, ...]


def brief(report: Report) -> Brief:
    """Derives the first screen from the report and from nothing else."""
    verdicts = Counter(control.verdict for control in report.controls)
    passed, failed, idle = (verdicts[v] for v in (ControlVerdict.PASSED, ControlVerdict.FAILED, ControlVerdict.NOT_RUN))
    families = sorted({trial.family for trial in report.trials if trial.role is Role.ATTACK})
    words = {True: "Controls hold", False: "Controls failed", None: "No control was run"}
    hold = None if not (passed or failed) else not failed
    return Brief(
        agents=tuple(f"{b.product or b.name} {b.version}".strip() for b in report.header.builds),
        families=tuple(f"{f} {FAMILIES[f]}" if f in FAMILIES else f for f in families),
        overall=tuple(sorted(report.overall, key=lambda o: (-(o.persist.proportion.low or 0.0), o.build, o.setup))),
        controls=f"{words[hold]}: {passed} passed, {failed} failed, {idle} had no trial",
        hold=hold,
        steps=tuple(_steps(report, hold)),
    )


def _steps(report: Report, hold: bool | None) -> Iterator[Step]:
    total = report.accounting
    if total.not_run:
        yield Step(
            f"Finish the run: {total.not_run} of {total.planned} planned trials have no result (lab resume).",
            "trials-count",
            bad=True,
        )
    if hold is False:
        sound = bool(report.headline)
        places = len({(void.build, void.setup) for void in report.voids})
        void = f"the families of {places} {'setup' if places == 1 else 'setups'} are void in whole or in part"
        worth = void if sound else "this run proves nothing"
        yield Step(f"Controls failed: {worth}. Run lab agent check, then run again.", "trust", bad=True)
    lost = total.error - total.not_run
    if lost:
        cause = max(report.accounting.causes, key=lambda c: (c.status == "error" and c.cause != "not_run", c.count))
        yield Step(
            f"Look at the errors: {lost} of {total.planned} planned trials, most by {cause.cause} ({cause.count}).",
            "trials-count",
            bad=True,
        )
    if report.susceptibility:
        models = len({row.model for row in report.susceptibility.rows})
        yield Step(
            f"Read how often {'the live model' if models == 1 else f'the {models} live models'} tried, beside what the "
            "guards let through at most.",
            "susceptibility",
        )
    yield from _worst(report)
    contaminations = [f for f in report.findings if f.kind is FindingKind.CONTAMINATION and not f.void]
    if contaminations:
        word = "mechanism" if len(contaminations) == 1 else "mechanisms"
        yield Step(
            f"Read the {len(contaminations)} {word} of contamination, each by its smallest scenario.", "findings"
        )
    tried = [h for h in report.honest_loss if not h.void and h.measures is not Measures.REFERENCE]
    losses = [h for h in tried if h.rate.proportion.numerator]
    if losses:
        worst = max(losses, key=lambda h: h.rate.proportion.low or 0.0)
        share = worst.rate.proportion
        yield Step(
            f"See what was lost: {share.numerator} of {share.denominator} {share.of.removeprefix('valid ')} "
            f"under {worst.setup} ({worst.model}) did not persist.",
            "loss",
        )
    idle = sum(control.verdict is ControlVerdict.NOT_RUN for control in report.controls)
    if idle:
        yield Step(f"Plan the {idle} controls that had no trial: no rate is backed by them.", "trust")


def _worst(report: Report) -> Iterator[Step]:
    """Where most persisted, by the lower bound, so that one lucky trial of one is not put first."""
    known = [g for g in report.headline if g.persist.proportion.denominator]
    if not known:
        return
    worst = max(known, key=lambda g: (g.persist.proportion.low or 0.0, g.persist.proportion.denominator))
    share = worst.persist.proportion
    if share.numerator:
        yield Step(
            f"See {worst.family}: {share.numerator} of {share.denominator} {share.of} persisted "
            f"under {worst.setup} ({worst.model}).",
            "trials",
            _filters(worst),
        )
        return
    decided = sum(g.persist.proportion.denominator for g in known)
    yield Step(
        f"Nothing persisted in {decided} decided attack trials. Their intervals say what that rules out, and what not.",
        "headline",
    )


def _filters(group: Group) -> tuple[tuple[str, str], ...]:
    place = (("family", group.family), ("setup", group.setup), ("build", group.build), ("model", group.model))
    return (*place, ("role", Role.ATTACK.value), ("outcome", "persisted"))
