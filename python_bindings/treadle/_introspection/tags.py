"""Tags: what is known of an operator beside its schema."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import functools
from typing import List, Tuple

from treadle import _C


class Tag(enum.Enum):
    """Properties of an operator. Treadle's own operators have these: pointwise, random, changes the
    geometry of its argument, has results that depend on values."""

    __module__ = "treadle"  # what pickles name

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace_view = 6
    maybe_aliasing_or_mutating = 7
    needs_contiguous_strides = 8
    needs_exact_strides = 9
    needs_fixed_stride_order = 10
    nondeterministic_bitwise = 11
    nondeterministic_seeded = 12
    pointwise = 13
    pt2_compliant_tag = 14
    view_copy = 15

    def __str__(self) -> str:
        return f"Tag.{self.name}"


# Words of entries that are other words here.
_WORDS = {"random": "nondeterministic_seeded"}


@functools.lru_cache(maxsize=None)
def _tags_of(name: str) -> Tuple[Tag, ...]:
    from treadle._introspection.explain import entry_of

    if _C._describe_operator(name)["kind"] == "pointwise":
        return (Tag.pointwise,)
    entry = entry_of(name)
    words = [_WORDS.get(word, word) for word in entry["tags"]] if entry else []
    return tuple(Tag[word] for word in words if word in Tag.__members__)


def tags_of_generated(name: str) -> List[Tag]:
    """The tags of an operator of the library's own."""
    return list(_tags_of(name))
