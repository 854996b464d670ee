"""Tells what a request is for, by signals that hold across the agent's versions.

The signals are texts the agent itself puts into its requests; they were the same in every release from 0.13.0 to
0.19.0. Model names, tool lists and thread names differ between releases and are not used.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from lab.gateway.exchange import RequestClass
from lab.gateway.request import ChatRequest

REVIEW_OPENINGS = (
    "Review the conversation above and consider saving to memory",
    "Review the conversation above and update the skill library",
    "Review the conversation above and update two things",
)
REVIEW_CLOSING = "You can only call memory and skill management tools. Other tools will be denied at runtime"
COMPRESSION_OPENING = "You are a summarization agent creating a context checkpoint"
TITLE_OPENING = "Generate a short, descriptive title"
DELEGATE_PHRASE = "You are a focused subagent working on a specific delegated task"


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
