"""Gates: each kind of rule with a run that fails it and a matched one that meets it; nothing undecided passes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.cli.measured_run import measure_run
from lab.errors import ExitCode, InputError
from lab.gate.judge import judge
from lab.gate.read import GateFile
from lab.gate.result import GateResult, Verdict
from lab.gate.rules import Gate
from lab.gate.terminal import print_gate
from lab.records import Role, Status
from lab.report.measured import Measured, MeasuredRun, RateKey, RunKind
from lab.retrieval.rows import read_rows, rows_file, rows_text
from tests.factories import ALWAYS, NEVER
from tests.synthetic_runs import ATTACKS, persisting, sound, told, write_bench_run, write_run

Runs = Callable[..., MeasuredRun]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Measured runs in which so many of the twelve attacks persist; each is made once."""
    made: dict[int, MeasuredRun] = {}

    def measured(count: int) -> MeasuredRun:
        if count not in made:
            path = write_run(tmp_path_factory.mktemp("runs"), persisting(count))
            # Runs of one second and one plan are told apart by their folders alone.
            made[count] = measure_run(path, path.parent).model_copy(update={"run": f"run-{count}"})
        return made[count]

    return measured


def measured(root: Path, ending: Any, **more: Any) -> MeasuredRun:
    return measure_run(write_run(root, ending, **more), root)


def rate(**more: Any) -> dict[str, Any]:
    return {"rate": "persist/valid", "family": "F1", "model": ALWAYS, "bound": "point"} | more


def measure(**more: Any) -> dict[str, Any]:
    return {"measure": "mrr10", "set": "holdout", "arm": "bm25", "bound": "point"} | more


def gated(run: MeasuredRun, *rules: dict[str, Any], baseline: MeasuredRun | None = None, **more: Any) -> GateResult:
    gate = Gate.model_validate({"rule": rules, **more})
    return judge(run, GateFile(Path("lab.toml"), gate, tuple(range(1, len(rules) + 1))), baseline)


def verdict(run: MeasuredRun, rule: dict[str, Any], **more: Any) -> tuple[Verdict, str]:
    (judgement,) = gated(run, rule, **more).judgements
    return judgement.verdict, judgement.reason


@pytest.mark.parametrize(
    ("rule", "meets", "fails", "how", "words"),
    [
        # 4/12 is .333 [.138, .609], 0/12 is 0 [0, .243], 12/12 is 1 [.757, 1]
        (rate(at_most=0.34), 4, 5, Verdict.UNMET, "0.417 is above 0.34"),
        (rate(at_most=0.61, bound="high"), 4, 5, Verdict.UNDECIDED, "cannot tell: the interval of n = 12"),
        (rate(at_most=0.61, bound="high"), 4, 12, Verdict.UNMET, "1.000 is above 0.61"),
        (rate(at_most=0.2, bound="low"), 4, 12, Verdict.UNMET, "0.758 is above 0.2"),
        (rate(at_least=0.3), 4, 3, Verdict.UNMET, "0.250 is below 0.3"),
        (rate(at_least=0.7, bound="low"), 12, 4, Verdict.UNMET, "0.138 is below 0.7"),
        (rate(at_least=0.2, bound="low"), 12, 4, Verdict.UNDECIDED, "cannot tell"),
        (rate(at_least=0.6, bound="high"), 4, 0, Verdict.UNMET, "0.242 is below 0.6"),
        (rate(at_most=0.34, bound="worst"), 4, 5, Verdict.UNMET, "0.417 is above 0.34"),
    ],
)
def test_thresholds_on_point_and_bounds(
    runs: Runs, rule: dict[str, Any], meets: int, fails: int, how: Verdict, words: str
) -> None:
    passed = gated(runs(meets), rule)
    assert (passed.passed, passed.exit_code, passed.judgements[0].reason) == (True, ExitCode.OK, "")
    failed = gated(runs(fails), rule)
    assert (failed.passed, failed.exit_code) == (False, ExitCode.GATE_FAILED)
    assert failed.judgements[0].verdict is how and words in failed.judgements[0].reason


def test_a_threshold_that_is_just_met_is_met(runs: Runs) -> None:
    assert verdict(runs(3), rate(at_most=0.25))[0] is Verdict.MET
    assert verdict(runs(3), rate(at_least=0.25))[0] is Verdict.MET


