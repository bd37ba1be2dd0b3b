"""Seeds and states of the random numbers of the device beside the CPU."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

from treadle.accelerator import _module


def _of_device(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(_module(name), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}() of the module of the device; RuntimeError where there is none."
    return function


get_rng_state = _of_device("get_rng_state")
get_rng_state_all = _of_device("get_rng_state_all")
initial_seed = _of_device("initial_seed")
manual_seed = _of_device("manual_seed")
manual_seed_all = _of_device("manual_seed_all")
seed = _of_device("seed")
seed_all = _of_device("seed_all")
set_rng_state = _of_device("set_rng_state")
set_rng_state_all = _of_device("set_rng_state_all")
