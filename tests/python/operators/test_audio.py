"""torchaudio's operators against loops written out, and what they refuse."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, List

import numpy as np
import pytest

import treadle
import treadle._audio

treadle._audio.define()
ops = treadle.ops.torchaudio


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_recursive_filter(order: int) -> None:
    signal, weights = _normal(2, 3, 9), _normal(3, order) * 0.3
    weights[:, -1] = 1
    output = treadle.zeros(2, 3, 9 + order - 1, dtype=treadle.float64)
    same = ops._lfilter_core_loop(treadle.from_numpy(signal), treadle.from_numpy(weights), output)
    expected = np.zeros(output.shape)
    for b, c, i in itertools.product(range(2), range(3), range(9)):
        before = sum(expected[b, c, i + k] * weights[c, k] for k in range(order - 1))
        expected[b, c, i + order - 1] = signal[b, c, i] - before
    assert same.data_ptr() == output.data_ptr()
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-12)


def test_overdrive() -> None:
    waveform, bent, output = _normal(2, 7), _normal(2, 7) * 0.5, np.zeros((2, 7))
    before, kept = treadle.zeros(2).double(), treadle.zeros(2).double()
    made = treadle.zeros(2, 7).double()
    ops._overdrive_core_loop(
        treadle.from_numpy(waveform), treadle.from_numpy(bent), before, kept, made
    )
    for c in range(2):
        last_in = last_out = 0.0
        for i in range(7):
            last_out = bent[c, i] - last_in + 0.995 * last_out
            last_in = bent[c, i]
            output[c, i] = waveform[c, i] / 2 + last_out * 3 / 4
        assert before[c].item() == last_in and kept[c].item() == pytest.approx(last_out)
    np.testing.assert_allclose(made.numpy(), output, rtol=1e-12)


def _labels_of(path: Any) -> List[int]:
    return [label for label, _ in itertools.groupby(path) if label != 0]


@pytest.mark.parametrize("labels", [[1, 2], [2, 2], [1]])
def test_forced_align_is_the_best_of_all_ways(labels: List[int]) -> None:
    scores = _normal(1, 4, 3)
    ways = [w for w in itertools.product(range(3), repeat=4) if _labels_of(w) == labels]
    best = max(ways, key=lambda way: sum(scores[0, t, k] for t, k in enumerate(way)))
    path, same = ops.forced_align(
        treadle.from_numpy(scores), treadle.tensor([labels], dtype=treadle.int32),
        treadle.tensor([4]), treadle.tensor([len(labels)]), 0,
    )  # fmt: skip
    assert path.tolist() == [list(best)] and path.dtype == treadle.int32
    np.testing.assert_array_equal(same.numpy(), scores)


def _transducer_loss(scores: np.ndarray, labels: List[int]) -> float:
    """From the probabilities of every way: each is an order of the blanks and the labels."""
    total = 0.0
    for places in itertools.combinations(range(len(scores) - 1 + len(labels)), len(labels)):
        t = u = 0
        way = 1.0
        for i in range(len(scores) - 1 + len(labels)):
            step = labels[u] if i in places else 0
            way *= scores[t, u, step]
            t, u = (t, u + 1) if i in places else (t + 1, u)
        total += way * scores[t, u, 0]
    return -np.log(total)


def test_transducer_loss() -> None:
    logits, labels = _normal(2, 4, 3, 3).astype("float32"), [[1, 2], [2, 0]]
    lengths, counts = treadle.tensor([4, 3]), treadle.tensor([2, 1])
    arguments = (treadle.tensor(labels), lengths, counts, 0)
    losses, gradient = ops.rnnt_loss_forward(treadle.from_numpy(logits), *arguments, -1.0, True)
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = [_transducer_loss(shares[0], [1, 2]), _transducer_loss(shares[1, :3, :2], [2])]
    np.testing.assert_allclose(losses.numpy(), expected, rtol=1e-5)
    # By finite differences, one number of the first sequence and one beside the second's grid.
    moved = logits.copy()
    moved[0, 1, 1, 2] += 1e-2
    after, _ = ops.rnnt_loss_forward(treadle.from_numpy(moved), *arguments, -1.0, True)
    slope = (after[0] - losses[0]).item() / 1e-2
    assert gradient[0, 1, 1, 2].item() == pytest.approx(slope, abs=1e-2)
    assert not gradient[1, 3].any()
    _, clamped = ops.rnnt_loss_forward(treadle.from_numpy(logits), *arguments, 0.1, True)
    assert treadle.equal(clamped, gradient.clamp(-0.1, 0.1))
    _, given = ops.rnnt_loss_forward(treadle.from_numpy(np.log(shares)), *arguments, -1.0, False)
    assert given[0].sum().item() == pytest.approx(-6, abs=1e-4)  # each way takes six steps


@pytest.mark.parametrize("name", ["_torchaudio.abi3.so", "libtorchaudio.abi3.so"])
def test_the_compiled_libraries_of_torchaudio_are_replaced(tmp_path: Any, name: str) -> None:
    path = tmp_path / "torchaudio" / "lib" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    treadle.ops.load_library(path)
    assert str(path) in treadle.ops.loaded_libraries
    about = treadle.ops._torchaudio
    assert about.cuda_version() is None and about.is_align_available()


ONE = treadle.tensor([1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ops._lfilter_core_loop(
                treadle.zeros(3, 4), treadle.zeros(3, 2), treadle.zeros(1, 3, 5)
            ),
            "_lfilter_core_loop: expected a signal (batch, channels, samples) and coefficients "
            "(channels, order), got (3, 4) and (3, 2)",
        ),
        (
            lambda: ops._lfilter_core_loop(
                treadle.zeros(1, 3, 4), treadle.zeros(3, 2), treadle.zeros(1, 3, 4)
            ),
            "_lfilter_core_loop: expected an output of shape (1, 3, 5), got (1, 3, 4)",
        ),
        (
            lambda: ops.forced_align(treadle.zeros(2, 4, 3), ONE[None], ONE, ONE, 0),
            "forced_align: expected log_probs of shape (1, frames, labels) and targets of shape "
            "(1, length), got (2, 4, 3) and (1, 1)",
        ),
        (
            lambda: ops.forced_align(treadle.zeros(1, 4, 3), ONE[None], ONE, ONE, 3),
            "forced_align: expected a blank from 0 to 2, got 3",
        ),
        (
            lambda: ops.forced_align(treadle.zeros(1, 4, 3), ONE[None], ONE, ONE, 1),
            "forced_align: expected targets without the blank 1",
        ),
        (
            lambda: ops.forced_align(
                treadle.zeros(1, 4, 3), treadle.tensor([[1, 1]]), ONE * 2, ONE * 2, 0
            ),
            "forced_align: expected at least 3 frames for 2 labels, got 2",
        ),
        (
            lambda: ops.rnnt_loss_forward(
                treadle.zeros(2, 4, 3), ONE[None], ONE, ONE, 0, -1.0, True
            ),
            "rnnt_loss_forward: expected logits (batch, frames, labels + 1, kinds) and targets "
            "(batch, labels), got (2, 4, 3) and (1, 1)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == message