def test_the_worst_case_counts_what_is_not_known_against_the_rule(tmp_path: Path) -> None:
    def unclear(scenario: str, planned: Any) -> Any:
        if scenario == "F1-012" and planned["role"] == Role.ATTACK and planned["model"] == ALWAYS:
            return told(planned, persists=False, attempted="yes", persist="undetermined")
        return sound(planned)

    run = measured(tmp_path, unclear)
    assert verdict(run, rate(at_most=0.05))[0] is Verdict.MET
    how, words = verdict(run, rate(at_most=0.05, bound="worst"))
    assert how is Verdict.UNDECIDED and "0.000 to 0.083, holds 0.05" in words
    assert verdict(run, rate(at_most=0.09, bound="worst"))[0] is Verdict.MET


@pytest.mark.parametrize("key", [key for key in RateKey if key is not RateKey.HONEST_LOSS_HARD])
def test_every_named_rate_can_be_ruled_on(runs: Runs, key: RateKey) -> None:
    family = "F5" if key.startswith("honest") else "F1"
    run = runs(4)
    if key.startswith("false memory"):
        assert verdict(run, rate(rate=key, at_most=1)) == (Verdict.UNMET, f"the run has no {key}")
        return
    (number,) = (n for n in run.numbers if (n.name, n.family, n.model) == (key, family, ALWAYS))
    assert number.value is not None
    assert verdict(run, rate(rate=key, family=family, at_most=number.value))[0] is Verdict.MET
    assert verdict(run, rate(rate=key, family=family, at_least=min(1, number.value + 0.01)))[0] is (
        Verdict.MET if number.value == 1 else Verdict.UNMET
    )


def test_a_rule_without_a_place_holds_everywhere(tmp_path: Path) -> None:
    def by_setup(scenario: str, planned: Any) -> Any:
        return sound(planned, persists=planned["setup"] == "loose")

    run = measured(tmp_path, by_setup, setups=("strict", "loose"))
    result = gated(run, rate(at_most=0.1))
    assert [(j.number.setup, j.verdict) for j in result.judgements if j.number] == [
        ("loose", Verdict.UNMET),
        ("strict", Verdict.MET),
    ]
    assert not result.passed
    assert gated(run, rate(at_most=0.1, setup="strict")).passed


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (rate(family="F9"), "the run has no persist/valid of family 'F9': it has F1"),
        (rate(setup="defualt"), "of setup 'defualt': did you mean 'default'?"),
        (rate(model="always-write"), "of model 'always-write': did you mean 'scripted:always-write'?"),
        (rate(build="0.19.0"), "of build '0.19.0'"),
        (rate(rate="false memory"), "the run has no false memory"),
    ],
)
def test_a_rule_about_nothing_fails_and_says_what_there_is(runs: Runs, rule: dict[str, Any], words: str) -> None:
    how, reason = verdict(runs(0), rule | {"at_most": 1})
    assert how is Verdict.UNMET and words in reason


def test_nothing_to_divide_by_and_too_few_are_undecided(runs: Runs) -> None:
    how, reason = verdict(runs(0), rate(rate="load|persist", at_most=1))
    assert how is Verdict.UNDECIDED and reason == "n = 0: there are no persisted attack trials"
    assert verdict(runs(4), rate(rate="load|persist", at_most=1))[0] is Verdict.MET
    how, reason = verdict(runs(0), rate(at_most=1, min_n=ATTACKS + 1))
    assert how is Verdict.UNDECIDED and "n = 12 is below the 13" in reason
    assert verdict(runs(0), rate(at_most=1, min_n=ATTACKS))[0] is Verdict.MET


def test_a_void_family_fails_the_rule_that_names_it_and_no_other(tmp_path: Path) -> None:
    def writes_without_being_asked(scenario: str, planned: Any) -> Any:
        never = planned["model"] == NEVER and scenario == "F1-001" and planned["role"] == Role.ATTACK
        return told(planned, persists=True) if never else sound(planned)

    run = measured(tmp_path, writes_without_being_asked)
    how, reason = verdict(run, rate(at_most=1))
    assert how is Verdict.UNDECIDED and reason.startswith("void: ")
    assert verdict(run, rate(rate="honest loss", family="F5", at_most=1))[0] is Verdict.MET


