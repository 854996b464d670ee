"""``lab models`` and the live models in ``lab doctor``, against the Ollama double: not Ollama."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("ollama", reason="the models extra is not installed: pip install -e '.[models]'")

from lab.cli import doctor, models
from lab.cli.live import Asking, check_same_models
from lab.contamination.live import Live
from lab.errors import EnvironmentUnusable, ExitCode, InputError
from lab.gateway.upstream.limits import Budget, Limits
from lab.models.identify import identify
from lab.models.identity import Sampling
from lab.models.probe import TOOL, WORD
from lab.models.server import Listed
from lab.models.spec import parse_model
from tests.doubles.ollama_double import CHAT_MODEL, MODEL, OllamaDouble, Turn, serving

CALLED = Turn("two words", [(TOOL.name, {"text": WORD})])
NAME = f"{CHAT_MODEL}:latest"
SPEC = f"ollama:{CHAT_MODEL}"
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaDouble]:
    with serving() as running:
        running.models[NAME] = "c4" * 32
        monkeypatch.setenv("OLLAMA_HOST", running.url)
        monkeypatch.delenv("LAB_MODELS", raising=False)
        yield running


def lab(*arguments: str) -> Result:
    return CliRunner().invoke(models.app, arguments)


def test_list_names_the_double_as_what_it_is(double: OllamaDouble) -> None:
    found = lab("list")
    assert found.exit_code == ExitCode.OK
    assert "not Ollama (0.0.0-shim) at http://127.0.0.1" in found.output
    assert NAME in found.output.replace("\n", "")
    (listing,) = json.loads(lab("list", "--json").output)
    assert (listing["server"], listing["url"], listing["error"]) == ("not Ollama (0.0.0-shim)", double.url, "")
    assert Listed(**listing["models"][-1]).digest == "c4" * 32


def test_list_goes_on_where_one_server_is_dead(double: OllamaDouble) -> None:
    found = json.loads(lab("list", "--json", "--url", f"{NOWHERE}/v1").output)
    assert [bool(listing["error"]) for listing in found] == [False, True]
    assert found[1]["mend"]


def test_list_fails_where_no_server_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", NOWHERE)
    found = lab("list")
    assert found.exit_code == ExitCode.ENVIRONMENT
    assert "ollama serve" in found.output


@pytest.mark.parametrize("url", ["http://user:hunter2@host/v1", "http://host/v1?key=hunter2"])
def test_an_address_with_a_secret_is_not_asked_and_not_printed(double: OllamaDouble, url: str) -> None:
    found = lab("list", "--url", url)
    assert isinstance(found.exception, InputError)
    assert "hunter2" not in f"{found.output}{found.exception}"


def test_hostile_names_reach_no_terminal(double: OllamaDouble) -> None:
    double.models["\x1b[2J[red]evil\n:latest"] = "e0" * 32
    found = lab("list")
    assert found.exit_code == ExitCode.OK
    assert "\x1b[2J" not in found.output
    assert "[red]evil␤" in found.output


def test_pull_shows_that_it_is_done(double: OllamaDouble) -> None:
    double.library["double-new"] = [1000]
    found = lab("pull", "ollama:double-new")
    assert found.exit_code == ExitCode.OK
    assert "pulled: double-new" in found.output
    assert double.asked("/api/pull")[0]["model"] == "double-new"
    assert isinstance(lab("pull", "ollama:").exception, InputError)


def test_show_does_not_ask_the_model(double: OllamaDouble) -> None:
    found = lab("show", SPEC, "--context", "2048")
    assert found.exit_code == ExitCode.OK
    assert "context: 2048 tokens (num_ctx sent)" in found.output
    assert "calls tools: unknown (not probed" in found.output
    assert double.asked("/api/chat") == []
    assert json.loads(lab("show", SPEC, "--json").output)["server"] == "not Ollama (0.0.0-shim)"
    assert isinstance(lab("show", "ollama:nobody").exception, EnvironmentUnusable)


@pytest.mark.parametrize(
    ("turn", "fault", "code"),
    [
        (CALLED, "", ExitCode.OK),
        (Turn("in words"), "", ExitCode.GATE_FAILED),
        (CALLED, "500", ExitCode.ENVIRONMENT),
    ],
)
def test_probe_tells_by_its_exit_code(double: OllamaDouble, turn: Turn, fault: str, code: ExitCode) -> None:
    double.turns.append(turn)
    double.faults["/api/chat"] = fault
    found = lab("probe", SPEC, "--json")
    assert found.exit_code == code
    assert json.loads(found.stdout)["tools"] == {0: "yes", 1: "no", 4: "unknown"}[code]


def test_a_variable_that_is_named_and_not_set_is_an_error(double: OllamaDouble) -> None:
    found = lab("probe", SPEC, "--key-env", "NO_SUCH_KEY")
    assert isinstance(found.exception, InputError)


# ---- lab doctor ----


def findings(names: list[str], *, probe: bool = False) -> dict[str, Any]:
    return {finding.name: finding for finding in doctor._models(names, probe=probe)}


def test_a_resumed_run_checks_its_models_where_they_are_asked(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = identify(parse_model(SPEC), sampling=Sampling(), probe=False)
    live = Live(models={SPEC: locked})
    asking = Asking(live.scope, live.sampling, None, live.key_env, Limits(), Budget())
    monkeypatch.setenv("OLLAMA_HOST", NOWHERE)
    check_same_models(live, asking)
    double.models[NAME] = "d5" * 32
    with pytest.raises(InputError, match="no longer what the run was locked with: its digest"):
        check_same_models(live, asking)


def test_doctor_lists_what_ollama_has_and_asks_no_model(double: OllamaDouble) -> None:
    found = findings(["scripted:always-write"])
    assert set(found) == {"ollama"}
    assert found["ollama"].ok
    assert found["ollama"].detail.startswith("not Ollama (0.0.0-shim)")
    assert NAME in found["ollama"].detail
    assert double.asked("/api/chat") == []


def test_doctor_without_a_server_says_how_and_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", NOWHERE)
    found = findings([SPEC, "no such form"])
    assert [(finding.ok, finding.needed) for finding in found.values()] == [(False, False)] * 3
    assert "ollama serve" in found["ollama"].mend


def test_doctor_shows_context_tools_and_speed_of_named_models(double: OllamaDouble) -> None:
    double.turns += [CALLED, Turn("in words")]
    found = findings([SPEC], probe=True)[f"model {SPEC}"]
    assert found.ok
    assert "context 4096 (/api/ps" in found.detail
    assert "calls tools: yes" in found.detail
    assert "4 tokens/s" in found.detail
    assert not findings([SPEC], probe=True)[f"model {SPEC}"].ok
    assert findings([SPEC])[f"model {SPEC}"].ok, "without the probe only that it is reached counts"


def test_doctor_asks_all_of_ollamas_models_where_none_is_named(double: OllamaDouble) -> None:
    double.turns.append(CALLED)
    found = findings([], probe=True)
    assert found[f"model ollama:{NAME}"].ok
    assert "cannot chat" in found[f"model ollama:{MODEL}:latest"].detail


@pytest.mark.parametrize(
    ("variable", "table", "named"),
    [
        ("", {}, []),
        ("", {"run": {"models": "scripted:batch, ollama:x"}}, ["scripted:batch", "ollama:x"]),
        ("ollama:y", {"run": {"models": "ollama:x"}}, ["ollama:y"]),
    ],
)
def test_doctor_takes_the_models_of_runs(
    monkeypatch: pytest.MonkeyPatch, variable: str, table: dict[str, Any], named: list[str]
) -> None:
    import click
    import typer

    monkeypatch.setenv("LAB_MODELS", variable)
    root = typer.Context(click.Command("lab"))
    root.default_map = table
    assert doctor._named_models(typer.Context(click.Command("doctor"), parent=root)) == named
