"""Pipes of samples: each takes samples from another, and passes them on changed, chosen or joined.

    pipe = IterableWrapper(range(10)).filter(is_odd).map(square).batch(2)
    list(pipe)

`datapipes.iter` are those that are gone through, `datapipes.map` those that are asked by a key.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names

# These register the methods of pipes.
from . import iter, map

__getattr__ = _names.attributes_of(__name__)

__all__ = ["iter", "map"]
