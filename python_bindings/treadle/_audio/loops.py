"""Filters whose every output depends on outputs before it. They write into the memory they are
given, sample after sample, for all channels at once."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Tuple

from treadle._C import Tensor


def recursive_filter(signal: Tensor, coefficients: Tensor, output: Tensor) -> Tensor:
    """Take the weighted outputs before each sample from it.

    `signal` is (batch, channels, samples) and `coefficients` (channels, order), the oldest output's
    first and that of the sample itself, which is 1, last. `output`, (batch, channels, order - 1 +
    samples), begins with the outputs before the first sample and takes the rest. RuntimeError where
    the shapes do not fit.
    """
    order = coefficients.shape[-1]
    expected = (*signal.shape[:2], signal.shape[-1] + order - 1)
    if signal.dim() != 3 or coefficients.shape != (signal.shape[1], order):
        raise RuntimeError(
            "_lfilter_core_loop: expected a signal (batch, channels, samples) and coefficients "
            f"(channels, order), got {tuple(signal.shape)} and {tuple(coefficients.shape)}"
        )
    if output.shape != expected:
        raise RuntimeError(
            f"_lfilter_core_loop: expected an output of shape {expected}, got {tuple(output.shape)}"
        )
    weights = coefficients.detach().numpy()[:, : order - 1]
    inputs, outputs = signal.detach().numpy(), output.detach().numpy()
    for i in range(inputs.shape[-1]):
        before = outputs[:, :, i : i + order - 1]
        outputs[:, :, i + order - 1] = inputs[:, :, i] - (before * weights).sum(-1)
    return output


def overdrive(
    waveform: Tensor, bent: Tensor, last_in: Tensor, last_out: Tensor, output: Tensor
) -> Tuple[Tensor, Tensor, Tensor]:
    """Half of a waveform and three quarters of the bent one without its constant part, for waves
    (channels, samples); `last_in` and `last_out`, of one number a channel, end as they are after
    the last sample."""
    inputs, curve, results = (t.detach().numpy() for t in (waveform, bent, output))
    before, kept = last_in.detach().numpy(), last_out.detach().numpy()
    for i in range(inputs.shape[-1]):
        kept[...] = curve[:, i] - before + 0.995 * kept
        before[...] = curve[:, i]
        results[:, i] = inputs[:, i] * 0.5 + kept * 0.75
    return last_in, last_out, output
