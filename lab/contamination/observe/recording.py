"""The exchanges of one trial, parsed once and told apart: foreground, reviews, delegated children and their reviews."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from lab.contamination.observe.detect import excerpt, find
from lab.errors import InputError
from lab.gateway.classify import classify, fold, is_delivered, review_prompt_index
from lab.gateway.exchange import Exchange, RequestClass, response_message
from lab.gateway.request import ChatRequest, parse_request, tool_name
from lab.records import Evidence

REQUESTS_FILE = "requests.jsonl"
REVIEW, DELEGATE_REVIEW, FOREGROUND, DELEGATE = "review", "delegate_review", "foreground", "delegate"
"""Origins of a write call."""


class Recording:
    """The exchanges of one trial.

    Args:
        exchanges: As read from ``requests.jsonl``.
        delivered: Texts of the user turns the lab delivered.
        delegate_tool: Name of the tool that starts a child agent.
        earlier: Texts of the conversation before the session, which the lab delivered as well.

    Attributes:
        brought: Every text that the lab delivered or the foreground model answered: what the agent did not make.
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        delivered: frozenset[str],
        delegate_tool: str = "",
        earlier: Iterable[str] = (),
    ) -> None:
        self.exchanges = tuple(exchanges)
        self.delivered = delivered
        self._requests: dict[int, ChatRequest] = {}
        for exchange in exchanges:
            if exchange.kind in (RequestClass.PROBE, RequestClass.UNPARSABLE):
                continue
            request = self._requests[exchange.seq] = parse_request(exchange.request.data)
            # The fresh session's turn is another one than the trial's; nothing of it is a review prompt either.
            if exchange.phase == "session" and classify(request, delivered) is not exchange.kind:
                raise InputError(
                    f"exchange {exchange.seq} is recorded as {exchange.kind}, its content says otherwise",
                    "run the trial again: delete its folder, then lab resume",
                )
        self._delegate_tool = delegate_tool
        self._goals = self._delegated_goals()
        answers = (response_message(e).get("content") for e, _ in self.of(RequestClass.FOREGROUND, "session"))
        self.brought = delivered | frozenset(earlier) | {str(answer) for answer in answers if answer}

    def of(self, kind: RequestClass, phase: str) -> Iterator[tuple[Exchange, ChatRequest]]:
        """Exchanges of one kind and phase with their parsed requests."""
        for exchange in self.exchanges:
            if exchange.kind is kind and exchange.phase == phase:
                yield exchange, self._requests[exchange.seq]

    def tools_offered(self) -> frozenset[str]:
        """Names of the tools that foreground requests of the session offered."""
        return frozenset(tool for _, request in self.of(RequestClass.FOREGROUND, "session") for tool in request.tools)

    def reviews(self) -> Iterator[tuple[Exchange, ChatRequest, int, str]]:
        """The first request of each review of the session, the index of its prompt, and whose review it is.

        Later requests of the same review hold the reviewer's own calls, which must not count as what reached it.
        """
        for exchange, request in self.of(RequestClass.REVIEW, "session"):
            prompt = review_prompt_index(request, self.delivered)
            if prompt is not None and request.rounds_after(prompt) == 0:
                yield exchange, request, prompt, self.reviewer(request)

    def reviewer(self, request: ChatRequest) -> str:
        """Whose review a request belongs to: a child's conversation begins with the goal that it was given.

        The user may have worded the goal himself. Then it is the parent's, unless his words are the goal to the letter
        and nothing in the conversation was delegated.
        """
        first = next((m.text for m in request.messages if m.role == "user"), "")
        begun = fold(first)
        if not any(goal in begun for goal in self._goals):
            return REVIEW
        typed = first in self.brought or is_delivered(first, self.delivered)
        delegates = any(tool_name(call) == self._delegate_tool for m in request.messages for call in m.tool_calls)
        return REVIEW if typed and (begun not in self._goals or delegates) else DELEGATE_REVIEW

    def origin(self, exchange: Exchange, request: ChatRequest) -> str:
        """Origin of the calls in an exchange's answer."""
        if exchange.kind is RequestClass.REVIEW:
            return self.reviewer(request)
        return DELEGATE if exchange.kind is RequestClass.DELEGATE else FOREGROUND

    def _delegated_goals(self) -> frozenset[str]:
        found = set()
        for exchange, _ in self.of(RequestClass.FOREGROUND, "session") if self._delegate_tool else ():
            for call in response_message(exchange).get("tool_calls") or []:
                if tool_name(call) != self._delegate_tool:
                    continue
                try:
                    given = json.loads(str((call.get("function") or {}).get("arguments", "")))
                except (ValueError, RecursionError):
                    continue
                tasks = [given, *(given.get("tasks") or [])] if isinstance(given, dict) else []
                found |= {fold(str(t["goal"])) for t in tasks if isinstance(t, dict) and t.get("goal")}
        return frozenset(goal for goal in found if goal)


def message_evidence(exchange: Exchange, index: int, text: str, canary: str) -> Evidence:
    """Evidence that a message of a recorded request holds the canary."""
    match = find(canary, text)
    shown = excerpt(text, match) if match else text[:320]
    return Evidence(file=REQUESTS_FILE, pointer=f"{exchange.pointer} /request/messages/{index}", excerpt=shown)
