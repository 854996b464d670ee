"""Which live records an act is about, as a condition in SQL that every leg of the search shares."""

from __future__ import annotations

from lab.memories.universal.records import Scope

EXPIRED = "(r.ttl IS NOT NULL AND r.created_at + r.ttl <= :now)"
"""Whether a record's time has run out; it needs ``:now``."""

IN_SCOPE = f"(NOT {EXPIRED} AND r.trust >= :min_trust AND (:agent_id IS NULL OR r.agent_id = :agent_id))"
"""Condition on ``records r``; its values come from ``scope_values``."""


def scope_values(scope: Scope) -> dict[str, float | str | None]:
    """The values of ``IN_SCOPE``."""
    return {"now": scope.now, "min_trust": scope.min_trust, "agent_id": scope.agent_id}
