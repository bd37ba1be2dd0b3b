"""An optimiser for a while with other parameters and another state."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import Any, Iterator

from treadle._C import Tensor

from .optimizer import Optimizer


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Inside, `optimizer` has these parameters, in the order of its own, and this state, which is
    shaped as `state_dict()`; afterwards its own again. Tensors of the state that a step writes in
    place are changed for the caller, too; other changes are forgotten.

    ValueError where the numbers of parameters or of groups differ.
    """
    groups, state = optimizer.param_groups, optimizer.state
    saved = swapin_optim_state["param_groups"]
    sizes = [len(group["params"]) for group in groups]
    if [len(group["params"]) for group in saved] != sizes or sum(sizes) != len(swapin_parameters):
        raise ValueError(
            "swap_in_optimizer_params_and_state: expected parameters and groups as the optimizer "
            f"has them, {sizes} in its groups, got {len(swapin_parameters)} parameters and groups "
            f"of {[len(group['params']) for group in saved]}"
        )
    rest = iter(swapin_parameters.values())
    of_number: dict[int, Tensor] = {}
    swapped = []
    for group in saved:
        params = [next(rest) for _ in group["params"]]
        of_number.update(zip(group["params"], params))
        swapped.append({**group, "params": params})
    values = {
        of_number.get(key, key): dict(value) for key, value in swapin_optim_state["state"].items()
    }
    optimizer.param_groups, optimizer.state = swapped, defaultdict(dict, values)
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = groups, state
