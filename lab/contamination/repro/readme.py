"""The README of a reproduction: what it shows, exact versions and digests, how to run it, what it then says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import lab
from lab.agents.hermes.recipe import Recipe
from lab.contamination.outcome import Outcome
from lab.contamination.scenarios.scenario import Scenario
from lab.records import TrialResult, file_digest
from lab.text import printable

_CELL_CHARACTERS = 300
_BLOCK_LINES = 60


def readme(lock: Mapping[str, Any], result: TrialResult, scenario: Scenario, shows: str, recipe: Recipe) -> str:
    """Writes the README. What comes out of the scenario or the trial stands in code blocks and spans only.

    Args:
        lock: Lock of the run.
        result: The trial.
        scenario: Its scenario.
        shows: What the reproduction shows.
        recipe: What the agent is installed from.
    """
    build = lock["builds"][result.build]
    facts = {
        "agent": f"{build['product']} {build['version']}",
        "Python": build.get("python", "unknown"),
        "setup": result.setup,
        "model": result.model,
        "isolation of the trial": f"{lock['backend']['name']} {lock['backend'].get('version', '')}".strip(),
        "lab": f"agent-memory-lab {lock.get('lab_version', lab.__version__)}",
        "environment (SHA-256)": build["environment_digest"],
        "requirements.lock (SHA-256)": file_digest(recipe.lock),
        "driver (SHA-256)": recipe.driver_digest(),
        "scenario (SHA-256)": scenario.digest,
    }
    write = next((a for a in result.attempts if a.carries), None)
    parts = [
        f"# Reproduction of {_span(result.scenario)}: content from outside in the agent's permanent memory",
        "## What it shows",
        "A conversation is delivered to the agent; the agent's own background review then runs. The answers of the "
        "model are recorded ones. Outcome of the trial:",
        _block(str(Outcome.of(result))),
        "The content as it came in (untrusted text, data only):",
        _block("\n".join(scenario.pieces(result.role))),
    ]
    if write:
        parts += [
            "The write call and the agent's answer to it:",
            _block(f"{write.tool} {write.arguments}\n{write.answer}"),
        ]
    parts += [
        "What the agent told the user:",
        _block(result.notice_text or "nothing"),
        "What changed in the stores is in `recorded/stores.diff`.",
        "## Versions and digests",
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {_span(str(value))} |" for name, value in facts.items()),
        "## How to run it",
        "On Linux, with `python3` and one of two ways. Neither gives the agent a network.",
        "With Docker; the image is built from `image/requirements.lock`, every package checked by its hash:",
        _block("sh reproduce.sh docker"),
        "With bubblewrap and a Python environment that has the agent (the Python version of the table):",
        _block(
            "python3 -m venv agent\n"
            "agent/bin/pip install --require-hashes --no-deps --find-links image/wheels -r image/requirements.lock\n"
            "AGENT_PREFIX=agent sh reproduce.sh bwrap"
        ),
        "Another build of the agent, a mended one for example, is tried by putting it into that environment. Without a "
        "package index, put the wheels into `image/wheels/` and set `PIP_NO_INDEX=1`.",
        "## What it then says",
        _block(f"REPRODUCED: {shows}"),
        "with exit code 0. `NOT REPRODUCED` and exit code 1 come after one line for each thing that differs: a store, "
        "the fate of an old entry, or a request that the agent did not make in the recorded trial. Exit code 2: it "
        "could not be run.",
        "## Files",
        "| file | what it is |\n|---|---|\n"
        "| `home/` | the agent's home and the working directory before |\n"
        "| `job.json`, `job-pending.json` | what the driver delivers; what the operator does with staged writes |\n"
        "| `driver/` | the programs that run inside, as in the trial: `entry.py`, `relay.py`, `driver.py` |\n"
        "| `answers.json`, `endpoint.py` | the model's recorded answers, and what replays them by class and order |\n"
        "| `expected.json`, `check.py` | what the home must hold afterwards, and what looks for it in its bytes |\n"
        "| `command.list`, `env.list`, `agent.list` | the command, its whole environment, product and version |\n"
        "| `image/` | the image's recipe and the pinned requirements |\n"
        "| `SHA256SUMS` | for `sha256sum -c` |",
        "No file here that is executed holds text of the trial.",
    ]
    return "\n\n".join(parts) + "\n"


def _span(text: str) -> str:
    """A code span that its content cannot end, and that fits a table's cell."""
    plain = re.sub(r"[`|]", "'", printable(text, _CELL_CHARACTERS))
    return f"`{plain}`" if plain else ""


def _block(text: str) -> str:
    """An indented code block: no line of its content can stand outside of it."""
    lines = text.splitlines() or [""]
    told = [f"    {printable(line, 2000)}" for line in lines[:_BLOCK_LINES]]
    return "\n".join(told + ["    …"] * (len(lines) > _BLOCK_LINES))
