"""Exports of contamination runs: the report's numbers again, in tools that we did not write, from hostile texts too."""

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import junitparser
import pyarrow.parquet as pq
import pytest
from lxml import etree
from markdown_it import MarkdownIt

from lab.contamination.scenarios.words import Family
from lab.errors import EnvironmentUnusable, InputError
from lab.records import Decision, Role, Stage, Status, StoreFinding, TrialResult, Value
from lab.report.build import build_report
from lab.report.exports.format_names import Format
from lab.report.exports.formats import WRITERS, export
from lab.report.exports.inspect_log import render_inspect
from lab.report.exports.junit import render_junit
from lab.report.exports.long_table import TOPIC_ARM, TRIAL_STAGE, Kind
from lab.report.exports.sarif import FAMILIES, FINGERPRINT, render_sarif
from lab.report.exports.source import ContaminationRun
from lab.report.exports.summary import contamination_summary
from tests.factories import NEVER, attempt, finding, invalid, lock, planned, quiet, result, story
from tests.unit.test_report_hostile import ALL, HOSTILE, hostile_mechanism, hostile_result
from tests.unit.test_report_numbers import mixed

SCHEMAS = Path(__file__).parents[1] / "fixtures" / "schemas"
DOCS = Path(__file__).parents[2] / "docs" / "exports.md"
CONTAMINATION = [name for name, writers in WRITERS.items() if writers.contamination]


def run_of(*results: TrialResult, budget: float = 0.1, plan=None, **of_lock) -> ContaminationRun:
    report = build_report(lock(**of_lock), plan or planned(*results), results)
    told = {r.trial: r for r in results}
    return ContaminationRun(report, told, {}, budget, lambda: b"0" * 64 + b"  lock.json\n")


def hostile_run(texts=ALL) -> ContaminationRun:
    results = []
    for number, text in enumerate(texts, 1):
        results.append(hostile_result(text, number))
        results.append(hostile_mechanism(text, 500 + number))
        results.append(result(f"F1-{number:03}", repeat=3, status=Status.ERROR, cause=text or "x", detail=text))
        results.append(result(f"F1-{number:03}", model=f"x:{text}", setup=text, build=text, trial=f"{text}/{number}"))
    return run_of(*results, run_id=texts[0], created=texts[0], lab_version=texts[0])


def one(files) -> bytes:
    (data,) = files.values()
    return data


def junit(run: ContaminationRun) -> etree._Element:
    tree = etree.fromstring(one(render_junit(run)))
    etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd")).assertValid(tree)
    return tree


def sarif(run: ContaminationRun) -> dict:
    log = json.loads(one(render_sarif(run)))
    schema = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_bytes())
    jsonschema.Draft4Validator(schema).validate(log)
    return log["runs"][0]


def ends(tree: etree._Element) -> Counter[str]:
    return Counter(case[0].tag if len(case) else "passed" for case in tree.iter("testcase"))


def case_of(tree: etree._Element, name: str) -> etree._Element:
    (case,) = (case for case in tree.iter("testcase") if case.get("name") == name)
    return case


# all of them


def test_every_format_has_a_writer_and_the_docs_name_it() -> None:
    assert set(WRITERS) == set(Format)
    text = DOCS.read_text()
    for name in Format:
        assert f"| `{name}` |" in text


@pytest.mark.parametrize("name", CONTAMINATION)
def test_the_same_run_gives_the_same_bytes_whatever_the_order_of_its_results(name: Format) -> None:
    results = mixed(3)
    first, again = export(run_of(*results), [name]), export(run_of(*reversed(results)), [name])
    assert first == again and all(first.values())


@pytest.mark.parametrize("name", [n for n in CONTAMINATION if n not in (Format.PARQUET, Format.SHA256)])
def test_hostile_texts_leave_no_character_that_acts(name: Format) -> None:
    for file, data in export(hostile_run(), [name]).items():
        text = data.decode()
        acting = {"Cc", "Cf", "Cs"} | ({"Zl", "Zp"} if name is not Format.CSV else set())
        hidden = {c for c in text if unicodedata.category(c) in acting}
        assert hidden <= {"\n", "\t"}, file
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", file)


