"""visualize_sharding: which process has which part of a tensor of one or two dimensions."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Dict, List, Tuple

from treadle.distributed.tensor._utils import shape_and_offset_at

Part = Tuple[Tuple[int, int], ...]  # (start, end) along each dimension


def visualize_sharding(dtensor: Any, header: str = "", use_rich: bool = False) -> str:
    """A table of the parts of a DTensor and the processes that have them. In the first process of
    the mesh it is also printed.

    Args:
        dtensor: of one or two dimensions, without Partial and _StridedShard.
        header: a line above the table.
        use_rich: refused if true: there are no colours.

    ValueError for other tensors, and for colours.
    """
    if use_rich:
        raise ValueError("visualize_sharding: expected use_rich = False, got True")
    if dtensor.numel() == 0 or dtensor.dim() not in (1, 2):
        raise ValueError(
            "visualize_sharding: expected a tensor with elements, of one or two dimensions, got "
            f"the shape {tuple(dtensor.shape)}"
        )
    mesh = dtensor.device_mesh
    parts: Dict[Part, List[str]] = {}
    for place in itertools.product(*map(range, mesh.shape)):
        shape, offset = shape_and_offset_at(dtensor.shape, mesh.shape, place, dtensor.placements)
        part = tuple((start, start + size) for start, size in zip(offset, shape))
        name = f"{mesh.device_type}:{int(mesh.mesh[place])}"
        parts.setdefault(part, []).append(name)
    lines = [header] if header else []
    for part, names in sorted(parts.items()):
        if all(end > start for start, end in part):
            ranges = ", ".join(f"{start}:{end}" for start, end in part)
            lines.append(f"[{ranges}]  {', '.join(names)}")
    text = "\n".join(lines)
    coordinate = mesh.get_coordinate()
    if coordinate is not None and not any(coordinate):
        print(text)
    return text


__all__ = ["visualize_sharding"]
