"""How ``lab rescore`` tells what became of the verdicts."""

from __future__ import annotations

from rich.table import Table

from lab.cli.output import safe, stdout
from lab.contamination.judgements import Rescored

MOST_LINES = 50
"""Changed verdicts that are listed one by one; ``--json`` has all of them."""


def print_rescored(done: Rescored) -> None:
    """Prints how many verdicts changed by stage, and which."""
    by = ", ".join(f"{safe(name) or 'unnamed detectors'} ({count})" for name, count in done.before.items())
    stdout.print(f"judged {done.judged} trials again by {done.detectors}", soft_wrap=True)
    if by:
        stdout.print(f"earlier judgements by {by}", soft_wrap=True)
    for trials, what in (
        (done.first, "had no judgement to compare with"),
        (done.unsealed, "had a result.json that is not the sealed one; it was written again from the evidence"),
        (done.other_evidence, "have the same verdicts, told with other evidence; the earlier judgement is kept"),
    ):
        if trials:
            stdout.print(f"{len(trials)} {what}", soft_wrap=True)
    compared = done.judged - len(done.first)
    if not done.changes:
        stdout.print(f"no verdict changed: {compared} of {compared} compared trials have the verdicts they had")
        return
    stdout.print(f"verdicts changed in {len(done.changed)} of {compared} compared trials; both judgements are kept")
    counts = Table("verdict", "from → to", "trials")
    for part, steps in done.counts.items():
        for step, count in steps.items():
            counts.add_row(part, safe(step), str(count))
    stdout.print(counts)
    for change in done.changes[:MOST_LINES]:
        line = f"{safe(change.trial)}: {change.part} {safe(change.before)} → {safe(change.after)}"
        stdout.print(line, soft_wrap=True)
    if len(done.changes) > MOST_LINES:
        stdout.print(f"… {len(done.changes) - MOST_LINES} more, see --json")
