"""Samples of the operators on lists that `foreach:` of an entry gives: those of the entry, two by
two. They need no samples or references of their own.

    foreach_samples(_foreach_add.Scalar, make, samples_of)
    # add([a, b], 2) of add(a, 2) and add(b, 2)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping, Optional

import numpy as np

from .catalogue import Operator, operators
from .sample import Maker, Sample, map_arrays, widen

SamplesOf = Callable[[Operator, Maker], Iterator[Sample]]
Named = Mapping[str, Any]


def entry_of(op: Operator) -> Operator:
    """The entry whose operator is called for each place."""
    wanted = op.json["foreach_of"]["of"].split(".")
    overloads = (o for o in operators(op.json["namespace"]) if o.name == wanted[0])
    return next(o for o in overloads if o.json["overload"] == "".join(wanted[1:]))


class _Lists:
    """An operator on lists beside the entry that it is of."""

    def __init__(self, op: Operator):
        self.op, self.entry = op, entry_of(op)
        self.names: Mapping[str, str] = op.json["foreach_of"]["arguments"]
        self.here = {a["name"]: a for a in op.args}
        self.bases = {a["name"]: a["type"]["base"] for a in self.entry.args}

    def each(self, name: str) -> bool:
        """Whether the entry's argument has a value of its own in each place."""
        t = self.here[self.names[name]]["type"]
        return t["list"] or (t["base"] == "Tensor" and self.bases[name] == "Scalar")

    def given(self, sample: Sample) -> Optional[Named]:
        """The sample's arguments by name; None where the operator cannot be called with them."""
        given = {**dict(zip(self.bases, sample.args)), **sample.kwargs}
        if sample.expect is None or sample.shape_only or sample.settle or sample.domain:
            return None
        # The operator leaves the others of the entry at their defaults, and so does the reference.
        given = {name: value for name, value in given.items() if name in self.names}
        if any(self.each(name) and name not in given for name in self.names):
            return None
        if not self.op.json["returns"] and not self.fits_in_place(sample, given):
            return None
        return given

    def fits_in_place(self, sample: Sample, given: Named) -> bool:
        with np.errstate(all="ignore"):
            wide = {n: map_arrays(v, widen) for n, v in given.items()}
            result = np.asarray(self.one(sample, wide))
        written = given[self.entry.args[0]["name"]]
        kinds = {a.dtype.kind.replace("u", "i") for a in (result, widen(written))}
        return result.shape == written.shape and len(kinds) == 1

    def one(self, sample: Sample, place: Named) -> Any:
        """The result of the entry's reference for one place."""
        by_name = [a["name"] for a in self.entry.args if a["kwarg_only"]]
        positional = [value for n, value in place.items() if n not in by_name]
        named = {n: value for n, value in place.items() if n in by_name}
        return sample.expect(*positional, **named)  # type: ignore[misc]

    def call(self, places: list[Named]) -> Sample:
        """The call for these arguments of the entry, one for each place."""
        values: dict[str, Any] = {}
        for name, here in self.names.items():
            if name not in places[0]:
                continue
            column = [place[name] for place in places]
            if self.here[here]["type"]["list"]:
                values[here] = column
            elif self.each(name):
                values[here] = np.asarray(column)
            elif isinstance(column[0], np.ndarray):
                values[here] = column[0].reshape(-1)[:1].reshape(())
            else:
                values[here] = column[0]
        by_name = {n: v for n, v in values.items() if self.here[n]["kwarg_only"]}
        return Sample(*(v for n, v in values.items() if n not in by_name), **by_name)

    def expect(self, sample: Sample, args: tuple[Any, ...], kwargs: Named, count: int) -> list[Any]:
        values = {**dict(zip(self.here, args)), **kwargs}
        results = []
        for i in range(count):
            place = {
                name: self.value(values[here], i) if self.each(name) else values[here]
                for name, here in self.names.items()
                if here in values
            }
            results.append(self.one(sample, place))
        return results

    @staticmethod
    def value(column: Any, i: int) -> Any:
        """The item of a list, or of an array of numbers."""
        return column[i] if isinstance(column, list) else column[i].item()


def foreach_samples(op: Operator, make: Maker, samples_of: SamplesOf) -> Iterator[Sample]:
    """Each sample of the entry with the one behind it, where all places have the same numbers."""
    lists = _Lists(op)
    found = []
    for sample in samples_of(lists.entry, make):
        given = lists.given(sample)
        if given is not None:
            found.append((given, sample))

    def shared(given: Named) -> Named:
        return {
            n: v for n, v in given.items() if not lists.each(n) and not isinstance(v, np.ndarray)
        }

    # A tensor of numbers is read, one for each place: there is no gradient by it.
    reads_numbers = any(
        lists.each(n) and not lists.here[h]["type"]["list"] for n, h in lists.names.items()
    )
    for (given, sample), (after, other) in zip(found, found[1:] + found[:1]):
        if any(not lists.each(n) and np.size(v) == 0 for n, v in given.items()):
            continue
        alike = shared(given) == shared(after) and given.keys() == after.keys()
        places = [given, after if alike and sample.expect == other.expect else given]
        call = lists.call(places)
        call.expect = lambda *a, _s=sample, **k: lists.expect(_s, a, k, len(places))
        call.grad, call.exact = sample.grad and other.grad and not reads_numbers, sample.exact
        call.loose, call.convention = max(sample.loose, other.loose), sample.convention
        call.strides = sample.strides
        yield call
