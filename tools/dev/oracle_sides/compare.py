"""Says what is other in two results in plain form: (kind, text) pairs, none where they are equal.

Integers and bools are exact. Floating-point values may differ by a tolerance of their dtype, times
the largest magnitude in the tensor: sums may be added up in another order. The tolerance is at
least that of the dtype of the sample: what is written in a wider one may have been rounded on the
way."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np
from plain import Array, Failure, Made

Difference = tuple[str, str]

_TOLERANCES = {
    "float64": 1e-7,
    "complex128": 1e-7,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float16": 4e-3,
    "complex32": 4e-3,
    "bfloat16": 3e-2,
}


def _close(wanted: Any, found: Any, tolerance: float) -> bool:
    if not (np.isnan(wanted) == np.isnan(found)).all():
        return False
    with np.errstate(all="ignore"):
        magnitudes = np.abs(wanted[np.isfinite(wanted)])
        scale = max(1.0, float(magnitudes.max(initial=0.0)))
        near = np.abs(wanted - found) <= tolerance * (scale + np.abs(wanted))
    near &= np.isfinite(wanted)  # a tolerance times infinity lets everything through
    return bool((near | (wanted == found) | np.isnan(wanted)).all())


def _worst(wanted: Any, found: Any) -> str:
    with np.errstate(all="ignore"):
        distance = np.abs(wanted.astype("complex128") - found.astype("complex128"))
        bad = (wanted != found) & ~(np.isnan(wanted) & np.isnan(found))
    distance = np.where(bad, np.where(np.isnan(distance), np.inf, distance), -1.0)
    place = np.unravel_index(int(distance.argmax()), wanted.shape) if wanted.ndim else ()
    where = f" at {tuple(int(i) for i in place)}" if place else ""
    return f"{found[place]} instead of {wanted[place]}{where}"


def _strides(array: Array) -> list[int]:
    assert array.strides is not None
    return [st for st, size in zip(array.strides, array.shape) if size > 1]


def _arrays(wanted: Array, found: Array, dtype: str) -> Iterator[Difference]:
    if wanted.dtype != found.dtype:
        yield "dtype", f"{found.dtype} instead of {wanted.dtype}"
    if wanted.shape != found.shape:
        yield "shape", f"{list(found.shape)} instead of {list(wanted.shape)}"
        return
    if wanted.parts or found.parts:
        if len(wanted.parts) != len(found.parts) or wanted.parts[0] != found.parts[0]:
            yield "layout", f"{found.parts[:1]} instead of {wanted.parts[:1]}"
        else:
            for one, other in zip(wanted.parts[1:], found.parts[1:]):
                yield from _arrays(one, other, dtype)
        return
    # The elements of an empty tensor have no place.
    if 0 not in wanted.shape and _strides(wanted) != _strides(found):
        yield "strides", f"{found.strides} instead of {wanted.strides} of {list(wanted.shape)}"
    one, other = wanted.numpy(), found.numpy()
    tolerance = max(_TOLERANCES.get(name, 0.0) for name in (wanted.dtype, found.dtype))
    # Floating-point results of integers and bools are computed in the default dtype.
    tolerance = tolerance and max(tolerance, _TOLERANCES.get(dtype, _TOLERANCES["float32"]))
    if not (_close(one, other, tolerance) if tolerance else np.array_equal(one, other)):
        yield "value", _worst(one, other)


def _numbers(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, (float, complex)):
        return _close(np.array(wanted), np.array(found), 1e-6)
    return bool(np.array_equal(wanted, found))


def differences(wanted: Any, found: Any, dtype: str) -> Iterator[Difference]:
    """The differences, everywhere in the lists and dictionaries; `dtype` is that of the sample."""
    if isinstance(wanted, Failure) and isinstance(found, Failure):
        if wanted.classes[0] not in found.classes:
            yield "exception", f"{found.classes[0]}: {found.text} instead of {wanted.classes[0]}"
    elif isinstance(found, Failure):
        absent = ("has no attribute", "does not exist", "No module named")
        missing = any(words in found.text for words in absent)
        yield "missing" if missing else "refused", f"{found.classes[0]}: {found.text}"
    elif isinstance(wanted, Failure):
        yield "accepted", f"no {wanted.classes[0]}: {wanted.text}"
    elif isinstance(wanted, Array) and isinstance(found, Array):
        yield from _arrays(wanted, found, dtype)
    elif isinstance(wanted, Made) and isinstance(found, Made):
        if wanted != found:
            yield "value", f"{found.arguments} instead of {wanted.arguments}"
    elif type(wanted) is not type(found):
        yield "type", f"{type(found).__name__} instead of {type(wanted).__name__}"
    elif isinstance(wanted, (list, tuple)):
        if len(wanted) != len(found):
            yield "type", f"{len(found)} results instead of {len(wanted)}"
            return
        for one, other in zip(wanted, found):
            yield from differences(one, other, dtype)
    elif isinstance(wanted, dict):
        if set(wanted) != set(found):
            yield "type", f"keys {sorted(map(str, found))} instead of {sorted(map(str, wanted))}"
            return
        for key in wanted:
            yield from differences(wanted[key], found[key], dtype)
    elif not _numbers(wanted, found):
        yield "value", f"{found!r} instead of {wanted!r}"


def without_zeros(value: Any) -> Any:
    """Derivatives where zero, but for rounding, and none are the same; None where there are no
    others."""
    if isinstance(value, Failure):
        return value

    def is_zero(v: Any) -> bool:
        return not isinstance(v, Array) or bool((abs(v.numpy()) <= 1e-12).all())

    found = [None if is_zero(v) else v for v in value]
    return found if any(v is not None for v in found) else None
