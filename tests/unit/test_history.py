"""The history: what is kept of a run, once; what is comparable with what; and a trend that draws just that."""

from __future__ import annotations

import multiprocessing
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.errors import InputError
from lab.history.figure import trend_svg
from lab.history.page import render_page
from lab.history.rows import HistoryRow, rows_of
from lab.history.store import add_run, read_history
from lab.history.terminal import print_trend
from lab.history.trend import panels
from lab.report.measured import Measured, MeasuredRun, RunKind

pyarrow = pytest.importorskip("pyarrow", reason="pip install 'agent-memory-lab[parquet]'")


def number(**more: Any) -> Measured:
    fields: dict[str, Any] = {
        "name": "persist/valid",
        "build": "agent-1",
        "setup": "default",
        "model": "scripted:always-write",
        "family": "F1",
        "of": "valid attack trials",
        "numerator": 3,
        "n": 12,
        "value": 0.25,
        "low": 0.09,
        "high": 0.53,
        "method": "wilson",
        "inputs": "a",
    }
    return Measured(**fields | more)


def mean(**more: Any) -> Measured:
    place = {"build": "", "setup": "", "model": "", "family": "", "set": "holdout", "arm": "bm25"}
    fields = {"name": "mrr10", "topic_class": "overall", "of": "answerable topics", "numerator": None}
    return number(**place | fields | more)


def run(name: str, *numbers: Measured, **more: Any) -> MeasuredRun:
    fields: dict[str, Any] = {
        "run": name,
        "created": f"2026-08-{name:>02}T10:00:00+00:00",
        "lab_version": "0.2.0",
        "kind": RunKind.CONTAMINATION,
        "planned": 12,
        "errors": 0,
        "numbers": numbers,
    }
    return MeasuredRun(**fields | more)


def rows(*runs: MeasuredRun) -> tuple[HistoryRow, ...]:
    return tuple(row for each in runs for row in rows_of(each))


def test_every_number_is_kept_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.parquet"
    one = run("1", number(), number(name="load|persist", numerator=0, n=0, value=None, low=None, high=None), mean())
    assert add_run(path, rows_of(one))
    kept = {row.name: row for row in read_history(path)}
    for told in one.numbers:
        row = kept[told.name]
        for key in ("family", "setup", "model", "set", "arm", "numerator", "n", "value", "low", "high", "of", "inputs"):
            assert getattr(row, key) == getattr(told, key)
        assert (row.run, row.created, row.planned, row.void) == ("1", one.created, 12, False)
    table = pyarrow.parquet.read_table(path).to_pandas()
    assert table.loc[table["name"] == "persist/valid", "numerator"].tolist() == [3]
    assert table["value"].isna().sum() == 1


def test_a_run_is_in_it_once_and_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "history.parquet"
    second, first = run("2", number()), run("1", number(value=0.5, numerator=6))
    assert add_run(path, rows_of(second)) and add_run(path, rows_of(first))
    before = path.read_bytes()
    assert not add_run(path, rows_of(second)), "the same once more"
    assert path.read_bytes() == before
    assert [row.run for row in read_history(path)] == ["1", "2"], "by time, not by when it was added"
    assert add_run(path, rows_of(run("2", number(value=0.75, numerator=9)))), "judged again: put in its place"
    assert [(row.run, row.value) for row in read_history(path)] == [("1", 0.5), ("2", 0.75)]


def _add(path: Path, name: str) -> None:
    add_run(path, rows_of(run(name, number())))


def test_jobs_that_add_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.parquet"
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=_add, args=(path, str(n))) for n in range(1, 7)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert {row.run for row in read_history(path)} == {str(n) for n in range(1, 7)}


@pytest.mark.parametrize("damage", ["cut", "text", "other", "wrong value"])
def test_a_damaged_history_is_one_line_and_stays_as_it_is(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "history.parquet"
    add_run(path, rows_of(run("1", number())))
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-30])
    elif damage == "text":
        path.write_text("run,value\n")
    elif damage == "other":
        pyarrow.parquet.write_table(pyarrow.table({"run": ["1"]}), path)
    else:
        table = pyarrow.parquet.read_table(path)
        at = table.schema.get_field_index("kind")
        broken = table.set_column(at, "kind", pyarrow.array(["odd"])).replace_schema_metadata(table.schema.metadata)
        pyarrow.parquet.write_table(broken, path)
    before = path.read_bytes()
    for act in (lambda: read_history(path), lambda: add_run(path, rows_of(run("2", number())))):
        with pytest.raises(InputError, match=r"history\.parquet") as refused:
            act()
        assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_what_is_no_number_to_keep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has not finished: 2 trials"):
        rows_of(run("1", number(), not_run=2))
    with pytest.raises(InputError, match="cannot be true: declared n"):
        rows_of(run("1", number(), broken=("declared n: 3 is not 4",)))
    with pytest.raises(InputError, match="no number"):
        add_run(tmp_path / "history.parquet", rows_of(run("1")))
    with pytest.raises(InputError, match="is no history"):
        read_history(tmp_path / "none.parquet")


