"""Which placements the arguments of an operator take, and which ones its results have.

For each dimension of the mesh there is a choice: to cut along one of the labels, to compute parts
of a sum, or to compute all in every process. The one for which least must be sent is taken.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import math
from typing import Dict, List, Optional, Sequence, Tuple

from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor._labels import Label, Labelling
from treadle.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _is_shard_like,
    _StridedShard,
)

Placements = Tuple[Placement, ...]


@dataclasses.dataclass(frozen=True)
class Choice:
    """The work on one dimension of the mesh."""

    inputs: Tuple[Placement, ...]  # of each argument
    label: Label = None  # along which the arguments are cut
    factor: Optional[int] = None  # of _StridedShard, where they are cut in that way
    part: Optional[str] = None  # how parts are reduced, where the arguments are parts

    def output(self, labels: Sequence[Label], ways: Dict[str, str]) -> Placement:
        """The placement of a result with these labels."""
        if self.part is not None:
            return Partial(self.part)
        if self.label is None:
            return Replicate()
        if self.label in labels:
            return _shard(labels.index(self.label), self.factor)
        return Partial(ways[self.label])


def _shard(dim: int, factor: Optional[int]) -> Placement:
    return Shard(dim) if factor is None else _StridedShard(dim, split_factor=factor)


@dataclasses.dataclass(frozen=True)
class Input:
    """An argument: its placements, sizes, and bytes; one that is no DTensor is replicated."""

    placements: Placements
    shape: Tuple[int, ...]
    width: int

    def cost(self, mesh_dim: int, count: int, target: Placement) -> float:
        """About how many bytes a process receives, for another placement."""
        source = self.placements[mesh_dim]
        if source == target:
            return 0.0
        size = math.prod(self.shape) * self.width
        if source.is_replicate():
            return size * 1e-3  # copied, not sent
        if source.is_partial():
            return size if _is_shard_like(target) else 2.0 * size
        return size / count if _is_shard_like(target) else float(size)


def _divides(labelling: Labelling, label: str, inputs: Sequence[Input], mesh: DeviceMesh) -> bool:
    """Whether a label can be cut: its dimensions have one size, or all the same pieces."""
    sizes = {
        size
        for labels, given in zip(labelling.inputs, inputs)
        for each, size in zip(labels, given.shape)
        if each == label
    }
    if label in labelling.lengths:
        sizes.add(labelling.lengths[label])
    if labelling.needs_elements and any(_leaves_empty(size, mesh.size()) for size in sizes):
        return False
    if len(sizes) == 1:
        return True
    # The pieces of nested cuts must agree as well: no more than all processes cut a dimension.
    return all(size % mesh.size() == 0 for size in sizes)


def _leaves_empty(length: int, count: int) -> bool:
    """Whether a process gets nothing where a dimension is cut for so many."""
    return length <= -(-length // count) * (count - 1)


def _candidates(
    labelling: Labelling, inputs: Sequence[Input], mesh: DeviceMesh, mesh_dim: int
) -> List[Choice]:
    whole = Choice(tuple(Replicate() for _ in inputs))
    found: Dict[Tuple, Choice] = {}
    for i, given in enumerate(inputs):
        placement = given.placements[mesh_dim]
        if isinstance(placement, (Shard, _StridedShard)) and placement.dim < len(given.shape):
            label = labelling.inputs[i][placement.dim]
            factor = placement.split_factor if isinstance(placement, _StridedShard) else None
            if label and (label, factor) not in found:
                choice = _along(labelling, inputs, mesh, label, factor)
                if choice is not None:
                    found[label, factor] = choice
        elif isinstance(placement, Partial):
            for group in labelling.linear:
                way = placement.reduce_op
                if i in group and (way in ("sum", "avg") or labelling.moves):
                    wanted = [
                        Partial(way) if j in group else Replicate() for j in range(len(inputs))
                    ]
                    found[i, group, way] = Choice(tuple(wanted), part=way)
    return [*found.values(), whole]


def _along(
    labelling: Labelling,
    inputs: Sequence[Input],
    mesh: DeviceMesh,
    label: str,
    factor: Optional[int],
) -> Optional[Choice]:
    """The choice to cut along a label; None if that cannot be."""
    if not _divides(labelling, label, inputs, mesh):
        return None
    if factor is not None and label in labelling.lengths:
        sizes = {g.shape[x.index(label)] for x, g in zip(labelling.inputs, inputs) if label in x}
        if sizes != {labelling.lengths[label]}:
            return None
    adds = any(label not in labels for labels in labelling.outputs)
    if adds and label not in labelling.ways:
        return None
    having = {i for i, labels in enumerate(labelling.inputs) if label in labels}
    wanted: List[Placement] = []
    for i, labels in enumerate(labelling.inputs):
        if i in having:
            wanted.append(_shard(labels.index(label), factor))
        elif adds and any(i in group and group & having for group in labelling.linear):
            wanted.append(Partial(labelling.ways[label]))
        else:
            wanted.append(Replicate())
    return Choice(tuple(wanted), label=label, factor=factor)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The placements of the arguments and of the results."""

    inputs: Tuple[Placements, ...]
    outputs: Tuple[Placements, ...]
    choices: Tuple[Choice, ...]


def plan(
    labelling: Labelling,
    inputs: Sequence[Input],
    mesh: DeviceMesh,
    written: Optional[int] = None,
) -> Plan:
    """The plan for which least is sent. `written` is the argument, if any, that the first result is
    written to, whose placements stay."""
    chosen: List[Choice] = []
    for mesh_dim in range(mesh.ndim):
        count = mesh.size(mesh_dim)

        def cost(choice: Choice, mesh_dim: int = mesh_dim, count: int = count) -> float:
            total = sum(
                given.cost(mesh_dim, count, wanted) for given, wanted in zip(inputs, choice.inputs)
            )
            if written is not None:
                made = choice.output(labelling.outputs[0], labelling.ways)
                kept = inputs[written]
                result = Input((made,), kept.shape, kept.width)
                total += result.cost(0, count, kept.placements[mesh_dim])
            return total

        chosen.append(min(_candidates(labelling, inputs, mesh, mesh_dim), key=cost))
    return Plan(
        tuple(tuple(choice.inputs[i] for choice in chosen) for i in range(len(inputs))),
        tuple(
            tuple(choice.output(labels, labelling.ways) for choice in chosen)
            for labels in labelling.outputs
        ),
        tuple(chosen),
    )


def whole(inputs: Sequence[Input], results: int, mesh: DeviceMesh) -> Plan:
    """The plan to compute all in every process."""
    places = (Replicate(),) * mesh.ndim
    choice = Choice(tuple(Replicate() for _ in inputs))
    return Plan((places,) * len(inputs), (places,) * results, (choice,) * mesh.ndim)


__all__ = ["Choice", "Input", "Plan", "plan", "whole"]
