"""Published numbers of systems beside what a run measured, with whether task and data are the same."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import TypeAdapter

from lab.records import Record
from lab.report.bench.numbers import interval, share
from lab.retrieval.results import BenchResult
from lab.suites.base import Published

FILE = Path(__file__).with_name("published.yaml")


class Claim(Record):
    """A published number.

    Attributes:
        arm: Arm that it is of.
        set: Name of the set that it stands beside.
        measure: Field of the scores that it stands beside.
        claim: What was claimed.
        published: The number, as published.
        source: Where.
        same_task: Whether it is the same task.
        same_data: Whether it is the same data.
        note: What a reader must know before comparing the two.
    """

    arm: str
    set: str
    measure: str
    claim: str
    published: str
    source: str
    same_task: bool
    same_data: bool
    note: str


def claims() -> list[Claim]:
    """All claims that the lab knows."""
    return TypeAdapter(list[Claim]).validate_python(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def beside(result: BenchResult) -> list[Published]:
    """The claims whose arm and set were measured, each beside the measurement."""
    measured = {(one.info.name, arm.arm): arm.scores[0] for one in result.sets for arm in one.arms}
    rows = []
    for claim in claims():
        score = measured.get((claim.set, claim.arm))
        if score is None:
            continue
        value = getattr(score, claim.measure)
        name = {"hit10": "Hit@10"}[claim.measure]
        rows.append(
            Published(
                claim=f"{claim.arm}: {claim.claim} ({claim.source})",
                published=claim.published,
                measured=f"{name} {share(value)} {interval(value)}, n={score.n}",
                same_task=claim.same_task,
                same_data=claim.same_data,
                note=claim.note,
            )
        )
    return rows
