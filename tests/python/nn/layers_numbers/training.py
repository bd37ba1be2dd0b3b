"""Twenty steps of SGD on a case: the losses, and all that was trained.

A loss layer is trained on its own value; another layer on the mean square of its outputs' distance
from fixed targets. Inputs are trained along with the parameters, so that a layer without any is
seen, too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import zlib
from typing import Any, Iterator

import numpy as np

from .case import Case, Fixed

STEPS = 20


def _tensors(outputs: Any) -> Iterator[Any]:
    """The floating tensors among outputs."""
    if isinstance(outputs, (tuple, list)):
        for output in outputs:
            yield from _tensors(output)
    elif hasattr(outputs, "is_floating_point") and outputs.is_floating_point():
        yield outputs


def _draw(tensor: Any, rng: np.random.RandomState, scale: float) -> None:
    values = rng.standard_normal(tuple(tensor.shape)) * scale
    tensor.copy_(tensor.new_tensor(values.tolist()).reshape(tensor.shape))


def train(case: Case, torch: Any, dtype: Any) -> dict[str, np.ndarray]:
    """The losses, and what there is after the last step, by name. `torch` is PyTorch or Treadle."""
    nn = torch.nn
    rng = np.random.RandomState(zlib.crc32(case.name.encode()))
    inputs, trained = [], {}
    for place, maker in enumerate(case.inputs):
        fixed = isinstance(maker, Fixed)
        values = (maker.maker if fixed else maker)(rng)
        floating = np.issubdtype(values.dtype, np.floating)
        tensor = torch.tensor(values.tolist(), dtype=dtype if floating else None)
        if floating and not fixed:
            tensor.requires_grad_()
            trained[f"input {place}"] = tensor
        inputs.append(tensor)

    module = case.build(nn).to(dtype)
    run = case.call or (lambda module, nn, *inputs: module(*inputs))
    module.eval()
    with torch.no_grad():
        run(module, nn, *inputs)  # lazy parameters get their shapes
        for _, parameter in sorted(module.named_parameters()):
            _draw(parameter, rng, case.weights)
        for _, buffer in sorted(module.named_buffers()) if case.buffers else ():
            _draw(buffer, rng, 1.0)
    module.train()

    parameters = dict(module.named_parameters())
    optimizer = torch.optim.SGD([*parameters.values(), *trained.values()], lr=case.lr)
    targets: list[Any] = []
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        outputs = list(_tensors(run(module, nn, *inputs)))
        if not targets:
            targets = [
                output.new_tensor(rng.standard_normal(tuple(output.shape)).tolist())
                for output in outputs
            ]
        loss = sum(
            output if output.dim() == 0 else ((output - target.reshape(output.shape)) ** 2).mean()
            for output, target in zip(outputs, targets)
        )
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))

    result = {"losses": np.asarray(losses)}
    state = {**parameters, **dict(module.named_buffers()), **trained}
    for name, tensor in sorted(state.items()):
        result[name] = _array(tensor)
    module.eval()
    with torch.no_grad():
        for place, output in enumerate(_tensors(run(module, nn, *inputs))):
            result[f"output {place} in eval mode"] = _array(output)
    return result


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().double().tolist())
