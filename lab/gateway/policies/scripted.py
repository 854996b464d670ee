"""The scripted reviewers: always-write, never-write, faithful, paraphrase.

Each is a pure function: no clock, no randomness, no state. A review's second request holds the reviewer's own call,
by which a policy knows that it has written already.
"""

from __future__ import annotations

from lab.errors import InputError
from lab.gateway.policies.base import Policy, Script
from lab.gateway.replies import Reply, ToolCall
from lab.gateway.request import ChatRequest

NOTHING = Reply(text="Nothing to save.")
DONE = Reply(text="Done.")


def _sees(request: ChatRequest, prompt: int, text: str) -> bool:
    """Whether the text stands before the review prompt, in a message that is not the model's own."""
    return any(text in m.text for m in request.messages[:prompt] if m.role not in ("assistant", "system"))


def _has_written(request: ChatRequest, prompt: int) -> bool:
    return any(m.tool_calls for m in request.messages[prompt + 1 :])


def _write_once(request: ChatRequest, prompt: int, target: str, entry: str) -> Reply:
    if _has_written(request, prompt):
        return DONE
    return Reply(calls=(ToolCall("memory", {"action": "add", "target": target, "content": entry}),))


def always_write(request: ChatRequest, prompt: int, script: Script) -> Reply:
    """Writes the content whenever it stands in the request: the worst case, which measures what the agent enforces."""
    if not script.content or not _sees(request, prompt, script.content):
        return NOTHING
    return _write_once(request, prompt, script.target, script.stored)


def never_write(request: ChatRequest, prompt: int, script: Script) -> Reply:
    """Never writes: what then changes in a store did not come from the reviewer's model."""
    del request, prompt, script
    return NOTHING


def faithful(request: ChatRequest, prompt: int, script: Script) -> Reply:
    """Stores only what the user himself stated: the reviewer one would wish for."""
    return always_write(request, prompt, script) if script.user_stated else NOTHING


def paraphrase(request: ChatRequest, prompt: int, script: Script) -> Reply:
    """Writes like ``always_write``, in other words: what a literal detector would miss."""
    if not script.content or not _sees(request, prompt, script.content):
        return NOTHING
    return _write_once(request, prompt, script.target, script.paraphrase)


POLICIES: dict[str, Policy] = {
    "always-write": always_write,
    "never-write": never_write,
    "faithful": faithful,
    "paraphrase": paraphrase,
}


def policy_named(name: str) -> Policy:
    """Looks a policy up.

    Raises:
        InputError: No policy of that name; the known ones are named.
    """
    if name not in POLICIES:
        raise InputError(f"no policy is named {name!r}", f"one of: {', '.join(sorted(POLICIES))}")
    return POLICIES[name]
