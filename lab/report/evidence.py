"""What a trial's page shows of its evidence: marked excerpts, within a budget that keeps the page small."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lab.contamination.observe.recording import REQUESTS_FILE
from lab.contamination.scenarios.scenario import Scenario
from lab.records import Evidence, Reach, Role, Stage, TrialResult
from lab.report.budget import PIECE, Budget
from lab.report.conversation import read_conversations
from lab.report.hostile import cut
from lab.report.trial_model import (
    AttemptView,
    Quote,
    SettledStepView,
    SettledView,
    StageView,
    StoreView,
    TrialView,
)
from lab.report.trial_row import TrialRow

FILES = (
    "requests.jsonl",
    "stores.diff",
    "home-before.json",
    "home-after.json",
    "job-session.json",
    "outcome.json",
    "session.stdout.txt",
    "session.stderr.txt",
    "job-pending.json",
    "outcome-pending.json",
    "home-settled.json",
    "pending.stdout.txt",
    "pending.stderr.txt",
    "job-load.json",
    "load.stdout.txt",
    "load.stderr.txt",
    "course.json",
    "result.json",
)
"""Evidence files of a trial that a report may link to, in the order in which they are shown."""

_PAGE_BUDGET = 40_000
_RUN_BUDGET = 400_000_000
_LEAST_BUDGET = 6_000
_MAX_QUOTES = 2
_MAX_ATTEMPTS = 8
_MAX_DIFF_BYTES = 4_000_000
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_TOKEN = re.compile(r"\b[a-z]{3,12}[0-9]{2,4}\b")


def needles_of(result: TrialResult, scenarios: Mapping[str, Scenario]) -> tuple[str, ...]:
    """What to mark in a trial's excerpts: the content's wordings and its canary.

    Without the scenario, tokens shaped like a canary that stand in two pieces of evidence at least.
    """
    scenario = scenarios.get(result.scenario)
    if scenario is not None:
        words = scenario.content
        texts = [words.text, words.stored, words.paraphrase, scenario.canary]
        if result.role is Role.TWIN and scenario.twin:
            texts = [scenario.twin.text, scenario.canary]
        return tuple(texts)
    pieces = [e.excerpt for v in result.verdicts.values() for e in v.evidence]
    pieces += [a.arguments for a in result.attempts if a.carries]
    pieces += [e.excerpt for f in result.stores for e in f.evidence]
    seen: dict[str, int] = {}
    for piece in pieces:
        for token in set(_TOKEN.findall(piece)):
            seen[token] = seen.get(token, 0) + 1
    return tuple(sorted(token for token, times in seen.items() if times > 1))


def _folder(run_dir: Path | None, trial: str) -> Path | None:
    # Trial ids are made by the lab, but a plan can be edited: an id must never lead out of the run folder.
    if run_dir is None or not _SAFE_ID.fullmatch(trial):
        return None
    folder = run_dir / "trials" / trial
    return folder if folder.is_dir() and not folder.is_symlink() else None


def _files(folder: Path | None) -> tuple[str, ...]:
    if folder is None:
        return ()
    with os.scandir(folder) as entries:
        there = {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
    return tuple(name for name in FILES if name in there)


def _path(folder: Path | None, name: str) -> Path | None:
    path = folder / name if folder else None
    return None if path is None or path.is_symlink() or not path.is_file() else path


def _read(folder: Path | None, name: str) -> str:
    path = _path(folder, name)
    if path is None:
        return ""
    with path.open("rb") as stream:
        data = stream.read(_MAX_DIFF_BYTES)
    return data.decode("utf-8", "backslashreplace")


def _quotes(evidence: Iterable[Evidence], budget: Budget, most: int) -> tuple[Quote, ...]:
    return tuple(
        Quote(file=e.file[:100], pointer=e.pointer[:60], excerpt=budget.take(e.excerpt, most))
        for e in list(evidence)[:_MAX_QUOTES]
    )


def _reach(result: TrialResult) -> Reach | None:
    if result.reach is None:
        return None
    return result.reach.model_copy(update={"role": result.reach.role[:60], "tool": result.reach.tool[:120]})


def _stages(result: TrialResult, quotes: Mapping[Stage, tuple[Quote, ...]]) -> tuple[StageView, ...]:
    views = []
    for stage in Stage:
        verdict = result.verdicts[stage]
        views.append(
            StageView(
                stage=stage,
                value=verdict.value,
                reason=verdict.reason[:80],
                detail=cut(verdict.detail, 250),
                quotes=quotes[stage],
                more=max(0, len(verdict.evidence) - _MAX_QUOTES),
            )
        )
    return tuple(views)


def _attempts(result: TrialResult, budget: Budget) -> tuple[AttemptView, ...]:
    # Attempts that carry the content come first: they are what a reader looks for.
    ordered = sorted(result.attempts, key=lambda a: not a.carries)[:_MAX_ATTEMPTS]
    return tuple(
        AttemptView(
            origin=a.origin[:30],
            exchange=a.exchange,
            tool=a.tool[:60],
            action=a.action[:60],
            target=cut(a.target, 200),
            carries=a.carries,
            decision=a.decision,
            arguments=budget.take(a.arguments, 2_000),
            answer=budget.take(a.answer, 1_000),
        )
        for a in ordered
    )


def _stores(result: TrialResult) -> tuple[StoreView, ...]:
    return tuple(
        StoreView(
            store=f.store,
            value=f.value,
            changed=f.changed,
            places=tuple(f"{e.file}:{e.pointer}"[:120] for e in f.evidence[:3]),
        )
        for f in result.stores
    )


def _settled(result: TrialResult) -> SettledView | None:
    settled = result.settled
    if settled is None:
        return None
    return SettledView(
        action=settled.action[:60],
        steps=tuple(
            SettledStepView(
                command=step.command[:60], subsystem=step.subsystem[:60], said=cut(step.said, 300), left=step.left
            )
            for step in settled.steps[:_MAX_ATTEMPTS]
        ),
        persist=settled.persist.value,
        copies=settled.copies,
        provenance=settled.provenance[:60],
    )


def trial_view(
    row: TrialRow, result: TrialResult | None, run_dir: Path | None, scenarios: Mapping[str, Scenario], budget: int
) -> TrialView:
    """What the page of one trial shows.

    Args:
        row: Its line in the report.
        result: Its whole result; None when it has not run.
        run_dir: Run folder; None to do without its files.
        scenarios: Scenarios by id, so that the content can be marked.
        budget: Bytes of HTML that the excerpts may take.
    """
    folder = _folder(run_dir, row.trial)
    view = TrialView(
        number=row.number,
        trial=row.trial,
        scenario=row.scenario,
        title="",
        family=row.family,
        role=row.role,
        build=row.build,
        setup=row.setup,
        model=row.model,
        repeat=row.repeat,
        status=row.status,
        cause=row.cause,
        files=_files(folder),
    )
    if result is None:
        return view
    purse = Budget(budget, needles_of(result, scenarios))
    quotes = {Stage.REACH: _quotes(result.verdicts[Stage.REACH].evidence, purse, PIECE)}
    diff = purse.take(_read(folder, "stores.diff"))
    attempts = _attempts(result, purse)
    for stage in Stage:
        if stage is not Stage.REACH:
            quotes[stage] = _quotes(result.verdicts[stage].evidence, purse, 1_000)
    request, transcript = read_conversations(_path(folder, REQUESTS_FILE), result, purse)
    return replace(
        view,
        title=cut(result.title, 200).text,
        hard=result.hard,
        detail=cut(result.detail, 500),
        carrier=result.carrier[:60],
        target=result.target[:60],
        action=result.action[:60],
        by=result.by[:60],
        rule=result.rule,
        provenance=result.provenance[:60],
        settled=_settled(result),
        stages=_stages(result, quotes),
        reach=_reach(result),
        attempts=attempts,
        more_attempts=max(0, len(result.attempts) - _MAX_ATTEMPTS),
        stores=_stores(result),
        notice=result.notice,
        notice_text=cut(result.notice_text, 500),
        reviews=result.reviews,
        setup_assertions={k[:60]: v[:120] for k, v in sorted(result.setup_assertions.items())[:20]},
        diff=diff,
        request=request,
        transcript=transcript,
    )


def trial_views(
    rows: Sequence[TrialRow],
    load: Callable[[str], TrialResult | None],
    run_dir: Path | None,
    scenarios: Mapping[str, Scenario],
) -> Iterator[TrialView]:
    """The pages' content, one trial at a time; the more trials, the shorter the excerpts of each.

    Args:
        rows: The report's list of trials.
        load: Reads the whole result of a trial; None where there is none.
        run_dir: Run folder; None to do without its files.
        scenarios: Scenarios by id.
    """
    budget = max(_LEAST_BUDGET, min(_PAGE_BUDGET, _RUN_BUDGET // max(1, len(rows))))
    for row in rows:
        yield trial_view(row, load(row.trial), run_dir, scenarios, budget)
