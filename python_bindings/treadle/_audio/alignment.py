"""The likeliest way of labels through time, where blanks may stand between them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Tuple

import numpy as np

from treadle import _C
from treadle._C import Tensor


def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> Tuple[Tensor, Tensor]:
    """The label of each frame, (1, frames), and `log_probs`, (1, frames, labels). RuntimeError for
    more than one sequence, a blank among `targets`, or more labels than frames can hold."""
    if log_probs.dim() != 3 or log_probs.shape[0] != 1 or targets.shape[0] != 1:
        raise RuntimeError(
            "forced_align: expected log_probs of shape (1, frames, labels) and targets of shape "
            f"(1, length), got {tuple(log_probs.shape)} and {tuple(targets.shape)}"
        )
    if not 0 <= blank < log_probs.shape[-1]:
        raise RuntimeError(
            f"forced_align: expected a blank from 0 to {log_probs.shape[-1] - 1}, got {blank}"
        )
    frames, length = int(input_lengths[0]), int(target_lengths[0])
    scores, labels = log_probs.detach()[0, :frames].numpy(), targets[0, :length].numpy()
    if (labels == blank).any():
        raise RuntimeError(f"forced_align: expected targets without the blank {blank}")
    needed = length + int((labels[1:] == labels[:-1]).sum())
    if frames < needed:
        raise RuntimeError(
            f"forced_align: expected at least {needed} frames for {length} labels, got {frames}"
        )
    # A state for each label and for the blank before each and after the last.
    states = np.full(2 * length + 1, blank)
    states[1::2] = labels
    may_skip = np.zeros(len(states), bool)
    may_skip[3::2] = labels[1:] != labels[:-1]
    best = np.full(len(states), -np.inf)
    best[:2] = scores[0, states[:2]]
    steps = np.zeros((frames, len(states)), np.int64)
    for t in range(1, frames):
        ways = np.full((3, len(states)), -np.inf)
        ways[0] = best
        ways[1, 1:] = best[:-1]
        ways[2, 2:] = np.where(may_skip[2:], best[:-2], -np.inf)
        steps[t] = ways.argmax(0)
        best = ways.max(0) + scores[t, states]
    state = len(states) - 1
    if length and best[-2] > best[-1]:
        state -= 1
    path = np.zeros(frames, np.int64)
    for t in range(frames - 1, -1, -1):
        path[t] = states[state]
        state -= steps[t, state]
    return _C.from_numpy(path)[None].to(targets.dtype), log_probs
