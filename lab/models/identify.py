"""Who a live model is, asked of its server before a run, or why it cannot be asked."""

from __future__ import annotations

from lab.errors import InputError
from lab.models.failures import Cause, ServerFailed, one_line
from lab.models.identity import Ability, LiveModel, Sampling
from lab.models.ollama import OllamaServer
from lab.models.openai import OpenAIServer
from lab.models.probe import Probed, probe_tools
from lab.models.products import told_by
from lab.models.server import TELL_SECONDS, Told
from lab.models.spec import ModelSpec, Provider, addressed

NOT_PROBED = "not probed"
DEFAULT_CONTEXT = (
    "the context is the server's default, which it tells only of a model that is loaded: give num_ctx, or probe"
)


def identify(
    spec: ModelSpec,
    *,
    key: str = "",
    sampling: Sampling,
    context: int | None = None,
    probe: bool = True,
    seconds: float = TELL_SECONDS,
) -> LiveModel:
    """Asks a server who a model is.

    Args:
        spec: The model.
        key: Key of an OpenAI-compatible server; empty for none. Ollama's client reads its own variables.
        sampling: What the run will be asked with.
        context: What the user says that the context is; the smaller of it and of what the server tells holds.
        probe: Whether the model is asked to call a tool. A probe that could not be made leaves ``tools`` unknown.
        seconds: Time limit of each question beside the probe's.

    Raises:
        EnvironmentUnusable: The server cannot be reached, does not have the model, refuses the key, or the model
            cannot chat.
        InputError: The model is a scripted one, or names no server.
    """
    if not spec.is_live:
        raise InputError(f"{spec.text} is no live model", "ollama:NAME or openai:NAME@URL")
    spec = addressed(spec)
    server: OllamaServer | OpenAIServer
    if spec.provider is Provider.OLLAMA:
        server = OllamaServer(spec.url or None, seconds)
        told = server.tell(spec.name)
        _require_chat(spec, told)
    else:
        server = OpenAIServer(spec.url, key, seconds)
        told = told_by(server, spec.name)
    probed = probe_tools(server, spec.name, sampling) if probe else Probed(Ability.UNKNOWN, _unprobed(told))
    notes = list(told.notes)
    tokens, source = told.context, told.context_source
    if isinstance(server, OllamaServer):
        tokens, source = _ollama_context(server, spec.name, told, sampling, probe, notes)
        context = None if context == sampling.num_ctx else context  # what is sent has been settled
    tokens, source = _with_given(tokens, source, context, notes)
    if probed.tokens_per_second is not None:
        notes.append(f"tokens per second are those of the probe's answer by {probed.clock}")
    return LiveModel(
        spec=spec.text,
        provider=spec.provider,
        name=spec.name,
        url=server.url,
        server=told.server,
        digest=told.digest,
        quantisation=told.quantisation,
        parameters=told.parameters,
        template_sha256=told.template_sha256,
        context=tokens,
        context_source=source,
        tools=probed.tools,
        tools_detail=probed.detail,
        tokens_per_second=probed.tokens_per_second,
        notes=tuple(notes),
    )


def _require_chat(spec: ModelSpec, told: Told) -> None:
    # A server too old to tell capabilities is given the benefit of the doubt.
    if told.capabilities and "completion" not in told.capabilities:
        raise ServerFailed(
            f"{one_line(spec.name)} cannot chat: the server says that it can {', '.join(told.capabilities)}",
            "name a chat model: lab models list",
            cause=Cause.REFUSED,
        )


def _unprobed(told: Told) -> str:
    if not told.capabilities:
        return NOT_PROBED
    return f"{NOT_PROBED}; the server says that it can {', '.join(told.capabilities)}"


def _ollama_context(
    server: OllamaServer, model: str, told: Told, sampling: Sampling, probed: bool, notes: list[str]
) -> tuple[int | None, str]:
    """The context that requests will have: what is sent, else what the model is loaded with, never its maximum."""
    sent = sampling.num_ctx
    loaded = server.loaded_context(model) if probed else None
    if sent is None:
        if loaded is not None:
            return loaded, "/api/ps context_length of the probe, the server's default"
        if told.context is None:
            notes.append(DEFAULT_CONTEXT)
        return told.context, told.context_source
    usable = [(sent, "num_ctx sent")]
    if told.maximum is not None:
        usable.append((told.maximum, "the model's own maximum, below the num_ctx sent"))
    if loaded is not None:
        usable.append((loaded, "/api/ps context_length, below the num_ctx sent"))
    tokens, source = min(usable, key=lambda pair: pair[0])
    if tokens < sent:
        notes.append(f"num_ctx {sent} is sent, and {tokens} is what there is")
    return tokens, source


def _with_given(told: int | None, source: str, given: int | None, notes: list[str]) -> tuple[int | None, str]:
    if given is None:
        return told, source
    if told is None or given < told:
        return given, "--context"
    if given > told:
        notes.append(f"--context {given} is more than there is: {told} ({source})")
    return told, source