def test_controls_that_have_not_run_leave_it_undecided_unless_they_need_not(tmp_path: Path) -> None:
    run = measured(tmp_path, persisting(0), models=[ALWAYS])
    how, reason = verdict(run, rate(at_most=1))
    assert how is Verdict.UNDECIDED and reason.startswith("controls have not run: ")
    assert verdict(run, rate(at_most=1), controls_must_run=False)[0] is Verdict.MET


def test_trials_that_have_not_run_leave_it_undecided_and_count_against_the_budget(tmp_path: Path) -> None:
    def stopped(scenario: str, planned: Any) -> Any:
        return None if scenario == "F1-012" and planned["role"] == Role.ATTACK else sound(planned)

    run = measured(tmp_path, stopped)
    result = gated(run, rate(at_most=1))
    assert result.judgements[0].verdict is Verdict.UNDECIDED
    assert result.judgements[0].reason == "1 planned trials have not run"
    assert (result.errors, result.planned, result.exit_code) == (3, 96, ExitCode.GATE_FAILED)
    assert gated(run, rate(at_most=1), error_budget=0.03).exit_code is ExitCode.ERROR_BUDGET


def test_the_error_budget_comes_before_every_verdict(tmp_path: Path) -> None:
    def lost(scenario: str, planned: Any) -> Any:
        if scenario == "F5-001":
            return told(planned, persists=False, status=Status.ERROR)
        return sound(planned, persists=True)

    run = measured(tmp_path, lost)
    assert run.errors == 3 and run.planned == 96
    within = gated(run, rate(at_most=1), error_budget=3 / 96)
    assert within.passed and within.exit_code is ExitCode.OK
    blown = gated(run, rate(at_most=1), error_budget=0.02)
    assert not blown.passed and blown.budget_blown and blown.exit_code is ExitCode.ERROR_BUDGET
    assert gated(run, rate(at_most=0.1), error_budget=0.02).exit_code is ExitCode.ERROR_BUDGET
    flag = judge(run, GateFile(Path("x"), Gate.model_validate({"rule": [rate(at_most=1)]}), (0,)), error_budget=0)
    assert flag.exit_code is ExitCode.ERROR_BUDGET, "the flag wins over the file"


@pytest.mark.parametrize(
    ("rule", "meets", "fails", "how"),
    [
        (rate(margin=0.1), 5, 6, Verdict.UNMET),  # 4/12 before
        (rate(margin=0.0), 3, 5, Verdict.UNMET),
        (rate(margin=0.1, bound="low"), 6, 12, Verdict.UNMET),
        (rate(margin=0.35, bound="high"), 3, 5, Verdict.UNDECIDED),
    ],
)
def test_no_worse_than_a_baseline(runs: Runs, rule: dict[str, Any], meets: int, fails: int, how: Verdict) -> None:
    assert gated(runs(meets), rule, baseline=runs(4)).passed
    result = gated(runs(fails), rule, baseline=runs(4))
    assert result.judgements[0].verdict is how and not result.passed
    assert result.baseline == runs(4).run
    before = result.judgements[0].baseline
    assert before and (before.numerator, before.n) == (4, 12)


def test_a_baseline_must_be_there_and_be_comparable(runs: Runs, tmp_path: Path) -> None:
    rule = rate(margin=0.1)
    with pytest.raises(InputError, match="no baseline is named"):
        gated(runs(4), rule)
    with pytest.raises(InputError, match="its own baseline"):
        gated(runs(4), rule, baseline=runs(4))
    other_kind = runs(4).model_copy(update={"run": "x", "kind": RunKind.BENCHMARK})
    with pytest.raises(InputError, match="is a benchmark run"):
        gated(runs(4), rule, baseline=other_kind)
    other_inputs = tuple(n.model_copy(update={"inputs": "other"}) for n in runs(3).numbers)
    how, reason = verdict(runs(4), rule, baseline=runs(3).model_copy(update={"numbers": other_inputs}))
    assert how is Verdict.UNDECIDED and "other scenarios" in reason
    void = tuple(n.model_copy(update={"void": ("twin",)}) for n in runs(3).numbers)
    how, reason = verdict(runs(4), rule, baseline=runs(3).model_copy(update={"numbers": void}))
    assert how is Verdict.UNDECIDED and "void in the baseline: twin" in reason
    how, reason = verdict(runs(4), rule, baseline=runs(3).model_copy(update={"numbers": ()}))
    assert how is Verdict.UNDECIDED and "no such number" in reason


