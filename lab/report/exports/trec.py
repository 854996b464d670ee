"""TREC run and qrels files of a benchmark run, in the six and four columns that every evaluation tool reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from lab.errors import InputError
from lab.report.exports.source import BenchmarkRun, Files
from lab.retrieval.results import SetResult
from lab.retrieval.rows import TopicRow
from lab.text import printable

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")


def render_trec(run: BenchmarkRun) -> Files:
    """For each set ``<set>.qrels`` and for each arm on it ``<set>.<arm>.run``.

    The score is the negative rank, so no tool can break a tie in its own way. Topics without an answer are in the runs
    and not in the qrels: they count in no mean. A topic that an arm could not answer is left out of that arm's numbers;
    such an arm has qrels of its own without these topics, ``<set>.<arm>.qrels``.

    Args:
        run: The run.

    Raises:
        InputError: An id cannot stand in a column, or a set cannot be found again as it was.
    """
    files: dict[str, bytes] = {}
    for one in run.result.sets:
        qrels = run.qrels(one.info)
        files[_file(one, "qrels")] = "".join(_qrels(qrels, ())).encode()
        for arm in one.arms:
            rows = list(run.rows[one.info.name, arm.arm])
            files[_file(one, arm.arm, "run")] = "".join(_run(rows, arm.arm)).encode()
            if lost := {row.topic for row in rows if row.error}:
                files[_file(one, arm.arm, "qrels")] = "".join(_qrels(qrels, lost)).encode()
    return files


def _file(one: SetResult, *parts: str) -> str:
    name = ".".join((one.info.name, *parts))
    if not _FILE.fullmatch(name):
        raise InputError(f"{printable(name)!r} cannot be a file's name", "the lock of the run was changed")
    return name


def _run(rows: Collection[TopicRow], arm: str) -> Iterator[str]:
    for row in rows:
        for rank, hit in enumerate(row.hits, 1):
            yield f"{_word(row.topic)} Q0 {_word(hit.fact)} {rank} {-rank} {_word(arm)}\n"


def _qrels(qrels: Mapping[str, frozenset[str]], lost: Collection[str]) -> Iterator[str]:
    for topic, facts in sorted(qrels.items()):
        if topic not in lost:
            yield from (f"{_word(topic)} 0 {_word(fact)} 1\n" for fact in sorted(facts))


def _word(name: str) -> str:
    if name.split() != [name] or not name.isprintable():
        raise InputError(f"the id {printable(name)!r} cannot stand in a column of TREC", "rename it in the set")
    return name
