"""Functions of tensors that are spread whose arguments may still change."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Iterator

from treadle import _names
from treadle.distributed.tensor._api import _implicit
from treadle.distributed.tensor.experimental._attention import context_parallel
from treadle.distributed.tensor.experimental._func_map import local_map
from treadle.distributed.tensor.experimental._register_sharding import register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """A block in which a tensor that is no DTensor counts as replicated beside DTensors. It has to
    be the same in all processes."""
    was = _implicit.replicates
    _implicit.replicates = True
    try:
        yield
    finally:
        _implicit.replicates = was


__getattr__ = _names.attributes_of(__name__)
