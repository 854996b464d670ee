"""What differs between two sessions of Hermes that are the same: random ids, times, and how long code ran."""

from __future__ import annotations

import re

# Behind backslashes where an answer is quoted within another; in the name of a staged write's file, too.
_STAGED_ID = re.compile(rb"""(id\\*": *\\*"|pending/[a-z]+/|write ')[0-9a-f]{8}\b""")
_STAGED_TIME = re.compile(rb'(created_at\\*": *)[0-9.]+')
_EXECUTED = re.compile(rb'(duration_seconds\\*": *)[0-9.]+')
_DAY = re.compile(rb"(Conversation started: )[A-Z][a-z]+, [A-Z][a-z]+ [0-9]{1,2}, [0-9]{4}")
_DELEGATED = re.compile(rb"\bdeleg_[0-9a-f]{8}\b")
_CLOCK = re.compile(rb"\b[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?")
_TOOK = re.compile(rb"((?:duration: |api_calls=[0-9]+, |\())[0-9]+(?:\.[0-9]+)?s\b")


def without_ids(data: bytes) -> bytes:
    """Without what differs on one day: the id and time of each staged write, and how long code ran."""
    return _EXECUTED.sub(rb"\g<1>0", _STAGED_TIME.sub(rb"\g<1>0", _STAGED_ID.sub(rb"\1-", data)))


def comparable(data: bytes) -> bytes:
    """Without what differs on another day or machine as well: dates, times, and the ids and times of delegations."""
    for pattern, put in ((_DAY, rb"\1-"), (_DELEGATED, b"deleg_-"), (_CLOCK, b"-"), (_TOOK, rb"\g<1>0s")):
        data = pattern.sub(put, data)
    return without_ids(data)