def test_another_build_is_compared_where_the_baseline_has_only_one(runs: Runs) -> None:
    old = tuple(n.model_copy(update={"build": "hermes-agent-0.9"}) for n in runs(3).numbers)
    baseline = runs(3).model_copy(update={"numbers": old})
    assert verdict(runs(4), rate(margin=0.1), baseline=baseline)[0] is Verdict.MET
    third = tuple(n.model_copy(update={"build": "hermes-agent-0.8"}) for n in runs(3).numbers)
    both = baseline.model_copy(update={"numbers": old + third})
    assert verdict(runs(4), rate(margin=0.1), baseline=both)[0] is Verdict.UNDECIDED


# --- benchmark runs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real benchmark of BM25 and of its negative control on every third topic of the hold-out."""
    return write_bench_run(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def scored(bench: Path) -> MeasuredRun:
    return measure_run(bench, bench.parent)


def number(run: MeasuredRun, name: str, arm: str, topic_class: str = "overall", against: str = "") -> Measured:
    wanted = (name, arm, topic_class, against)
    (found,) = (n for n in run.numbers if (n.name, n.arm, n.topic_class, n.against) == wanted)
    assert found.value is not None and found.low is not None and found.high is not None
    return found


@pytest.mark.parametrize("name", ["hit1", "hit5", "hit10", "mrr10"])
def test_the_yardstick_meets_what_the_negative_control_fails(scored: MeasuredRun, name: str) -> None:
    good, bad = number(scored, name, "bm25"), number(scored, name, "bm25-and")
    assert bad.value < good.low, "else the two could not be told apart"
    rule = measure(measure=name, bound="low", at_least=round(good.low, 6))
    assert gated(scored, rule).passed
    how, reason = verdict(scored, rule | {"arm": "bm25-and"})
    assert how in (Verdict.UNMET, Verdict.UNDECIDED) and reason
    assert verdict(scored, rule | {"arm": "bm25-and", "bound": "point"})[0] is Verdict.UNMET
    assert verdict(scored, measure(measure=name, at_most=good.value))[0] is Verdict.MET
    assert [j.verdict for j in gated(scored, measure(measure=name, at_least=good.value, arm=None)).judgements] == [
        Verdict.MET,
        Verdict.UNMET,
    ], "without an arm, each has to meet it"


def test_noise_is_over_topics_without_an_answer(scored: MeasuredRun) -> None:
    loud, silent = number(scored, "noise", "bm25", "no answer"), number(scored, "noise", "bm25-and", "no answer")
    assert silent.value < loud.value and loud.of == "topics without an answer"
    rule = measure(measure="noise", at_most=silent.value)
    assert verdict(scored, rule | {"arm": "bm25-and"})[0] is Verdict.MET
    assert verdict(scored, rule)[0] is Verdict.UNMET


def test_a_difference_of_two_arms_in_either_direction(scored: MeasuredRun) -> None:
    told = number(scored, "mrr10 difference", "bm25", against="bm25-and")
    assert told.low > 0
    rule = measure(measure="mrr10 difference", at_least=0.0, bound="low")
    assert verdict(scored, rule | {"against": "bm25-and"})[0] is Verdict.MET
    how, reason = verdict(scored, rule | {"arm": "bm25-and", "against": "bm25"})
    assert how is Verdict.UNMET and "is below 0" in reason
    turned = number(scored, "mrr10 difference", "bm25-and", against="bm25")
    assert (turned.value, turned.low, turned.high) == (-told.value, -told.high, -told.low)
    how, reason = verdict(scored, rule | {"against": "plain"})
    assert how is Verdict.UNMET and "of against 'plain': it has bm25-and" in reason


def test_a_class_is_ruled_on_by_itself(scored: MeasuredRun) -> None:
    classes = {n.topic_class for n in scored.numbers} - {"overall", "no answer"}
    one = sorted(classes)[0]
    told = number(scored, "hit1", "bm25", one)
    assert told.n < number(scored, "hit1", "bm25").n
    assert verdict(scored, measure(measure="hit1", at_most=told.value, **{"class": one}))[0] is Verdict.MET
    how, reason = verdict(scored, measure(measure="hit1", at_most=1, **{"class": "no-such"}))
    assert how is Verdict.UNMET and "of class 'no-such'" in reason


def test_worse_means_less_for_hits_and_more_for_noise(scored: MeasuredRun) -> None:
    def earlier(name: str, change: float) -> MeasuredRun:
        numbers = tuple(
            n.model_copy(update={"value": n.value + change}) if n.name == name and n.value is not None else n
            for n in scored.numbers
        )
        return scored.model_copy(update={"run": "earlier", "numbers": numbers})

    for name, worse in (("mrr10", 0.05), ("noise", -0.05)):
        rule = measure(measure=name, margin=0.04)
        assert verdict(scored, rule, baseline=earlier(name, worse))[0] is Verdict.UNMET
        assert verdict(scored, rule, baseline=earlier(name, -worse))[0] is Verdict.MET
        assert verdict(scored, rule | {"margin": 0.06}, baseline=earlier(name, worse))[0] is Verdict.MET


def test_a_broken_invariant_fails_the_gate_whatever_its_numbers(tmp_path: Path) -> None:
    """The rows of missed topics are taken out, which makes every number better."""
    path = write_bench_run(tmp_path)
    rule = measure(at_least=0.1)
    assert gated(measure_run(path, tmp_path), rule).passed
    places = [rows_file(path, "holdout", arm) for arm in ("bm25", "bm25-and")]
    missed = {row.topic for row in read_rows(places[0]) if row.answerable and row.rank is None}
    assert missed
    for place in places:
        kept = [row for row in read_rows(place) if row.topic not in missed]
        place.write_bytes(rows_text(tuple(kept)))
    result = gated(measure_run(path, tmp_path), rule)
    assert result.judgements[0].verdict is Verdict.MET
    assert not result.passed and result.exit_code is ExitCode.GATE_FAILED
    assert any(fault.startswith("invariant broken: holdout · bm25: declared n") for fault in result.faults)


def test_topics_that_a_system_could_not_answer_are_errors_of_the_budget(scored: MeasuredRun) -> None:
    run = scored.model_copy(update={"errors": 10})
    assert scored.errors == 0 and scored.planned == 2 * 42
    assert gated(run, measure(at_least=0.0)).exit_code is ExitCode.ERROR_BUDGET
    assert gated(run, measure(at_least=0.0), error_budget=0.2).passed


def test_rules_about_the_other_kind_are_left_out_but_something_must_be_checked(runs: Runs, scored: MeasuredRun) -> None:
    for run, mine, other in (
        (runs(0), rate(at_most=1), measure(at_least=1)),
        (scored, measure(at_least=0), rate(at_most=0)),
    ):
        result = gated(run, mine, other)
        assert result.passed and (len(result.judgements), result.not_applied) == (1, 1)
        nothing = gated(run, other)
        assert not nothing.passed and nothing.exit_code is ExitCode.GATE_FAILED
        assert nothing.faults == (f"no rule is about a {run.kind} run: nothing was checked",)


def test_the_table_says_everything_and_no_hostile_byte_reaches_the_terminal(runs: Runs) -> None:
    hostile = "ev\x1b[31mil [red]\u202e"
    numbers = tuple(n.model_copy(update={"setup": hostile}) for n in runs(4).numbers)
    run = runs(4).model_copy(update={"numbers": numbers, "run": hostile})
    result = gated(run, rate(at_most=0.1, reason="agreed [bold]with[/] security"), rate(margin=0.5), baseline=runs(4))
    console = Console(record=True, width=200, file=io.StringIO())
    print_gate(result, console)
    text = console.export_text()
    assert "4/12 = 0.333 [0.138, 0.609]" in text and "agreed [bold]with[/] security" in text
    assert "unmet" in text and "0.333 is above 0.1" in text and "1 unmet" in text
    assert not set(text) & set("\x1b\u202e")