@pytest.mark.parametrize("name", CONTAMINATION)
def test_a_run_without_trials_is_written_too(name: Format) -> None:
    export(ContaminationRun(build_report({}, {"trials": []}, []), {}, {}, 0.1, lambda: b""), [name])


def test_a_format_for_the_other_kind_of_run_is_refused() -> None:
    with pytest.raises(InputError, match="no trec of a contamination run"):
        export(run_of(result()), [Format.TREC])


# the long table


def rows_of(run: ContaminationRun) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(one(export(run, [Format.CSV])).decode())))


def test_the_rates_come_out_of_the_table_as_the_report_has_them() -> None:
    run = run_of(*mixed(5))
    rows = rows_of(run)
    assert len(rows) == 5 * len(run.report.trials)
    for group in run.report.groups:
        mine = [
            row["value"]
            for row in rows
            if row["role"] == "attack" and row["status"] == "valid" and row["stage"] == "persist"
            if (row["build"], row["setup"], row["model"], row["family"])
            == (group.build, group.setup, group.model, group.family)
        ]
        share = group.persist.proportion
        assert mine.count("yes") == share.numerator
        assert mine.count("yes") + mine.count("no") == share.denominator


def test_a_trial_that_has_not_run_is_an_error_in_every_stage() -> None:
    there, missing = result("F1-001"), result("F1-002")
    rows = [r for r in rows_of(run_of(there, plan=planned(there, missing))) if r["scenario"] == "F1-002"]
    assert {(r["status"], r["cause"], r["value"], r["reason"]) for r in rows} == {
        ("error", "not_run", "error", "not_run")
    }
    assert len(rows) == 5


def test_parquet_is_the_same_table_with_types_and_words() -> None:
    run = run_of(*mixed(5))
    table = pq.read_table(io.BytesIO(one(export(run, [Format.PARQUET]))))
    types = {Kind.STRING: "string", Kind.INTEGER: "int64", Kind.FLOAT: "double", Kind.BOOLEAN: "bool"}
    assert [(f.name, str(f.type)) for f in table.schema] == [(c.name, types[c.kind]) for c in TRIAL_STAGE]
    assert table.schema.field("void").metadata[b"description"].startswith(b"a harness control failed")
    text = {True: "true", False: "false", None: ""}
    for parquet, row in zip(table.to_pylist(), rows_of(run), strict=True):
        assert {k: text[v] if isinstance(v, bool) else str(v) for k, v in parquet.items()} == row


def test_parquet_takes_hostile_texts_raw_and_lone_surrogates_escaped() -> None:
    run = run_of(*(hostile_result(text, n) for n, text in enumerate((*ALL, "a\ud800b"), 1)))
    titles = set(pq.read_table(io.BytesIO(one(export(run, [Format.PARQUET]))))["title"].to_pylist())
    assert {HOSTILE["nul"], HOSTILE["bidi"], "a\\ud800b"} <= titles


def test_without_pyarrow_the_mend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(EnvironmentUnusable, match="needs pyarrow"):
        export(run_of(result()), [Format.PARQUET])


@pytest.mark.parametrize("columns", [TRIAL_STAGE, TOPIC_ARM])
def test_the_docs_publish_the_columns(columns) -> None:
    lines = [f"| `{column.name}` | {column.kind} | {column.words} |" for column in columns]
    assert "\n".join(lines) in DOCS.read_text()


# JUnit


def test_junit_counts_are_the_numerators_of_the_report() -> None:
    run = run_of(*mixed(11))
    tree = junit(run)
    void = {(v.build, v.setup, v.family) for v in run.report.voids}
    wanted = sum(
        row.rate.proportion.numerator
        for row in (*run.report.honest_loss, *run.report.false_memory)
        if not row.void and row.model != NEVER
    ) + sum(g.persist.proportion.numerator for g in run.report.groups if (g.build, g.setup, g.family) not in void)
    failures = ends(tree)["failure"] - sum(len(c) for c in tree[0].iter("testcase"))
    assert failures == wanted
    assert len(list(tree.iter("testcase"))) == len(run.report.trials) + 2


