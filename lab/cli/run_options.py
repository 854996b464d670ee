"""Options of ``lab run`` and ``lab resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.agents.hermes.sources import DEFAULT_BUILD
from lab.contamination.plan import DEFAULT_MODELS
from lab.contamination.scenarios.words import Family
from lab.gateway.upstream.live import Scope

ALL_FAMILIES = ",".join(Family)
ALL_DEFAULT_MODELS = list(DEFAULT_MODELS)
DEFAULT_BUILDS = [DEFAULT_BUILD]
FamiliesOption = Annotated[str, typer.Option("--families", envvar="LAB_FAMILIES", help="Families, comma-separated.")]
SelectOption = Annotated[
    str,
    typer.Option(
        "--select", help="Scenario ids and globs, comma-separated; '!' in front leaves out: 'F1-00?,F5-*,!F5-003'."
    ),
]
TagsOption = Annotated[
    str, typer.Option("--tags", help="Comma-separated: scenarios that have one of these tags; empty for all.")
]
ShardOption = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="K/N",
        help="Run the K-th of N parts, decided by scenario id; lab merge puts the parts together.",
    ),
]
BuildsOption = Annotated[
    list[str],
    typer.Option(
        "--builds",
        envvar="LAB_BUILDS",
        metavar="SPEC[,SPEC…]",
        help="Builds of the agent, comma-separated or repeated: 0.17.0, product==version, a source folder, a wheel.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        max=2**31 - 1,
        help="Order in which trials are started (0: as planned) and seeds of the trials.",
    ),
]
ModelsOption = Annotated[
    list[str],
    typer.Option(
        "--models",
        "--model",
        "-m",
        envvar="LAB_MODELS",
        metavar="MODEL[,MODEL…]",
        help="Who answers, comma-separated or repeated: scripted:POLICY (always-write, never-write, faithful, "
        "paraphrase, batch, malformed), ollama:NAME, openai:NAME@URL; or replay:RUN, which answers as recorded there.",
    ),
]
SetupsOption = Annotated[str, typer.Option("--setups", envvar="LAB_SETUPS", help="Setups, comma-separated.")]
RepeatsOption = Annotated[int, typer.Option("--repeats", min=1, max=1000, help="Trials of each cell.")]
JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", min=0, max=64, envvar="LAB_JOBS", help="Trials at once; 0: by cores and free memory."),
]
BudgetOption = Annotated[
    float,
    typer.Option(
        "--error-budget", min=0, max=1, help="Share of planned trials that may end in an infrastructure error."
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout", min=1, help="Wall seconds for one session of the agent: 120 by default, with a live model 3600."
    ),
]
ReuseOption = Annotated[
    Path | None,
    typer.Option("--reuse", help="Earlier run folder: equal cells are taken over, the rest is run."),
]
StartOption = Annotated[
    str,
    typer.Option(
        "--start",
        envvar="LAB_START",
        help="How the agent's sessions are started: cold, warm (forked from an imported agent), or auto.",
    ),
]
DryOption = Annotated[bool, typer.Option("--plan", help="Print the plan and stop.")]

_LIVE = "Live models"
ScopeOption = Annotated[
    Scope,
    typer.Option(
        "--live",
        rich_help_panel=_LIVE,
        help="Which requests a live model answers: the agent's reviews alone (the foreground is scripted, so that the "
        "content is always delivered), or all.",
    ),
]
CeilingOption = Annotated[
    bool,
    typer.Option(
        "--ceiling/--no-ceiling",
        rich_help_panel=_LIVE,
        help="Run the same scenarios under scripted:always-write and never-write, too: what the guards let through and "
        "what changes without a model.",
    ),
]
TemperatureOption = Annotated[
    float | None, typer.Option("--temperature", min=0, max=2, rich_help_panel=_LIVE, help="The agent's own by default.")
]
TopPOption = Annotated[
    float | None, typer.Option("--top-p", min=0, max=1, rich_help_panel=_LIVE, help="Nucleus of the sampling.")
]
TopKOption = Annotated[
    int | None, typer.Option("--top-k", min=1, rich_help_panel=_LIVE, help="Candidates of the sampling.")
]
MaxTokensOption = Annotated[
    int | None, typer.Option("--max-tokens", min=1, rich_help_panel=_LIVE, help="Most tokens of one answer.")
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        "--context",
        min=256,
        rich_help_panel=_LIVE,
        help="Tokens of context: Ollama loads the model with it (num_ctx); of another server, what it has.",
    ),
]
PullOption = Annotated[
    bool, typer.Option("--pull", rich_help_panel=_LIVE, help="Have Ollama fetch a model that it does not have.")
]
KeyOption = Annotated[
    str,
    typer.Option(
        "--key-env",
        rich_help_panel=_LIVE,
        metavar="VARIABLE",
        help="Variable that holds the key of an OpenAI-compatible server. It stands in no lock and no log.",
    ),
]
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", min=1, max=64, rich_help_panel=_LIVE, help="Requests to one server at once.")
]
AnswerTimeoutOption = Annotated[
    float, typer.Option("--answer-timeout", min=1, rich_help_panel=_LIVE, help="Seconds that one answer may take.")
]
BudgetTokensOption = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens",
        min=1,
        rich_help_panel=_LIVE,
        help="Tokens after which the run stops; it can go on.",
    ),
]
BudgetCostOption = Annotated[
    float | None,
    typer.Option(
        "--budget-cost",
        min=0,
        rich_help_panel=_LIVE,
        help="The same in money, by --price-in and --price-out, one of which it needs.",
    ),
]
PriceInOption = Annotated[
    float | None,
    typer.Option("--price-in", min=0, rich_help_panel=_LIVE, help="Price of a million tokens of requests."),
]
PriceOutOption = Annotated[
    float | None,
    typer.Option("--price-out", min=0, rich_help_panel=_LIVE, help="Price of a million tokens of answers."),
]
ProbeOption = Annotated[
    bool,
    typer.Option(
        "--probe/--no-probe",
        rich_help_panel=_LIVE,
        help="Ask each live model for a tool call before the run, and refuse one that makes none.",
    ),
]
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FOLDER",
        help="Also keep the exchanges alone there, for replay:FOLDER on a machine without the model. Every run folder "
        "can be replayed as it is; this one is small and has nothing of the agents' homes.",
    ),
]


def names_in(text: str) -> list[str]:
    """The names of a comma-separated option."""
    return [part.strip() for part in text.split(",") if part.strip()]
