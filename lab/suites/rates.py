"""Makes a suite's rate from the ids of cases, so that nothing is counted that is not in its denominator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.statistics.proportions import proportion
from lab.suites.base import Rate


def rate(
    measure: str,
    *,
    system: str,
    data: str,
    counted: Iterable[str],
    among: Iterable[str],
    of: str,
    better: str = "",
    clusters: Mapping[str, str] | None = None,
    unit: str = "scenarios",
    group: Mapping[str, str] | None = None,
) -> Rate:
    """A rate from ids.

    Args:
        measure: What is measured; also what the numerator counts.
        system: Whose it is.
        data: Name of the data set.
        counted: Ids that count; a subset of ``among``.
        among: Ids they are counted among.
        of: What the denominator counts.
        better: ``high`` or ``low``.
        clusters: Unit of each id, where ids are not independent.
        unit: What the units are, in the plural.
        group: What the rate is split by.

    Raises:
        ValueError: As ``lab.statistics.proportions.proportion``.
    """
    share = proportion(counted, among, name=measure, of=of, clusters=clusters, unit=unit)
    return Rate(measure=measure, system=system, data=data, group=dict(group or {}), proportion=share, better=better)
