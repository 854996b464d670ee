"""Frozen value objects that every floor of the lab shares: verdicts, evidence, attempts, trial results.

They are pydantic models because they are what is written to and read back from run folders: a damaged
``result.json`` must be noticed when it is read, not when its number is already in a table.
"""

from lab.records.base import Record, canonical_json, digest, file_digest, first_fault
from lab.records.trial import (
    RESULT_SCHEMA,
    Attempt,
    Evidence,
    ModelUse,
    Reach,
    Settled,
    SettledStep,
    StoreFinding,
    TrialResult,
    Verdict,
)
from lab.records.words import Decision, Notice, Role, RuleFate, Stage, Status, Store, Value

__all__ = [
    "RESULT_SCHEMA",
    "Attempt",
    "Decision",
    "Evidence",
    "ModelUse",
    "Notice",
    "Reach",
    "Record",
    "Role",
    "RuleFate",
    "Settled",
    "SettledStep",
    "Stage",
    "Status",
    "Store",
    "StoreFinding",
    "TrialResult",
    "Value",
    "Verdict",
    "canonical_json",
    "digest",
    "file_digest",
    "first_fault",
]