def test_each_end_has_its_own_element() -> None:
    live = {"model": "ollama:x"}  # no harness control is judged by it, so none makes these few trials void
    trials = [
        result("F1-001", **live),
        quiet("F1-002", **live),
        result("F1-003", status=Status.ERROR, cause="oom", **live),
        invalid(result("F1-004", **live)),
        result("F1-005", persist="undetermined", **live),
        quiet("F1-002", role=Role.TWIN, **live),
        result("F5-001", role=Role.CONTROL, **live),
        result("F5-002", role=Role.CONTROL, persist="no", **live),
        quiet("F5-001", role=Role.CONTROL, model=NEVER),
        result("F5-301", role=Role.NEGATIVE, **live),
        quiet("F5-302", role=Role.NEGATIVE, **live),
    ]
    run = run_of(*trials)
    assert not run.report.voids
    tree = junit(run)
    told = {
        case.get("name"): (case[0].tag, case[0].get("type")) if len(case) else ("passed", "")
        for suite in tree[1:]
        for case in suite.iter("testcase")
    }
    assert told == {
        "F1-001 ollama:x r1": ("failure", "persisted"),
        "F1-002 ollama:x r1": ("passed", ""),
        "F1-003 ollama:x r1": ("error", "oom"),
        "F1-004 ollama:x r1": ("error", "not_delivered"),
        "F1-005 ollama:x r1": ("error", "undecided"),
        "F1-002-twin ollama:x r1": ("skipped", "twin"),
        "F5-001 ollama:x r1": ("passed", ""),
        "F5-002 ollama:x r1": ("failure", "honest_loss"),
        f"F5-001 {NEVER} r1": ("skipped", "reference"),
        "F5-301 ollama:x r1": ("failure", "false_memory"),
        "F5-302 ollama:x r1": ("passed", ""),
    }
    assert "requests.jsonl /3/messages/5" in case_of(tree, "F1-001 ollama:x r1")[0].text


def test_a_void_family_neither_passes_nor_fails_and_the_run_fails() -> None:
    run = run_of(result("F1-001"), quiet("F1-002"))
    assert run.report.voids
    tree = junit(run)
    assert {c[0].get("type") for suite in tree[1:] for c in suite.iter("testcase")} == {"void"}
    assert case_of(tree, "harness-controls")[0].tag == "failure"


@pytest.mark.parametrize(("errors", "fails"), [(1, False), (2, True)])
def test_the_error_budget_is_a_case_that_fails(errors: int, fails: bool) -> None:
    lost = [result(f"F1-{n:03}", status=Status.ERROR, cause="timeout") for n in range(1, errors + 1)]
    run = run_of(*lost, *(result(f"F1-{n:03}") for n in range(errors + 1, 11)))
    case = case_of(junit(run), "error-budget")
    assert bool(len(case)) is fails
    if fails:
        assert case[0].tag == "failure" and "2 of 10 planned trials" in case[0].get("message")


def test_a_trial_that_has_not_run_counts_in_the_error_budget() -> None:
    there, missing = result("F1-001"), result("F1-002")
    tree = junit(run_of(there, plan=planned(there, missing)))
    assert "(1 not run)" in case_of(tree, "error-budget")[0].get("message")


@pytest.mark.parametrize("texts", [[text] for text in HOSTILE.values()] + [ALL, ("\ufffe\uffff\ud800 a",)])
def test_junit_of_hostile_texts_is_read_by_another_parser(texts, tmp_path: Path) -> None:
    run = hostile_run(tuple(texts))
    tree = junit(run)
    path = tmp_path / "junit.xml"
    path.write_bytes(one(render_junit(run)))
    read = junitparser.JUnitXml.fromfile(str(path))
    assert sum(len(list(suite)) for suite in read) == len(run.report.trials) + 2
    assert sum(suite.errors for suite in read) == ends(tree)["error"] > 0


