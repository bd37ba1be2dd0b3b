"""The loss of a transducer: how unlikely its labels are, over all ways through the grid of frames
and labels."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Tuple

from treadle import _C, autograd
from treadle._C import Tensor
from treadle.autograd.grad_mode import enable_grad


def _loss(scores: Tensor, targets: Tensor, blank: int) -> Tensor:
    """That of one sequence: `scores` are logarithms, (frames, labels + 1, kinds)."""
    frames, places, _ = scores.shape
    stay = scores[..., blank]  # one frame further
    step = scores[:, :-1].gather(-1, targets[None, :, None].expand(frames, -1, 1))[..., 0]
    # Within a frame, place u is reached from each place before it by the steps between them.
    zero = scores.new_zeros(1)
    row = _C.cat([zero, step[0].cumsum(0)])
    for t in range(1, frames):
        reached, ways = _C.cat([zero, step[t].cumsum(0)]), row + stay[t - 1]
        row = reached + (ways - reached).logcumsumexp(0)
    return -(row[places - 1] + stay[frames - 1, places - 1])


def loss_and_gradient(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float,
    fused_log_softmax: bool,
) -> Tuple[Tensor, Tensor]:
    """The loss of each sequence, (batch,), and its gradient for `logits`, (batch, frames, labels +
    1, kinds), within -clamp and clamp where that is positive."""
    if logits.dim() != 4 or targets.dim() != 2 or targets.shape[0] != logits.shape[0]:
        raise RuntimeError(
            "rnnt_loss_forward: expected logits (batch, frames, labels + 1, kinds) and targets "
            f"(batch, labels), got {tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    with enable_grad():
        given = logits.detach().requires_grad_()
        scores = given.log_softmax(-1) if fused_log_softmax else given
        losses = _C.stack([
            _loss(scores[i, :frames, : length + 1].to(_C.float32), row[:length].long(), blank)
            for i, (frames, length, row) in enumerate(
                zip(logit_lengths.tolist(), target_lengths.tolist(), targets)
            )
        ])  # fmt: skip
        (gradient,) = autograd.grad(losses.sum(), given)
    if clamp > 0:
        gradient = gradient.clamp(-clamp, clamp)
    return losses.detach().to(logits.dtype), gradient
