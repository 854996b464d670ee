"""Judges by meaning what the models of a run wrote in words of their own, before its report is written."""

from __future__ import annotations

import contextlib
from contextlib import closing

from lab.cli.output import counting_bar
from lab.contamination.semantic.records import SemanticResult, is_of_interest
from lab.contamination.suite import Suite


def judge_meanings(suite: Suite) -> dict[str, SemanticResult]:
    """Judges by meaning what the models of a run wrote in words of their own; empty where none of them may.

    Args:
        suite: The run, of which some trials may have no result yet.
    """
    if not any(is_of_interest(str(planned["model"])) for planned in suite.trials.values()):
        return {}
    # The embedder takes a second to load, which only such a run should pay.
    from lab.contamination.semantic.suite import add_semantic, default_embedder, read_semantic  # noqa: PLC0415
    from lab.retrieval.embedders.threads import one_thread  # noqa: PLC0415

    embedder, lacking = default_embedder()
    with one_thread(), contextlib.ExitStack() as ends:
        if embedder:
            ends.enter_context(closing(embedder))
        bar = ends.enter_context(counting_bar())
        task = bar.add_task("by meaning", total=None)
        add_semantic(
            suite, embedder, lambda done, total: bar.update(task, completed=done, total=total), lacking=lacking
        )
    found = {trial: read_semantic(suite.folder.trial(trial)) for trial in suite.trials}
    return {trial: semantic for trial, semantic in found.items() if semantic}
