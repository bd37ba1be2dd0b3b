"""The operators that a device answers itself: what was called so far, and how.

>>> treadle.backends.coverage("mine")
operator      native  generated  decomposed  fallback
mm                10          0           0         0
add.Tensor         0         24           0         0
linear             0          0          10         0
sort               0          0           0         3
4 operators       10         24          10         3

A fallback is correct but slow: the tensors go to the CPU and back. Where one is a mistake it can be
made an error:

    with treadle.backends.allow_fallback("mine", False):
        train()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from treadle import _C

# How a call can be answered: by a kernel of the backend; by one that it makes of the operator's
# expression; by other operators; by the CPU.
ANSWERS = ("native", "generated", "decomposed", "fallback")


def _checked(name: str) -> str:
    kind = _C.device(name).type
    if kind not in _C._backends():
        raise RuntimeError(f"expected the name of a device with a backend, got '{name}'")
    return kind


class Coverage:
    """The calls of a device's operators since the start or reset(), up to when this was made; print
    it for a table. `device` is the kind of device, `calls` {operator: {answer: number of calls}}.
    """

    def __init__(self, device: str) -> None:
        self.device = _checked(device)
        self.calls: Dict[str, Dict[str, int]] = {}
        for operator, answer, calls in _C._backend_counts(self.device):
            of = self.calls.setdefault(operator.partition("::")[2] or operator, {})
            of[answer] = of.get(answer, 0) + calls

    def as_dict(self) -> Dict[str, Dict[str, int]]:
        """{answer: {operator: number of calls}}, the operators that are called most first."""
        table: Dict[str, Dict[str, int]] = {answer: {} for answer in ANSWERS}
        for operator in self._ordered():
            for answer, calls in self.calls[operator].items():
                table[answer][operator] = calls
        return table

    def total(self, answer: Optional[str] = None) -> int:
        """How many calls there were: in all, or of those answered in one way."""
        return sum(
            calls
            for of in self.calls.values()
            for how, calls in of.items()
            if answer is None or how == answer
        )

    def reset(self) -> None:
        """Start to count again: this table is empty then, and the device's counts are 0."""
        _C._backend_reset_counts(self.device)
        self.calls = {}

    def __getitem__(self, answer: str) -> Dict[str, int]:
        return self.as_dict()[answer]

    def __iter__(self) -> Iterator[str]:
        return iter(ANSWERS)

    def keys(self) -> Any:
        """The ways of answering: so that dict(coverage) is as_dict()."""
        return self.as_dict().keys()

    def _ordered(self) -> List[str]:
        # As in ANSWERS, so that fallbacks come last; the most frequent first.
        def place(operator: str) -> Any:
            of = self.calls[operator]
            return max(map(ANSWERS.index, of)), -sum(of.values()), operator

        return sorted(self.calls, key=place)

    def __repr__(self) -> str:
        rows = [
            [operator, *(str(self.calls[operator].get(answer, 0)) for answer in ANSWERS)]
            for operator in self._ordered()
        ]
        count = f"{len(rows)} operator" + ("" if len(rows) == 1 else "s")
        table = [
            ["operator", *ANSWERS],
            *rows,
            [count, *(str(self.total(answer)) for answer in ANSWERS)],
        ]
        widths = [max(len(row[i]) for row in table) for i in range(len(ANSWERS) + 1)]
        return "\n".join(
            row[0].ljust(widths[0])
            + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
            for row in table
        )


def coverage(device: str) -> Coverage:
    """How the operators called on a kind of device were answered so far. RuntimeError for a device
    without a backend."""
    return Coverage(device)


class allow_fallback:  # noqa: N801  a function that is also a context
    """Set whether an operator that a kind of device has no kernel for runs on the CPU (as it does
    at first), or is a NotImplementedError: for good, or for the length of a `with` block.
    RuntimeError for a device without a backend."""

    def __init__(self, device: str, allowed: bool) -> None:
        self.device = _checked(device)
        self.prev = _C._backend_fallback_allowed(self.device)
        _C._backend_allow_fallback(self.device, bool(allowed))

    def __enter__(self) -> None:
        """Set already."""

    def __exit__(self, *_: Any) -> None:
        _C._backend_allow_fallback(self.device, self.prev)
