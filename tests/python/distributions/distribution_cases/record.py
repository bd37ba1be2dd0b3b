"""The record of a case: everything a distribution says, as lists and text."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from .cases import PROBABILITIES, Case

# Quantities that a distribution may leave out, by a NotImplementedError.
PROPERTIES = ("mean", "mode", "variance", "stddev")
METHODS = ("entropy", "perplexity")


def _lists(x: Any) -> Any:
    return x.detach().double().tolist()


def build(case: Case, module: Any) -> tuple[Any, list[Any]]:
    """The distribution of a case, and the parameters it was made of. `module` is treadle, or
    PyTorch.
    """
    parameters = []

    def t(data: Any) -> Any:
        tensor = module.tensor(data, dtype=getattr(module, case.dtype), requires_grad=True)
        parameters.append(tensor)
        return tensor

    return case.build(module.distributions, t), parameters


def record(case: Case, module: Any) -> dict[str, Any]:
    """Each quantity by its name: numbers in lists, a text, or "missing"."""
    dist, parameters = build(case, module)
    dtype = getattr(module, case.dtype)
    value = module.tensor(case.value, dtype=dtype)
    quantities = {name: (lambda name=name: getattr(dist, name)) for name in PROPERTIES}
    quantities.update({name: (lambda name=name: getattr(dist, name)()) for name in METHODS})
    quantities.update(
        log_prob=lambda: dist.log_prob(value),
        cdf=lambda: dist.cdf(value),
        icdf=lambda: dist.icdf(_probabilities(dist, module, dtype)),
        enumerate_support=dist.enumerate_support,
        enumerate_support_unexpanded=lambda: dist.enumerate_support(expand=False),
    )
    result: dict[str, Any] = {
        "batch_shape": list(dist.batch_shape),
        "event_shape": list(dist.event_shape),
        "has_rsample": dist.has_rsample,
        "has_enumerate_support": dist.has_enumerate_support,
        "repr": repr(dist).replace("torch.Size", "treadle.Size"),
        "sample_shape": list(dist.sample((2, 3)).shape),
    }
    for name, quantity in quantities.items():
        try:
            result[name] = _lists(quantity())
        except NotImplementedError:
            result[name] = "missing"
    slopes = module.autograd.grad(dist.log_prob(value).sum(), parameters, allow_unused=True)
    for i, slope in enumerate(slopes):
        result[f"log_prob_grad_{i}"] = "missing" if slope is None else _lists(slope)
    return result


def _probabilities(dist: Any, module: Any, dtype: Any) -> Any:
    """Probabilities along a new first dimension."""
    p = module.tensor(PROBABILITIES, dtype=dtype)
    return p.reshape((-1,) + (1,) * len(tuple(dist.batch_shape)))
