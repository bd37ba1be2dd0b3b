"""Tags: what is known of an operator beside its schema."""

from __future__ import annotations

import enum
from typing import List

from treadle import _C


class Tag(enum.Enum):
    """What can be said of an operator. Of Treadle's own only `pointwise` is said."""

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


def tags_of_generated(name: str) -> List[Tag]:
    """The tags of an operator of the library's own."""
    return [Tag.pointwise] if _C._describe_operator(name)["kind"] == "pointwise" else []
