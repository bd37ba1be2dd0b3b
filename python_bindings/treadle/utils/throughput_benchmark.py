"""Times in the unit that reads best."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from treadle import _names


def format_time(
    time_us: Optional[float] = None,
    time_ms: Optional[float] = None,
    time_s: Optional[float] = None,
) -> str:
    """A time, given in one unit, with three digits behind the point. AssertionError for none, or
    several."""
    units = ((time_us, 1.0), (time_ms, 1e3), (time_s, 1e6))
    given = [(time, scale) for time, scale in units if time is not None]
    if len(given) != 1:
        raise AssertionError(f"format_time: expected one time, got {len(given)}")
    ((value, scale),) = given
    micro = value * scale
    for unit, least in (("s", 1e6), ("ms", 1e3)):
        if micro >= least:
            return f"{micro / least:.3f}{unit}"
    return f"{micro:.3f}us"


__getattr__ = _names.attributes_of(__name__)
