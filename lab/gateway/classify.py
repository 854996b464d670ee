"""Tells what a request is for, by signals that hold across the agent's versions.

The signals are texts the agent itself puts into its requests; they were the same in every release from 0.13.0 to
0.19.0. Model names, tool lists and thread names differ between releases and are not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from lab.gateway.exchange import RequestClass
from lab.gateway.request import ChatRequest, Message

REVIEW_OPENINGS = (
    "Review the conversation above and consider saving to memory",
    "Review the conversation above and update the skill library",
    "Review the conversation above and update two things",
)
REVIEW_CLOSING = "You can only call memory and skill management tools. Other tools will be denied at runtime"
COMPRESSION_OPENING = "You are a summarization agent creating a context checkpoint"
TITLE_OPENING = "Generate a short, descriptive title"
DELEGATE_PHRASE = "You are a focused subagent working on a specific delegated task"
COMPACTION_MARK = "[CONTEXT COMPACTION"
"""Opens the summary that the agent puts in the place of a compressed conversation, in every build."""

MERGED_OPENING, MERGED_MARK = "[PRIOR CONTEXT", "COMPACTION SUMMARY BELOW]"
"""Around a message into which newer builds have merged the summary, in front of its mark."""

SUMMARY_END = "--- END OF CONTEXT SUMMARY"
"""Closes the summary, in every build."""

NOTICE_MARK = "[ASYNC DELEGATION"
"""Opens the message by which an agent hears of a child that worked in the background."""

LONG_ENOUGH = 40
"""Characters from which on a delivered turn is recognised inside a longer message as well."""


def fold(text: str) -> str:
    """The letters and digits of a text: an agent may strip or change what stands between them on the way."""
    return re.sub(r"[\W_]+", "", text)


def is_delivered(text: str, delivered: Collection[str]) -> bool:
    """Whether a message is one of the user turns that the lab delivered, or holds one.

    Args:
        text: Text of a user message.
        delivered: Texts of the turns.
    """
    if text in delivered:
        return True
    folded = fold(text)
    turns = [fold(turn) for turn in delivered]
    return any(turn == folded or (len(turn) >= LONG_ENOUGH and turn in folded) for turn in turns)


def is_summary(message: Message, brought: Collection[str]) -> bool:
    """Whether a message is, or holds, the agent's summary of a compressed conversation.

    Args:
        message: The message; a tool's result never is one.
        brought: Texts that are known to come from elsewhere: what the lab delivered, and what the model answered.
    """
    return message.role in ("user", "assistant") and _is_the_agents(message.text, _has_summary_form, brought)


def without_summary(text: str) -> tuple[str, str]:
    """Divides a message that is, or holds, a summary.

    Returns:
        The summary, and the text of the protected message into which the agent has merged it; empty where it is none.
    """
    if text.lstrip().startswith(MERGED_OPENING):
        protected, _, summary = text.rpartition(MERGED_MARK)
        return summary, protected
    summary, _, protected = text.partition(SUMMARY_END)
    return summary, protected


def is_notice(message: Message, brought: Collection[str]) -> bool:
    """Whether a message is the agent's notice of what a child has done in the background; arguments as above."""
    return message.role == "user" and _is_the_agents(message.text, _has_notice_form, brought)


def is_own(message: Message, brought: Collection[str]) -> bool:
    """Whether a message is the model's own words or the agent's instructions, and not something that came in."""
    return message.role == "system" or (message.role == "assistant" and not is_summary(message, brought))


def _is_the_agents(text: str, form: Callable[[str], bool], brought: Collection[str]) -> bool:
    """Whether a text of a form that the agent makes was made by the agent, and does not merely repeat an imitation.

    What the agent makes begins with its own mark, even where it merges an imitation into it.
    """
    if not form(text):
        return False
    folded = fold(text)
    return not any(form(other) and folded.startswith(fold(other)) for other in brought)


def _has_summary_form(text: str) -> bool:
    text = text.lstrip()
    if text.startswith(MERGED_OPENING):
        return any(part.lstrip().startswith(COMPACTION_MARK) for part in text.split(MERGED_MARK)[1:])
    return text.startswith(COMPACTION_MARK)


def _has_notice_form(text: str) -> bool:
    return text.lstrip().startswith(NOTICE_MARK)


def is_review_prompt(text: str) -> bool:
    """Whether a user message is the agent's own review prompt, whole: its opening and its closing words."""
    return text.lstrip().startswith(REVIEW_OPENINGS) and REVIEW_CLOSING in text


def review_prompt_index(request: ChatRequest, delivered: Collection[str]) -> int | None:
    """Finds the review prompt that a request answers.

    The search goes backwards over user messages, because the agent appends synthetic user messages of its own
    behind the prompt. It stops at a message that the lab delivered itself: text that a user pasted never counts as
    the agent's prompt, however well it imitates it.

    Args:
        request: The request.
        delivered: Texts of the user turns that the lab delivered.

    Returns:
        Index of the prompt in the message list, or None where the request is no review.
    """
    for index in range(len(request.messages) - 1, -1, -1):
        message = request.messages[index]
        if message.role != "user":
            continue
        if is_delivered(message.text, delivered):
            return None
        if is_review_prompt(message.text):
            return index
    return None


def classify(request: ChatRequest, delivered: Collection[str]) -> RequestClass:
    """Classifies a parsed chat request.

    A review is tested before a delegate: a child agent's own review is a review.

    Args:
        request: The request.
        delivered: Texts of the user turns that the lab delivered.
    """
    if not request.messages:
        return RequestClass.PROBE
    if review_prompt_index(request, delivered) is not None:
        return RequestClass.REVIEW
    users = [m.text for m in request.messages if m.role == "user"]
    systems = [m.text for m in request.messages if m.role == "system"]
    if len(users) == 1 and not request.tools and users[0].lstrip().startswith(COMPRESSION_OPENING):
        return RequestClass.COMPRESSION
    if any(text.lstrip().startswith(TITLE_OPENING) for text in systems):
        return RequestClass.TITLE
    if any(DELEGATE_PHRASE in text for text in systems):
        return RequestClass.DELEGATE
    return RequestClass.FOREGROUND if request.tools else RequestClass.AUXILIARY
