"""The table of retries: what it decides, and which tables are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lab.errors import InputError
from lab.runs.retries import RETRIES_FILE, RetryTable, load_retries

SHIPPED = load_retries()


@pytest.mark.parametrize(
    ("cause", "more"),
    [
        ("gateway_died", 2),
        ("gateway_gone", 1),
        ("relay_failed", 1),
        ("sandbox_killed", 2),
        ("sandbox_timeout", 1),
        ("sandbox_oom", 0),
        ("sandbox_output_limit", 0),
        ("agent_raised", 0),
        ("agent_exit", 0),
        ("agent_cannot_be_imported", 0),
        ("lab_fault", 0),
        ("judge_fault", 0),
        ("recording_limit", 0),
        ("unparsable_request", 0),
        ("never_heard_of", 0),
    ],
)
def test_the_shipped_table_bounds_the_attempts(cause: str, more: int) -> None:
    allowed = [SHIPPED.again("error", cause, attempts) is not None for attempts in range(1, 5)]
    assert allowed == [attempts <= more for attempts in range(1, 5)]


@pytest.mark.parametrize("status", ["valid", "invalid"])
def test_only_errors_are_tried_again(status: str) -> None:
    assert SHIPPED.again("error", "gateway_died", 1)
    assert SHIPPED.again(status, "gateway_died", 1) is None


def rule(cause: str, more: int = 0, **other: object) -> dict[str, object]:
    return {"cause": cause, "more": more, "pause_seconds": 0, "why": "x", **other}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([], "at least 1"),
        ([rule("lab_fault")], "last rule"),
        ([rule("*"), rule("lab_fault"), rule("*")], "never reached"),
        ([rule("sandbox_*"), rule("sandbox_timeout", 1), rule("*")], "never reached"),
        ([rule("lab_fault"), rule("lab_fault", 1), rule("*")], "never reached"),
        ([rule("*", 6)], "rules.0.more"),
        ([rule("*", -1)], "rules.0.more"),
        ([rule("*", pause_seconds=1e9)], "rules.0.pause_seconds"),
        ([rule("*", because="y")], "rules.0.because"),
    ],
)
def test_a_table_that_contradicts_itself_is_one_line(tmp_path: Path, rules: list[object], words: str) -> None:
    path = tmp_path / "retries.yaml"
    path.write_text(yaml.safe_dump({"rules": rules}))
    with pytest.raises(InputError) as caught:
        load_retries(path)
    assert words in caught.value.message and "\n" not in caught.value.message and str(path) in caught.value.message


@pytest.mark.parametrize("content", [b"\xff", b"rules: [", b"5", b""])
def test_what_is_no_table_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "retries.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"retries\.yaml"):
        load_retries(path)


def test_a_lock_gives_back_the_table_it_was_made_with() -> None:
    assert RetryTable.model_validate(SHIPPED.model_dump(mode="json")) == SHIPPED
    assert RETRIES_FILE.is_file()
