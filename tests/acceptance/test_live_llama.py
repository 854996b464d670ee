"""A whole trial with a real model on a real llama.cpp server: the plumbing, from the agent's review to the store.

The model is far too weak to be an agent's brain, and a chat template makes it call the tool. So nothing here says how
often a model is taken in; what it does is told as it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.records import Decision, Stage, TrialResult
from tests.acceptance.conftest import LabCommand
from tests.doubles.llama_server import CALLING_TEMPLATE, MEMORY_SAID, NAME, llama_server, missing

pytestmark = [pytest.mark.agent, pytest.mark.bwrap, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]


def test_a_call_held_to_its_schema_reaches_the_store(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    with llama_server(2048, CALLING_TEMPLATE) as url:
        chosen = ("--backend", bwrap, "--select", "F5-001", "--model", f"openai:{NAME}@{url}", "--no-ceiling")
        done = lab("run", *chosen, "--no-probe", "--temperature", "0", "--max-tokens", "48", "--json")
    assert done.code == 0, done.err
    (path,) = (tmp_path / "reports").glob("*/trials/*/result.json")
    result = TrialResult.model_validate_json(path.read_bytes())
    assert result.status == "valid"
    (attempt,) = result.attempts
    assert (attempt.tool, attempt.origin, attempt.decision) == ("memory", "review", Decision.APPLIED)
    assert MEMORY_SAID in attempt.arguments
    # It wrote its own words and not what the user had stated: no persistence of that, and the store is another.
    assert result.value(Stage.PERSIST).value == "no"
    assert "memory" in {store.value for store in result.changed}
    assert MEMORY_SAID in (path.parent / "stores.diff").read_text()
    assert result.model_use is not None
    assert (result.model_use.calls, result.model_use.unparsable_calls, result.model_use.uncounted) == (1, 0, 0)
    assert result.model_use.prompt_tokens > 100


def test_a_context_too_small_is_an_error_with_the_number_needed(lab: LabCommand, bwrap: str, tmp_path: Path) -> None:
    with llama_server(1024) as url:
        chosen = ("--backend", bwrap, "--select", "F5-001", "--model", f"openai:{NAME}@{url}", "--no-ceiling")
        done = lab("run", *chosen, "--no-probe", "--error-budget", "1", "--json")
    (path,) = (tmp_path / "reports").glob("*/trials/*/result.json")
    result = TrialResult.model_validate_json(path.read_bytes())
    assert (result.status, result.cause) == ("error", "model_context_too_small")
    needed = [int(word) for word in result.detail.replace(",", " ").split() if word.isdigit()]
    assert max(needed) > 1024, result.detail
    assert done.json["accounting"]["error"] == 1
