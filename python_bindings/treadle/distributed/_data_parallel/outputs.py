"""The tensors that forward() returns, and the parameters that they depend on."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, Sequence, Set

from treadle._C import Tensor


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in tuples, lists, dictionaries and dataclasses."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name))


def reached_from(outputs: Sequence[Tensor]) -> Set[int]:
    """The leaves whose gradients backward() from these outputs would make, by id()."""
    nodes = [t.grad_fn for t in outputs if t.grad_fn is not None]
    found = {id(t) for t in outputs if t.is_leaf}
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if node.name() == "AccumulateGrad":
            found.add(id(node.variable))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found
