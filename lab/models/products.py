"""What the products behind OpenAI's protocol tell of themselves: llama.cpp, vLLM, LM Studio, Ollama."""

from __future__ import annotations

from typing import Any

from lab.models.failures import Cause, ServerFailed, one_line
from lab.models.ollama_client import product
from lab.models.openai import Entry, OpenAIServer, short_number
from lab.models.server import Told, tokens
from lab.records import digest

NAMED_IDS = 6
"""Models that an error names where the wanted one is not there."""
NOT_LISTED = "the server does not list its models; that it has this one shows with the first answer"
OLLAMA_CUTS = (
    "this is Ollama behind OpenAI's protocol, by which it cannot be told num_ctx and cuts long requests silently: "
    "use ollama:NAME"
)


def told_by(server: OpenAIServer, model: str) -> Told:
    """What a server tells of one of its models.

    Args:
        server: The server.
        model: Name of the model there.

    Raises:
        ServerFailed: It cannot be asked, or it lists models and this is none of them.
    """
    try:
        entries = server.entries()
    except ServerFailed as error:
        if error.status not in (404, 405, 501):
            raise
        entries = []
    entry = next((e for e in entries if model == e.id or model in e.aliases), None)
    if entry is None and entries:
        ids = sorted(one_line(e.id) for e in entries)
        more = f" and {len(ids) - NAMED_IDS} more" if len(ids) > NAMED_IDS else ""
        raise ServerFailed(
            f"{server.url} has no model {one_line(model)}", f"one of: {', '.join(ids[:NAMED_IDS])}{more}",
            cause=Cause.MISSING,
        )  # fmt: skip
    entry = entry or Entry(id=model)
    match entry.owned_by:
        case "llamacpp":
            found = _llama_cpp(server, entry)
        case "vllm":
            found = _vllm(server, entry)
        case _:
            found = _ollama(server) or _lm_studio(server, entry) or _unknown(entry)
    return found if entries else Told(**{**vars(found), "notes": (*found.notes, NOT_LISTED)})


def _llama_cpp(server: OpenAIServer, entry: Entry) -> Told:
    props = server.document("/props") or {}
    settings = props.get("default_generation_settings")
    # Of one slot, of which a server may have several: what one request can have.
    context = tokens(settings.get("n_ctx")) if isinstance(settings, dict) else None
    listed, source = entry.context
    template = props.get("chat_template")
    meta = entry.meta
    return Told(
        server=f"llama.cpp {_word(props.get('build_info'))}".strip(),
        quantisation=_word(meta.ftype if meta else None) or _word(props.get("model_ftype")),
        parameters=short_number(meta.n_params) if meta else "",
        template_sha256=digest(template.encode("utf-8", "surrogatepass")) if isinstance(template, str) else "",
        context=context or listed,
        context_source="/props n_ctx" if context else source,
        maximum=tokens(meta.n_ctx_train) if meta else None,
    )


def _vllm(server: OpenAIServer, entry: Entry) -> Told:
    version = (server.document("/version") or {}).get("version")
    context, source = entry.context
    return Told(server=f"vllm {_word(version)}".strip(), context=context, context_source=source)


def _ollama(server: OpenAIServer) -> Told | None:
    version = (server.document("/api/version") or {}).get("version")
    return Told(server=product(_word(version)), notes=(OLLAMA_CUTS,)) if isinstance(version, str) else None


def _lm_studio(server: OpenAIServer, entry: Entry) -> Told | None:
    models = (server.document("/api/v0/models") or {}).get("data")
    rows = [row for row in models if isinstance(row, dict)] if isinstance(models, list) else []
    row = next((row for row in rows if row.get("id") == entry.id), None)
    if row is None:
        return None
    context = tokens(row.get("loaded_context_length"))
    return Told(
        server="LM Studio",
        quantisation=_word(row.get("quantization")),
        context=context,
        context_source="/api/v0/models loaded_context_length" if context else "",
        maximum=tokens(row.get("max_context_length")),
        notes=() if context else ("LM Studio tells a context only of a model that is loaded: lms load",),
    )


def _unknown(entry: Entry) -> Told:
    context, source = entry.context
    owner = f" (models of {one_line(entry.owned_by, 40)})" if entry.owned_by else ""
    return Told(
        context=context,
        context_source=source,
        notes=(f"the server does not tell what product it is{owner}",),
    )


def _word(value: Any) -> str:
    return one_line(value, 40) if isinstance(value, str) else ""
