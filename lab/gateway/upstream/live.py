"""Which requests of a trial go to the live model, and which a script answers."""

from __future__ import annotations

from enum import StrEnum

from lab.gateway.answers import Answer, Answers, Asked, Failure, Send
from lab.gateway.exchange import RequestClass
from lab.gateway.replies import error_body


class Scope(StrEnum):
    """What a live model answers of a trial."""

    REVIEW = "review"
    """Its reviews alone: the conversation before is the same for every model, and so is the fresh session after."""
    ALL = "all"
    """Every chat request, of every phase."""


class LiveAnswers:
    """A live model, with a script for what it is not asked.

    Once it has not answered, the trial is an error, so that it is not asked again: an agent repeats a request that
    failed, and each would be paid for.

    Args:
        model: The live model.
        scripted: Who answers the rest.
        scope: What the model answers.
    """

    def __init__(self, model: Answers, scripted: Answers, scope: Scope) -> None:
        self._model = model
        self._scripted = scripted
        self._scope = scope
        self._failure: Failure | None = None

    async def answer(self, asked: Asked, send: Send) -> Answer:
        """See ``Answers``."""
        if not self._is_live(asked):
            return await self._scripted.answer(asked, send)
        if self._failure:
            return Answer(error_body(self._failure.detail), "application/json", 502, self._failure)
        answer = await self._model.answer(asked, send)
        self._failure = self._failure or answer.failure
        return answer

    def _is_live(self, asked: Asked) -> bool:
        if asked.kind is RequestClass.PROBE:
            return False
        return self._scope is Scope.ALL or (asked.kind is RequestClass.REVIEW and asked.phase != "load")
