"""The parts of Jacobians and their products: inputs set apart, gradients of some of the
outputs, and the derivative along a direction.

    inputs = set_apart((x,), connected=False)       # leaves of their own
    outputs = (f(*inputs),)
    vjp = gradients(outputs, inputs, (v,))           # J^T v
    jvp = Pushforward(outputs, inputs).along((u,))   # J u

Backward is linear in the gradients it starts from: g(w) = J^T w. So its own gradient with respect
to w, started from u, is J u, for every w ("the double backward trick"). A function need be nothing
more than twice differentiable for that.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from treadle import _C
from treadle.autograd import function
from treadle.autograd.grad_mode import enable_grad

Tensor = _C.Tensor
MaybeTensors = Tuple[Optional[Tensor], ...]


def set_apart(
    tensors: Sequence[Tensor], connected: bool, requires_grad: bool = True
) -> Tuple[Tensor, ...]:
    """A new tensor over each of `tensors`, so that a use of it differs from a use of the original.

    Where `connected`, gradients flow on to originals that require them; the others are leaves.
    """
    return tuple(
        t.view_as(t)
        if connected and t.requires_grad
        else t.detach().requires_grad_(requires_grad and is_differentiable(t))
        for t in tensors
    )


def is_differentiable(tensor: Tensor) -> bool:
    """Whether tensors of this dtype have gradients."""
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def gradients(
    outputs: Sequence[Optional[Tensor]],
    inputs: Sequence[Tensor],
    grad_outputs: Optional[Sequence[Optional[Tensor]]] = None,
    create_graph: bool = False,
) -> MaybeTensors:
    """The gradient for each input, None where no output depends on it. The graph is kept.

    Outputs that are None or do not require grad count as constants.
    """
    starts = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(o, s) for o, s in zip(outputs, starts) if o is not None and o.requires_grad]
    wanted = tuple(x for x in inputs if x.requires_grad)
    if not pairs or not wanted:
        return (None,) * len(inputs)
    roots, starts = zip(*pairs)
    found = iter(_C._grad(roots, wanted, starts, True, create_graph, True))
    return tuple(next(found) if x.requires_grad else None for x in inputs)


def or_zeros(values: Sequence[Optional[Tensor]], like: Sequence[Tensor]) -> Tuple[Tensor, ...]:
    """The values, and zeros where there is none."""
    return tuple(_C.zeros_like(x) if v is None else v for v, x in zip(values, like))


def units(tensor: Tensor) -> Iterator[Tensor]:
    """For each element, a tensor of the same form with a one there and zeros elsewhere."""
    for i in range(tensor.numel()):
        unit = _C.zeros((tensor.numel(),), dtype=tensor.dtype, device=tensor.device)
        unit[i] = 1
        yield unit.reshape(tensor.shape)


class Pushforward:
    """Derivatives of `outputs` along directions of `inputs`."""

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self.outputs = tuple(outputs)
        with enable_grad():
            # Any finite values do: they do not enter the result.
            self.starts = tuple(
                _C.zeros_like(o).requires_grad_(is_differentiable(o)) for o in self.outputs
            )
            with function.in_forward_mode():
                self.pulled = gradients(self.outputs, inputs, self.starts, create_graph=True)

    def along(
        self, direction: Sequence[Optional[Tensor]], create_graph: bool = False
    ) -> MaybeTensors:
        """The derivative of each output, None where it is no function of the inputs."""
        return gradients(self.pulled, self.starts, direction, create_graph)


# ---- whole matrices ----


def _stacked(parts: List[Tensor], dim: int, output: Tensor, x: Tensor, like: Tensor) -> Tensor:
    """The rows or columns of a Jacobian as one tensor; an empty one has none."""
    form = output.shape + x.shape
    if not parts:
        return _C.zeros(form, dtype=like.dtype, device=like.device)
    return _C.stack(parts, dim).reshape(form)


def jacobian_rows(
    output: Tensor,
    inputs: Sequence[Tensor],
    create_graph: bool = False,
    filled: Callable[[MaybeTensors, Sequence[Tensor]], Tuple[Tensor, ...]] = or_zeros,
) -> List[Tensor]:
    """The Jacobian of one output by each input, row by row through backward; `filled` says what
    stands where there is no derivative."""
    rows: List[List[Tensor]] = [[] for _ in inputs]
    for unit in units(output):
        found = gradients((output,), inputs, (unit,), create_graph)
        for row, value in zip(rows, filled(found, inputs)):
            row.append(value)
    return [_stacked(row, 0, output, x, x) for row, x in zip(rows, inputs)]


def jacobian_columns(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], create_graph: bool = False
) -> List[List[Tensor]]:
    """The Jacobian of each output by each input, column by column along the inputs."""
    push = Pushforward(outputs, inputs)
    zeros = tuple(_C.zeros_like(x) for x in inputs)
    blocks: List[List[Tensor]] = [[] for _ in outputs]
    for j, x in enumerate(inputs):
        columns: List[List[Tensor]] = [[] for _ in outputs]
        for unit in units(x):
            found = push.along((*zeros[:j], unit, *zeros[j + 1 :]), create_graph)
            for column, value in zip(columns, or_zeros(found, outputs)):
                column.append(value)
        for block, column, output in zip(blocks, columns, outputs):
            block.append(_stacked(column, -1, output, x, output))
    return blocks
