"""Names of the formats; apart from the writers, which take a second to load."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """Names of the formats."""

    CSV = "csv"
    PARQUET = "parquet"
    JUNIT = "junit"
    SARIF = "sarif"
    SUMMARY = "summary"
    TREC = "trec"
    INSPECT = "inspect"
    SHA256 = "sha256"
