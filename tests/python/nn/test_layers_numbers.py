"""Every layer trains as PyTorch's does: twenty steps of SGD from the same weights, on the same
data, end at the same numbers. A class of layers without a case, or a reason for none, fails.

The cases stand in layers_numbers/; PyTorch's numbers beside them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import json
import pkgutil
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers_numbers.case import Case
from layers_numbers.cases import CASES, RANDOM, WITHOUT
from layers_numbers.training import STEPS, train

import treadle

KEPT = np.load(Path(__file__).parent / "layers_numbers" / "results.npz")
SHAPES: dict[str, dict[str, list[int]]] = json.loads(str(KEPT["shapes"]))


def _unpacked() -> dict[str, dict[str, np.ndarray]]:
    """The results of each case by name."""
    values, at = KEPT["values"], 0
    results: dict[str, dict[str, np.ndarray]] = {}
    for case, arrays in SHAPES.items():
        results[case] = {}
        for name, shape in arrays.items():
            size = int(np.prod(shape))
            results[case][name] = values[at : at + size].reshape(shape)
            at += size
    assert at == values.size
    return results


RESULTS = _unpacked()


def _layers() -> set[str]:
    """The layers that programs see: the classes of treadle.nn, and those of its modules."""
    namespaces = [treadle.nn]
    for module in pkgutil.iter_modules(treadle.nn.modules.__path__, "treadle.nn.modules."):
        namespaces.append(import_module(module.name))
    return {
        name
        for namespace in namespaces
        for name, value in vars(namespace).items()
        if inspect.isclass(value) and issubclass(value, treadle.nn.Module)
        if not name.startswith("_")
    }


def test_every_layer_is_trained() -> None:
    trained = {case.cls for case in CASES}
    assert not trained & {*WITHOUT, *RANDOM}
    assert _layers() == trained | {*WITHOUT} | RANDOM
    assert set(SHAPES) == {case.name for case in CASES}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_trains_as_pytorch_does(case: Case, dtype: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of functions that PyTorch gave up
        got = train(case, treadle, getattr(treadle, dtype))
    wanted = RESULTS[case.name]
    assert {name: list(array.shape) for name, array in got.items()} == SHAPES[case.name]
    assert len(got["losses"]) == STEPS
    for name, want in wanted.items():
        np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-5, err_msg=name)


# ---- Layers with random numbers ----


def _mask_of_channels(shape: tuple[int, ...], dims: int) -> tuple[int, ...]:
    """One number for each channel."""
    return shape[: len(shape) - dims] + (1,) * dims


@pytest.mark.parametrize(
    ("name", "shape", "dims"),
    [
        ("Dropout", (4, 6), 0),
        ("Dropout1d", (3, 4, 5), 1),
        ("Dropout2d", (3, 4, 3, 2), 2),
        ("Dropout3d", (3, 4, 2, 3, 2), 3),
        ("AlphaDropout", (4, 6), 0),
        ("FeatureAlphaDropout", (3, 4, 5), 1),
    ],
)
def test_trains_on_what_is_left(name: str, shape: tuple[int, ...], dims: int) -> None:
    """Twenty steps, each computed by NumPy for the numbers that the layer dropped."""
    treadle.manual_seed(3)
    p, lr = 0.4, 1.0
    rng = np.random.default_rng(0)
    layer: Any = getattr(treadle.nn, name)(p)
    x = treadle.tensor(rng.standard_normal(shape), requires_grad=True)
    optimizer = treadle.optim.SGD([x], lr=lr)
    ours, target = x.detach().numpy().copy(), rng.standard_normal(shape)
    # Klambauer and others, "Self-normalizing neural networks" (2017): dropped numbers become
    # alpha', and the result is scaled and moved back to mean 0 and variance 1.
    alpha = -1.7580993408473766
    scale = ((1 - p) * (1 + p * alpha**2)) ** -0.5
    slope, dropped, moved = (1 / (1 - p), 0.0, 0.0)
    if "Alpha" in name:
        slope, dropped, moved = scale, scale * alpha, -scale * alpha * p
    seen = np.zeros(_mask_of_channels(shape, dims))
    for _ in range(STEPS):
        optimizer.zero_grad()
        y = layer(x)
        ((y - treadle.tensor(target)) ** 2).mean().backward()
        optimizer.step()
        out = y.detach().numpy()
        is_dropped = np.isclose(out, dropped + moved, rtol=0, atol=1e-9)
        axes = tuple(range(len(shape) - dims, len(shape)))
        mask = ~is_dropped.all(axis=axes, keepdims=True)
        wanted = np.where(mask, slope * ours, dropped) + moved
        np.testing.assert_allclose(out, wanted, rtol=1e-9, atol=1e-12)
        seen += mask
        ours = ours - lr * np.where(mask, slope, 0) * 2 * (wanted - target) / target.size
        np.testing.assert_allclose(x.detach().numpy(), ours, rtol=1e-9, atol=1e-12)
    # Something was dropped, something kept, and not always the same.
    assert 0.4 < seen.mean() / STEPS < 0.8
    assert len(np.unique(seen)) > 1
    layer.eval()
    assert layer(x) is x or (layer(x) == x).all()
