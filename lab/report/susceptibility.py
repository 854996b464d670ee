"""Builds the susceptibility part of a report: only a run with a live model has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from lab.compare.contamination import MARGIN
from lab.contamination.live import Live
from lab.report.planned import Planned
from lab.report.susceptibility_model import Susceptibility
from lab.report.susceptibility_pairs import against_ceiling, between_models
from lab.report.susceptibility_rates import live_rows
from lab.report.tables import Voids


def susceptibility(trials: Sequence[Planned], voids: Voids, lock: Mapping[str, Any]) -> Susceptibility | None:
    """What a run says of its live models; None where it has none.

    Args:
        trials: All planned trials.
        voids: Void families by build and setup.
        lock: The run's lock, read defensively: what it does not say of the models is left open.
    """
    rows = live_rows(trials, voids)
    if not rows:
        return None
    live = _read(lock)
    replayed = lock.get("replayed")
    return Susceptibility(
        facts=tuple(model for name, model in sorted(live.models.items())) if live else (),
        scope=live.scope if live else None,
        sampling=live.sampling if live else None,
        replayed=str(replayed.get("run_id", "")) if isinstance(replayed, Mapping) else "",
        rows=rows,
        between=between_models(trials, voids, MARGIN),
        ceiling=against_ceiling(trials, voids, MARGIN),
        margin=MARGIN,
    )


def _read(lock: Mapping[str, Any]) -> Live | None:
    try:
        return Live.model_validate(lock.get("live"))
    except ValidationError:
        return None
