"""The table ``[redact]`` of ``lab.toml``: which values are secrets, beside those that have the form or name of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lab.contamination.secrets import SHORTEST
from lab.errors import InputError

NAMES, PATTERNS = "values_from_env", "patterns"
VARIABLES = {NAMES: ("LAB_REDACT", ","), PATTERNS: ("LAB_REDACT_PATTERNS", "\n")}
"""Where each list goes: like every option, it stands in a variable first and in ``lab.toml`` next."""


def declare_key(variable: str) -> None:
    """Makes the value of a variable a secret of this process, whatever its name and form."""
    if len(os.environ.get(variable, "")) >= SHORTEST:
        names, between = VARIABLES[NAMES]
        os.environ[names] = between.join(filter(None, (os.environ.get(names, ""), variable)))


def declare_secrets(path: Path, table: Any) -> None:
    """Puts the lists into the variables from which the lab reads them, where these are not set.

    Args:
        path: ``lab.toml``, to name it.
        table: Its table ``redact``.

    Raises:
        InputError: It has another form.
    """
    if not isinstance(table, dict):
        raise InputError(f"{path}: redact is not a table", f"write [redact] and below it {NAMES} = […]")
    for key, value in table.items():
        if key not in VARIABLES:
            raise InputError(f"{path}: [redact] has no option {key!r}", f"one of [{', '.join(VARIABLES)}]")
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise InputError(f"{path}: [redact] {key} is not a list of texts", f'write {key} = ["…"]')
        variable, between = VARIABLES[key]
        os.environ.setdefault(variable, between.join(value))
