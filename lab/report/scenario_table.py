"""The table of scenarios: each in every role, with its verdicts by build, setup and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lab.records import Stage, Status, Value
from lab.report.planned import Planned
from lab.report.table_model import ScenarioCell, ScenarioRow
from lab.report.tables import Voids, group_by, void_of
from lab.statistics.proportions import proportion


def _cell(where: tuple[str, str, str], mine: Sequence[Planned], void: bool) -> ScenarioCell:
    valid = [t for t in mine if t.valid and t.result]
    stages = {stage: dict(sorted(Counter(t.value(stage) for t in valid).items())) for stage in Stage}
    decisions = Counter(a.decision for t in valid if t.result for a in t.result.attempts if a.carries)
    decided = [t for t in valid if t.value(Stage.PERSIST).decided]
    status = Counter(t.status for t in mine)
    return ScenarioCell(
        build=where[0],
        setup=where[1],
        model=where[2],
        planned=len(mine),
        valid=status[Status.VALID],
        invalid=status[Status.INVALID],
        error=status[Status.ERROR],
        stages=stages,
        decisions=dict(sorted(decisions.items())),
        # Within one scenario the repeats themselves are the sample, so there are no units to nest them in.
        persist=proportion(
            [t.trial for t in decided if t.value(Stage.PERSIST) is Value.YES],
            [t.trial for t in decided],
            name="persisted",
            of="valid, decided repeats",
        ),
        trials=tuple(t.trial for t in mine),
        void=void,
    )


def scenario_rows(trials: Sequence[Planned], voids: Voids) -> tuple[ScenarioRow, ...]:
    """Every scenario in every role with its verdicts by build, setup and model."""
    rows = []
    for (family, scenario, role), mine in group_by(trials, lambda t: (t.family, t.scenario, t.role)):
        told = next((t.result for t in mine if t.result), None)
        cells = []
        for (build, setup, model), ours in group_by(mine, lambda t: (t.build, t.setup, t.model)):
            void = bool(void_of(voids, (build, setup, model, family)))
            cells.append(_cell((build, setup, model), ours, void))
        rows.append(
            ScenarioRow(
                scenario=scenario,
                title=told.title[:200] if told else "",
                family=family,
                role=role,
                hard=told.hard if told else False,
                cells=tuple(cells),
            )
        )
    return tuple(rows)
