"""explain: which operators a call has with tensors that are spread, and what each of them needs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, Sequence

from treadle.distributed.tensor import _dispatch
from treadle.distributed.tensor._dtensor_spec import DTensorSpec
from treadle.distributed.tensor._strategy import Plan


def _shown(placements: Sequence[Any]) -> str:
    return "".join(str(placement) for placement in placements)


def explain(function: Callable, *args: Any, **kwargs: Any) -> str:
    """Call a function, and return a line for each operator of DTensors that it consists of: the
    placements of its tensors, what they are changed to, and the placements of its results. All
    processes of the mesh call it together.

        >>> print(explain(treadle.mm, a, b))
        aten.mm.default: S(1), R -> S(0) = P(sum)

    An operator that no rule says how to compute in pieces is "computed whole".
    """
    lines: List[str] = []

    def see(func: Any, specs: Sequence[DTensorSpec], plan: Plan) -> None:
        arguments = []
        for spec, places in zip(specs, plan.inputs):
            text = _shown(spec.placements)
            changed = tuple(spec.placements) != tuple(places)
            arguments.append(f"{text} -> {_shown(places)}" if changed else text)
        results = ", ".join(_shown(places) for places in plan.outputs)
        line = f"{func}: {', '.join(arguments)} = {results}"
        is_whole = all(c.label is None and c.part is None for c in plan.choices)
        if is_whole and any(not spec.is_replicated() for spec in specs):
            line += ", computed whole"
        lines.append(line)

    _dispatch.observers.functions.append(see)
    try:
        function(*args, **kwargs)
    finally:
        _dispatch.observers.functions.remove(see)
    return "\n".join(lines)


__all__ = ["explain"]
