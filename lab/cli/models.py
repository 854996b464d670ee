"""``lab models``: which models can be reached, pulled and asked, and who they are."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Column, Table

from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import JsonOption
from lab.errors import ExitCode, InputError, LabError
from lab.models.identify import identify
from lab.models.identity import Ability, LiveModel, Sampling
from lab.models.ollama import OllamaServer
from lab.models.openai import KEY_VARIABLE, OpenAIServer, read_key
from lab.models.server import Listed, ModelServer
from lab.models.spec import Provider, parse_model, server_address

LIST_SECONDS = 10.0
MARKS = {Ability.YES: "[green]yes[/]", Ability.NO: "[red]no[/]", Ability.UNKNOWN: "[yellow]unknown[/]"}

app = typer.Typer(no_args_is_help=True, help="Look at live models: which there are, who they are, what they can do.")

SpecArgument = Annotated[str, typer.Argument(metavar="SPEC", help="ollama:NAME or openai:NAME@URL.")]
KeyOption = Annotated[
    str,
    typer.Option("--key-env", metavar="NAME", help="Variable that holds the key of an OpenAI-compatible server."),
]
ContextOption = Annotated[
    int | None,
    typer.Option(
        "--context",
        min=256,
        help="Tokens of context: Ollama loads the model with it (num_ctx); of another server, what it has.",
    ),
]


@app.callback()
def _group() -> None:
    """Look at live models: which there are, who they are, what they can do."""


@app.command("list")
def list_command(
    url: Annotated[
        list[str] | None, typer.Option("--url", help="OpenAI-compatible server, up to its /v1; may be repeated.")
    ] = None,
    key_env: KeyOption = KEY_VARIABLE,
    json: JsonOption = False,
) -> None:
    """List the models of the Ollama server at OLLAMA_HOST and of any other server.

    Exit code 4 when none of the servers answers.
    """
    # An address with credentials is refused as in the name of a model, and not printed.
    addresses = [server_address(address) for address in url or ()]
    key = read_key(key_env)
    found = [_listing("ollama", lambda: OllamaServer(seconds=LIST_SECONDS))]
    found += [_listing(address, lambda at=address: OpenAIServer(at, key, LIST_SECONDS)) for address in addresses]
    if json:
        print_json(found)
    else:
        for listing in found:
            _print_listing(listing)
    if all(listing["error"] for listing in found):
        raise typer.Exit(ExitCode.ENVIRONMENT)


@app.command("pull")
def pull_command(name: Annotated[str, typer.Argument(metavar="NAME", help="Name in Ollama's library.")]) -> None:
    """Have the Ollama server fetch a model; one that broke off goes on where it stopped."""
    name = name.removeprefix(f"{Provider.OLLAMA}:")
    if not name.strip():
        raise InputError("no model is named", "lab models pull NAME")
    pull_model(OllamaServer(), name)
    stdout.print(f"pulled: {safe(name)}", soft_wrap=True)


def pull_model(server: OllamaServer, name: str) -> None:
    """Has an Ollama server fetch a model, with progress.

    Raises:
        EnvironmentUnusable: It cannot be reached, or there is no such model.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(safe(name), total=None)

        def told(status: str, completed: int, total: int) -> None:
            bar.update(task, description=safe(f"{name}: {status}", 60))
            if total:  # the words at the end bring no numbers, and shall not take those of the last layer away
                bar.update(task, completed=completed, total=total)

        server.pull(name, told)


@app.command("show")
def show_command(
    spec: SpecArgument,
    key_env: KeyOption = KEY_VARIABLE,
    context: ContextOption = None,
    json: JsonOption = False,
) -> None:
    """Show who a model is, as its server tells it; the model itself is not asked."""
    model = identify(
        parse_model(spec), key=read_key(key_env), sampling=Sampling(num_ctx=context), context=context, probe=False
    )
    _print_model(model, json)


@app.command("probe")
def probe_command(
    spec: SpecArgument,
    key_env: KeyOption = KEY_VARIABLE,
    context: ContextOption = None,
    json: JsonOption = False,
) -> None:
    """Ask a model to call a tool, and measure how fast it answers.

    Exit code 1 when it does not call the tool, 4 when it could not be asked.
    """
    parsed, key = parse_model(spec), read_key(key_env)
    with console.status(f"asking {safe(spec)} …"):
        model = identify(parsed, key=key, sampling=Sampling(num_ctx=context), context=context, probe=True)
    _print_model(model, json)
    if model.tools is not Ability.YES:
        raise typer.Exit(ExitCode.GATE_FAILED if model.tools is Ability.NO else ExitCode.ENVIRONMENT)


def summary(model: LiveModel) -> str:
    """What decides whether a model can be used, in one line."""
    context = f"context {model.context} ({model.context_source})" if model.context else "context not told"
    speed = f", {model.tokens_per_second:g} tokens/s" if model.tokens_per_second is not None else ""
    server = f"{model.server}, " if model.server else ""
    return f"{server}{context}, calls tools: {model.tools} ({model.tools_detail}){speed}"


def _listing(name: str, make: Any) -> dict[str, Any]:
    """What a server lists, or why it does not; fit for JSON."""
    found: dict[str, Any] = {"server": name, "url": "", "error": "", "mend": "", "models": []}
    try:
        server: ModelServer = make()
        found["url"] = server.url
        found["models"] = [vars(model) for model in server.listed()]
        if isinstance(server, OllamaServer):
            found["server"] = server.version()
    except LabError as error:
        found["error"], found["mend"] = error.message, error.mend
    return found


def _print_listing(listing: dict[str, Any]) -> None:
    where = f" at {safe(listing['url'])}" if listing["url"] and listing["url"] != listing["server"] else ""
    if listing["error"]:
        mend = f" [dim]→ {safe(listing['mend'])}[/]" if listing["mend"] else ""
        stdout.print(f"{safe(listing['server'])}: {safe(listing['error'])}{mend}", soft_wrap=True)
        return
    if not listing["models"]:
        stdout.print(f"{safe(listing['server'])}{where}: no models", soft_wrap=True)
        return
    name = Column("model", overflow="fold")  # whole, because it is there to be copied
    table = Table(name, "parameters", "quantisation", "size", "context", "digest", title_justify="left", box=None)
    table.title = f"{safe(listing['server'])}{where}"
    for row in listing["models"]:
        model = Listed(**row)
        table.add_row(
            safe(model.name),
            safe(model.parameters),
            safe(model.quantisation),
            decimal(model.size) if model.size is not None else "",
            str(model.context or ""),
            safe(model.digest[:12]),
        )
    stdout.print(table)


def _print_model(model: LiveModel, json: bool) -> None:
    if json:
        print_json(model.model_dump(mode="json"))
        return
    rows = {
        "model": model.spec,
        "server": f"{model.server or 'product not told'} at {model.url}",
        "digest": model.digest,
        "quantisation": model.quantisation,
        "parameters": model.parameters,
        "template": model.template_sha256,
        "context": f"{model.context} tokens ({model.context_source})" if model.context else "",
    }
    for name, value in rows.items():
        stdout.print(f"{name}: {safe(value) if value else '[dim]not told[/]'}", soft_wrap=True)
    stdout.print(f"calls tools: {MARKS[model.tools]} ({safe(model.tools_detail)})", soft_wrap=True)
    if model.tokens_per_second is not None:
        stdout.print(f"speed: {model.tokens_per_second:g} tokens/s", soft_wrap=True)
    for note in model.notes:
        stdout.print(f"[yellow]note[/] {safe(note)}", soft_wrap=True)