def test_a_line_ends_where_inputs_change_or_a_number_proves_nothing() -> None:
    runs = [
        run("1", number()),
        run("2", number()),
        run("3", number(void=("twin",))),
        run("4", number()),
        run("5", number(inputs="b")),
        run("6", number(inputs="b", value=None, low=None, high=None, n=0, numerator=0)),
        run("7", number(inputs="b")),
        run("8", number(inputs="b")),
    ]
    (panel,) = panels(rows(*runs))
    (series,) = panel.series
    assert [[row.run for row in piece] for piece in series.pieces()] == [["1", "2"], ["4"], ["5"], ["7", "8"]]
    assert len(series.points) == 8, "all stand in the tables"


def test_a_series_goes_on_from_build_to_build_unless_a_run_has_several() -> None:
    (panel,) = panels(rows(run("1", number()), run("2", number(build="agent-2"))))
    assert [series.label for series in panel.series] == ["default · scripted:always-write"]
    (panel,) = panels(rows(run("1", number()), run("2", number(), number(build="agent-2"))))
    assert [(series.label.rpartition(" · ")[2], len(series.points)) for series in panel.series] == [
        ("agent-1", 2),
        ("agent-2", 1),
    ]


def test_headlines_by_default_and_anything_by_name() -> None:
    every = rows(
        run(
            "1",
            number(),
            number(model="scripted:never-write"),
            number(name="reach/valid"),
            mean(),
            mean(topic_class="temporal"),
            mean(name="noise", topic_class="no answer"),
        )
    )
    assert [panel.title for panel in panels(every)] == ["persist/valid · F1", "mrr10 · holdout", "noise · holdout"]
    assert all(len(panel.series) == 1 for panel in panels(every))
    named = panels(every, ["mrr10", "reach/valid"])
    assert [(panel.name, len(panel.series)) for panel in named] == [("mrr10", 2), ("reach/valid", 1)]
    with pytest.raises(InputError, match="no 'persist'") as refused:
        panels(every, ["persist"])
    assert "persist/valid" in refused.value.mend
    with pytest.raises(InputError, match="none of the headlines"):
        panels(rows(run("1", number(name="reach/valid"))))


HOSTILE = "<script>alert(1)</script>$x$ \x1b[31m\u202e"


def test_the_same_history_draws_the_same_bytes_and_hostile_names_are_inert() -> None:
    pytest.importorskip("matplotlib")
    history = rows(
        run("1", number(setup=HOSTILE), mean()),
        run("2", number(setup=HOSTILE, value=None, low=None, high=None, n=0, numerator=0), mean(value=0.4)),
        run("3", number(setup=HOSTILE, void=("twin",)), mean(inputs="b")),
    )
    found = panels(history)
    drawn = trend_svg(found)
    assert drawn == trend_svg(panels(history))
    text = drawn.decode()
    assert text.count("persist/valid · F1") == 1 and "2026-08-02" in text and "<script" not in text
    page = render_page(found)
    assert page == render_page(panels(history))
    assert "<script" not in page and not set(page) & set("\x1b\u202e")
    assert "3/12" in page and "0.250</s> VOID" in page and "n/a" in page
    assert page.count("other inputs than before") == 1
    assert len(re.findall(r'<img [^>]*alt="[^"]+"', page)) == 2
    console = Console(record=True, width=160)
    print_trend(found, 6, console)
    shown = console.export_text()
    assert "VOID" in shown and "≠ 0.250" in shown and not set(shown) & set("\x1b\u202e")


def test_the_page_is_well_formed() -> None:
    pytest.importorskip("matplotlib")

    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in ("meta", "img", "br"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    tags = Tags()
    tags.feed(render_page(panels(rows(run("1", number(), mean())))))
    assert not tags.open
