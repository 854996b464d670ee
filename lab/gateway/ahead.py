"""An answer to the agent of which the beginning may be sent before the end is there."""

from __future__ import annotations

from aiohttp import web

from lab.gateway.answers import Answer

JSON, EVENTS = "application/json", "text/event-stream"


class SentAhead:
    """An answer of which pieces may be sent before its end is there.

    Args:
        http: The request that it answers.

    Attributes:
        left: Whether the agent has hung up before the end.
    """

    def __init__(self, http: web.Request) -> None:
        self._http = http
        self._response: web.StreamResponse | None = None
        self._sent = 0
        self.left = False

    async def send(self, piece: bytes) -> None:
        """Sends a piece of an event stream; an agent that has left no longer gets it, and the answer is heard out."""
        if self.left:
            return
        try:
            if self._response is None:
                self._response = web.StreamResponse(headers={"content-type": EVENTS})
                await self._response.prepare(self._http)
            await self._response.write(piece)
        except ConnectionError:
            self.left = True
        self._sent += len(piece)

    async def end(self, answer: Answer) -> web.StreamResponse:
        """Sends what is left of an answer; one that broke off, or differs from what was sent, breaks off here too."""
        if self._response is None:
            return web.Response(
                status=answer.status, body=answer.body, headers={"content-type": answer.content_type or JSON}
            )
        if self.left or answer.failure or answer.content_type != EVENTS:
            if self._http.transport:
                self._http.transport.abort()
            return self._response
        await self._response.write(answer.body[self._sent :])
        await self._response.write_eof()
        return self._response
