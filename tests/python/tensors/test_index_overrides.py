"""x[i] asks the class of i, where it is a tensor of a class with __torch_function__."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

import treadle


class Asked(treadle.Tensor):
    """Remembers what it was asked."""

    names: List[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.names.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_an_index_takes_over_the_call() -> None:
    x, place = treadle.arange(6).reshape(2, 3), treadle.tensor([1]).as_subclass(Asked)
    Asked.names.clear()
    assert x[place].tolist() == [[3, 4, 5]]
    assert x[place, 2].tolist() == [5] and type(x[place, 2]) is Asked
    x[0, place] = 9
    assert x.tolist() == [[0, 9, 2], [3, 4, 5]]
    assert Asked.names.count("__getitem__") == 3 and "__setitem__" in Asked.names
    Asked.names.clear()
    assert x[treadle.nn.Parameter(treadle.tensor([1]), requires_grad=False)].tolist() == [[3, 4, 5]]
    assert not Asked.names
