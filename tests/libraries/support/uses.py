"""Functions that the programs of tests/libraries share. Each program is about one library; a
function marked `use` does what the library's own documentation shows, and returns numbers.

    @use("tensors rearranged by the names of their dimensions")
    def rearranged():
        return einops.rearrange(torch.arange(6.0).reshape(2, 3), "a b -> b a")

    if __name__ == "__main__":
        main("einops")

A program takes one argument: the file that it writes its results to, as JSON. ./dev libraries runs
them all and compares the numbers.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.metadata
import json
import random
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy
import torch

_uses: Dict[str, Callable[[], Any]] = {}


def use(title: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Mark a function as a use; the title is a line of the table."""

    def mark(function: Callable[[], Any]) -> Callable[[], Any]:
        _uses[title] = function
        return function

    return mark


def numbers(value: Any) -> List[Any]:
    """The result of a use, as a flat list of numbers and texts. An array of more than eight numbers
    is its shape, its mean, its root of the mean square, and its first and last numbers."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.to_dense() if value.layout != torch.strided else value).float().numpy()
    if isinstance(value, numpy.ndarray):
        if value.size <= 8:
            return [*value.shape, *(float(x) for x in value.reshape(-1))]
        flat = value.astype("float64").reshape(-1)
        ends = [*flat[:2], *flat[-2:]]
        return [*value.shape, *map(float, (flat.mean(), (flat**2).mean() ** 0.5, *ends))]
    if isinstance(value, dict):
        return [number for key in value for number in [str(key), *numbers(value[key])]]
    if isinstance(value, (list, tuple)):
        return [number for part in value for number in numbers(part)]
    if isinstance(value, (bool, int, str)):
        return [value]
    return [float(value)]


def draw(*shape: int) -> Any:
    """Normal numbers, the same on every library: generators of different libraries differ."""
    return torch.from_numpy(numpy.random.randn(*shape)).float()


def uniform(*shape: int) -> Any:
    """Numbers between 0 and 1, as draw() makes them."""
    return torch.from_numpy(numpy.random.rand(*shape)).float()


def settle(model: Any) -> Any:
    """The model with drawn numbers in place of the weights and biases that it drew itself."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.copy_(draw(*parameter.shape) / (parameter[0].numel() ** 0.5))
            elif name.endswith("bias") or (parameter != parameter.reshape(-1)[:1]).any():
                parameter.copy_(0.1 * draw(*parameter.shape))
    return model


def descend(model: Any, loss: Callable[[], Any], steps: int = 3, optimizer: Any = None) -> List:
    """Train a model for a few steps; the losses."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def _result(title: str, function: Callable[[], Any]) -> Dict[str, Any]:
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    start = time.process_time()
    result: Dict[str, Any] = {"use": title}
    try:
        result["numbers"] = numbers(function())
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    return result | {"seconds": round(time.process_time() - start, 2)}


def main(distribution: str) -> None:
    """Run the uses of a program, or those whose titles hold the text that is the second argument,
    and write the results."""
    warnings.simplefilter("ignore")
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    results = {
        "distribution": distribution,
        "version": importlib.metadata.version(distribution),
        "uses": [_result(title, _uses[title]) for title in _uses if wanted in title],
    }
    text = json.dumps(results, indent=1)
    if len(sys.argv) > 1 and sys.argv[1] != "-":
        Path(sys.argv[1]).write_text(text)
    else:
        print(text)
