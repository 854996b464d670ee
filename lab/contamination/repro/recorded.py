"""What a reproduction replays and expects: the model's recorded answers, and what the home held afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lab.agents.hermes.home import STORE_PLACES
from lab.contamination.scenarios.scenario import Scenario
from lab.errors import InputError
from lab.gateway import classify
from lab.gateway.exchange import Exchange, RequestClass
from lab.gateway.request import parse_request
from lab.gateway.server import CHAT_PATH
from lab.records import RuleFate, Status, Store, TrialResult, Value

PHASES = ("session", "pending")
"""Phases of a trial that decide what persists; the fresh session only shows what is loaded."""


def answers(exchanges: Sequence[Exchange], delivered: Sequence[str]) -> dict[str, Any]:
    """The recorded answers in the form that ``endpoint.py`` reads.

    Args:
        exchanges: All exchanges of the trial.
        delivered: Texts of the user turns.
    """
    return {
        "signals": {
            "review_openings": list(classify.REVIEW_OPENINGS),
            "review_closing": classify.REVIEW_CLOSING,
            "compression_opening": classify.COMPRESSION_OPENING,
            "title_opening": classify.TITLE_OPENING,
            "delegate_phrase": classify.DELEGATE_PHRASE,
            "long_enough": classify.LONG_ENOUGH,
        },
        "delivered": list(delivered),
        "phases": {phase: _phase([e for e in exchanges if e.phase == phase]) for phase in PHASES},
    }


def _phase(exchanges: Sequence[Exchange]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    pages: dict[tuple[str, str], dict[str, Any]] = {}
    for exchange in exchanges:
        body = exchange.response.data.decode("utf-8", "replace")
        given = {"status": exchange.status, "type": _content_type(body), "body": body}
        if exchange.method == "POST" and exchange.path.split("?")[0] == CHAT_PATH:
            if exchange.kind is RequestClass.UNPARSABLE:
                continue
            request = parse_request(exchange.request.data)
            shape = {"kind": exchange.kind.value, "stream": request.stream, "messages": len(request.messages)}
            found.append(shape | given)
        else:
            where = {"method": exchange.method, "path": exchange.path}
            pages[exchange.method, exchange.path] = where | given
    return {"answers": found, "pages": list(pages.values())}


def _content_type(body: str) -> str:
    return "text/event-stream" if body.startswith("data:") else "application/json"


def expected(result: TrialResult, scenario: Scenario) -> dict[str, Any]:
    """What the home must hold, in the form that ``check.py`` reads.

    Raises:
        InputError: The trial says nothing that a reproduction could show.
    """
    if result.status is not Status.VALID:
        raise InputError(f"the trial {result.trial} is {result.status}: {result.cause}", "export a valid one")
    stores = result.settled.stores if result.settled else result.stores
    unread = [s.store.value for s in stores if s.value is Value.UNDETERMINED and s.store is not Store.OTHER]
    if unread:
        raise InputError(f"in the trial {result.trial} it is not known what {', '.join(unread)} held", "export another")
    places: dict[Store, list[str]] = {}
    for place, store in STORE_PLACES.items():
        places.setdefault(store, []).append(place)
    content = scenario.content
    old = None
    # Staged writes may have changed the fate that the session left; only the session's is in the result.
    if result.rule and result.rule is not RuleFate.UNKNOWN and not result.settled:
        old = {"text": content.old, "store": content.target.value, "fate": result.rule.value}
    holding = [s.store.value for s in stores if s.value is Value.YES and s.store in places]
    told = [f"{scenario.canary} is in {' and '.join(holding)}" if holding else f"{scenario.canary} is in no store"]
    told += [f"the old entry of {content.target} is {result.rule}"] if old else []
    return {
        "canary": scenario.canary,
        "shows": ", and ".join(told),
        "stores": {
            s.store.value: {
                "places": places[s.store],
                "holds": s.value is Value.YES,
                "remembers": s.store.is_persistence,
            }
            for s in stores
            if s.store in places
        },
        "old": old,
    }


def as_json(value: Any) -> str:
    """JSON in plain ASCII: what stands in it can act on no terminal."""
    return json.dumps(value, indent=1, ensure_ascii=True, sort_keys=True) + "\n"