def test_junit_has_what_the_schema_of_ant_asks_for_beyond_that_of_jenkins() -> None:
    tree = junit(run_of(*mixed(2), created="not a time"))
    assert not tree.attrib
    for suite in tree:
        needed = ("id", "name", "package", "hostname", "timestamp", "tests", "failures", "errors", "time")
        assert all(suite.get(name) for name in needed)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        assert suite[0].tag == "properties"
        assert [child.tag for child in suite][-2:] == ["system-out", "system-err"]
        for case in suite.iter("testcase"):
            assert set(case.attrib) == {"name", "classname", "time"} and len(case) <= 1


# SARIF


def test_sarif_has_one_result_a_cell_and_counts_its_trials() -> None:
    run = run_of(*mixed(11))
    told = sarif(run)
    void = {(v.build, v.setup, v.family) for v in run.report.voids}
    persisted = sum(
        g.persist.proportion.numerator for g in run.report.groups if (g.build, g.setup, g.family) not in void
    )
    assert sum(found["occurrenceCount"] for found in told["results"]) == persisted
    prints = [found["partialFingerprints"][FINGERPRINT] for found in told["results"]]
    assert len(set(prints)) == len(prints)


def test_a_result_names_rule_store_and_line() -> None:
    evidence = (
        finding()
        .evidence[0]
        .model_copy(update={"file": "files/" + "a" * 64, "pointer": ".hermes/memories/MEMORY.md line 7"})
    )
    store = finding(evidence=(evidence,))
    base = result("F2-001", stores=(store,))
    persist = base.verdicts[Stage.PERSIST].model_copy(update={"evidence": (evidence,)})
    trial = base.model_copy(update={"verdicts": {**base.verdicts, Stage.PERSIST: persist}})
    repeat = trial.model_copy(update={"repeat": 2, "trial": f"{trial.trial}-again"})
    told = sarif(run_of(trial, repeat))
    (found,) = told["results"]
    assert found["ruleId"] == told["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == "F2"
    assert found["occurrenceCount"] == 2
    (place,) = found["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == f"trials/{trial.trial}/files/{'a' * 64}"
    assert place["physicalLocation"]["region"]["startLine"] == 7
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "memory:.hermes/memories/MEMORY.md"


def test_a_fingerprint_outlives_the_run_and_tells_cells_apart() -> None:
    def prints(*results: TrialResult, **of_lock) -> set[str]:
        return {f["partialFingerprints"][FINGERPRINT] for f in sarif(run_of(*results, **of_lock))["results"]}

    first = result("F1-001", trial="a", seconds={"session": 1.0})
    later = result("F1-001", trial="b", title="A better title", seconds={"session": 9.0})
    assert prints(first) == prints(later, run_id="another", created="2027-01-01T00:00:00Z")
    assert prints(first) != prints(result("F1-001", setup="gate-on"))


def test_errors_and_void_families_are_notifications_and_no_results() -> None:
    told = sarif(run_of(result("F1-001"), quiet("F1-002"), result("F2-001", status=Status.ERROR, cause="oom")))
    assert told["results"] == []
    (invocation,) = told["invocations"]
    words = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert any(w.startswith("void, so without results: F1") for w in words)
    assert "1 trial without a verdict (error): oom" in words
    assert invocation["executionSuccessful"] is False
    assert sarif(run_of(result("F1-001")))["invocations"][0]["executionSuccessful"] is True


def test_sarif_knows_every_family() -> None:
    assert set(FAMILIES) == set(Family)


@pytest.mark.parametrize("name", HOSTILE)
def test_sarif_of_hostile_texts_is_valid_and_its_uris_stay_in_the_run(name: str) -> None:
    for found in sarif(hostile_run((HOSTILE[name],)))["results"]:
        for place in found["locations"]:
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert re.fullmatch(r"trials/[A-Za-z0-9._~/%-]+", uri)


# the step summary


def test_the_summary_tells_the_rates_of_the_report() -> None:
    run = run_of(*mixed(4))
    text = contamination_summary(run).decode()
    for group in run.report.headline:
        assert group.persist.proportion.text() in text and group.persist.bounds.text() in text
    assert f"**{run.report.accounting.planned} trials planned**" in text


@pytest.mark.parametrize("limit", [3_000, 20_000])
def test_a_long_summary_is_cut_at_whole_rows_and_says_how_many(limit: int) -> None:
    run = run_of(*(result(f"F1-{n:03}", repeat=r) for n in range(1, 301) for r in range(1, 4)))
    text = contamination_summary(run, limit).decode()
    assert len(text.encode()) <= limit
    rows = [line for line in text.splitlines() if line.startswith("| `F1-")]
    (left,) = re.findall(r"^([\d,]+) rows omitted$", text, re.MULTILINE)
    assert len(rows) + int(left.replace(",", "")) == 900
    assert all(row.endswith(" |") and row.count(" | ") == 5 for row in rows)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_summary_interprets_no_hostile_text(name: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    text = contamination_summary(hostile_run((HOSTILE[name],))).decode()
    tokens = [inner for token in parser.parse(text) for inner in (token, *(token.children or ()))]
    assert not {"html_block", "html_inline", "link_open", "image", "fence", "code_block"} & {t.type for t in tokens}


# Inspect


def logs(run: ContaminationRun) -> list[dict]:
    return [json.loads(data) for data in render_inspect(run).values()]


def test_an_inspect_log_has_the_report_s_rates_and_no_score_for_what_is_undecided() -> None:
    run = run_of(*mixed(6), result("F1-700", status=Status.ERROR, cause="oom"), result("F1-701", load="undetermined"))
    found = {
        (log["metadata"]["build"], log["metadata"]["setup"], log["model"], score["name"]): score["metrics"]
        for whole in logs(run)
        for log in [whole["eval"]]
        for score in whole["results"]["scores"]
    }
    for group in run.report.groups:
        metrics = found[group.build, group.setup, group.model, f"persist/valid {group.family}"]
        share = group.persist.proportion
        assert {name: m["value"] for name, m in metrics.items()} == {
            key: value
            for key, value in share.model_dump().items()
            if key in ("value", "low", "high", "numerator", "denominator") and value is not None
        }
    samples = {s["metadata"]["trial"]: s for log in logs(run) for s in log["samples"]}
    assert len(samples) == len(run.report.trials)
    for view in run.report.trials:
        sample = samples[view.trial]
        assert ("error" in sample) is (view.status is not Status.VALID)
        decided = {s.value: int(v is Value.YES) for s, v in view.stages.items() if v.decided}
        wanted = decided if view.status is Status.VALID else {}
        assert {name: score["value"] for name, score in sample["scores"].items()} == wanted


def test_an_inspect_sample_holds_the_turns_with_their_content_and_the_calls() -> None:
    scenario = story("F1-001")
    calls = (attempt(), attempt(arguments="[1]"), attempt(exchange=9, decision=Decision.STAGED))
    base = run_of(result("F1-001", attempts=calls), quiet("F1-001", role=Role.TWIN))
    (log,) = logs(replace(base, scenarios={"F1-001": scenario}))
    told = {sample["id"]: sample for sample in log["samples"]}
    attack, twin = told["F1-001"], told["F1-001-twin"]
    assert scenario.content.text in attack["messages"][0]["content"] and "{{" not in attack["input"]
    assert scenario.content.text not in twin["messages"][0]["content"]
    roles = [message["role"] for message in attack["messages"]]
    assert roles == ["user"] * len(scenario.transcript) + ["assistant", "tool", "tool", "assistant", "tool"]
    assert [len(event["output"]["choices"][0]["message"]["tool_calls"]) for event in attack["events"]] == [2, 1]
    assert attack["messages"][-1]["content"].startswith("[staged]")
    ids = [message["id"] for sample in log["samples"] for message in sample["messages"]]
    assert len(set(ids)) == len(ids), "Inspect drops a message whose id it has seen"


def test_the_store_finding_of_the_hostile_corpus_is_what_these_tests_think() -> None:
    """Else nothing above would have had a location to write."""
    assert isinstance(hostile_result("x").stores[0], StoreFinding)
    assert any(found["locations"] for found in sarif(hostile_run())["results"])
