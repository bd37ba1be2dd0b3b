"""assert_close: are two tensors (or containers of them, or numbers) equal up to rounding?

Equal means |actual - expected| <= atol + rtol * |expected|, with tolerances that follow from the
dtype. The message says how many elements differ, by how much at most, and where.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np

from treadle import _C
from treadle._C import Tensor

# Relative and absolute tolerance; whole numbers must be equal.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}

_Message = Union[None, str, Callable[[str], str]]


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: _Message = None,
) -> None:
    """Raise AssertionError unless `actual` and `expected` agree in form and, closely, in values."""
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"rtol and atol must both be specified or both be unspecified, got rtol = {rtol}, atol "
            f"= {atol}"
        )
    checks = _Checks(
        rtol,
        atol,
        equal_nan,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
        allow_subclasses,
    )
    problem = checks.compare(actual, expected, "")
    if problem is None:
        return
    if callable(msg):
        problem = msg(problem)
    elif msg is not None:
        problem = msg
    raise AssertionError(problem)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: Optional[float] = None,
    atol: Optional[float] = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """As assert_close, without looking at dtypes and devices; takes anything `tensor` takes."""
    actual = actual if isinstance(actual, Tensor) else _C.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = _C.tensor(expected, dtype=actual.dtype)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )


class _Checks:
    def __init__(
        self,
        rtol: Optional[float],
        atol: Optional[float],
        equal_nan: bool,
        device: bool,
        dtype: bool,
        layout: bool,
        stride: bool,
        subclasses: bool,
    ) -> None:
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.device = device
        self.dtype = dtype
        self.layout = layout
        self.stride = stride
        self.subclasses = subclasses

    def compare(self, actual: Any, expected: Any, where: str) -> Optional[str]:
        """The first difference in words, or None."""
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self._mappings(actual, expected, where)
        containers = (Sequence, np.ndarray)
        if isinstance(actual, str) or isinstance(expected, str):
            return (
                None
                if actual == expected
                else f"Strings are not equal: {actual!r} != {expected!r}{where}"
            )
        if isinstance(actual, Sequence) and isinstance(expected, Sequence):
            return self._sequences(actual, expected, where)
        if isinstance(actual, containers[:1]) or isinstance(expected, containers[:1]):
            return (
                f"Expected containers of one kind, got {type(actual)} and {type(expected)}{where}"
            )
        return self._values(actual, expected, where)

    def _mappings(self, actual: Mapping, expected: Mapping, where: str) -> Optional[str]:
        if set(actual) != set(expected):
            missing, extra = (
                sorted(map(str, set(expected) - set(actual))),
                sorted(map(str, set(actual) - set(expected))),
            )
            return (
                f"The keys of the mappings do not match: missing {missing}, unexpected "
                f"{extra}{where}"
            )
        for key in actual:
            problem = self.compare(
                actual[key], expected[key], f"{where}\n\nThe failure occurred for item [{key!r}]"
            )
            if problem:
                return problem
        return None

    def _sequences(self, actual: Sequence, expected: Sequence, where: str) -> Optional[str]:
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}"
        for place, (one, other) in enumerate(zip(actual, expected)):
            problem = self.compare(
                one, other, f"{where}\n\nThe failure occurred for item [{place}]"
            )
            if problem:
                return problem
        return None

    def _values(self, actual: Any, expected: Any, where: str) -> Optional[str]:
        if isinstance(actual, Tensor) != isinstance(expected, Tensor):
            return (
                f"Expected two tensors or two numbers, got {type(actual)} and "
                f"{type(expected)}{where}"
            )
        if not self.subclasses and type(actual) is not type(expected):
            return f"Expected values of one type, got {type(actual)} and {type(expected)}{where}"
        if actual is None or expected is None:
            return (
                None if actual is expected else f"None mismatch: {actual} is not {expected}{where}"
            )
        if not isinstance(actual, Tensor):
            plain = (bool, int, float, complex, np.ndarray, np.generic)
            if not (isinstance(actual, plain) and isinstance(expected, plain)):
                return (
                    f"Expected tensors, numbers, arrays or containers, got {type(actual)} and "
                    f"{type(expected)}{where}"
                )
            if (
                isinstance(actual, (bool, int, float, complex))
                and self.dtype
                and type(actual) is not type(expected)
            ):
                return (
                    f"The types of the values do not match: {type(actual)} != "
                    f"{type(expected)}{where}"
                )
            actual, expected = _C.as_tensor(actual), _C.as_tensor(expected)
        return self._form(actual, expected, where) or self._elements(actual, expected, where)

    def _form(self, actual: Tensor, expected: Tensor, where: str) -> Optional[str]:
        pairs = [("shape", True, tuple(actual.shape), tuple(expected.shape))]
        pairs.append(("device", self.device, actual.device, expected.device))  # type: ignore[arg-type]
        pairs.append(("dtype", self.dtype, actual.dtype, expected.dtype))  # type: ignore[arg-type]
        pairs.append(("layout", self.layout, actual.layout, expected.layout))
        pairs.append(("stride", self.stride, tuple(actual.stride()), tuple(expected.stride())))
        for name, wanted, one, other in pairs:
            if wanted and one != other:
                return f"The values for attribute '{name}' do not match: {one} != {other}.{where}"
        return None

    def _tolerances(self, actual: Tensor, expected: Tensor) -> tuple[float, float]:
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        both = [_TOLERANCES.get(tensor.dtype, (0.0, 0.0)) for tensor in (actual, expected)]
        return max(both[0][0], both[1][0]), max(both[0][1], both[1][1])

    def _elements(self, actual: Tensor, expected: Tensor, where: str) -> Optional[str]:
        rtol, atol = self._tolerances(actual, expected)
        one, other = _as_array(actual), _as_array(expected)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            close = one == other
            if one.dtype.kind in "fc" or other.dtype.kind in "fc" or rtol or atol:
                difference = np.abs(one.astype(np.result_type(one, 0.0)) - other)
                finite = np.isfinite(one) & np.isfinite(other)
                close = close | (finite & (difference <= atol + rtol * np.abs(other)))
                if self.equal_nan:
                    close = close | (np.isnan(one) & np.isnan(other))
        if close.all():
            return None
        return _describe(one, other, close, rtol, atol) + where


def _as_array(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach().to("cpu")
    tensor = tensor.to(_C._library_computed_dtype(tensor.dtype))
    if tensor.dtype in (_C.float16, _C.bfloat16, _C.float32):
        tensor = tensor.to(_C.float64)
    elif tensor.dtype == _C.complex64:
        tensor = tensor.to(_C.complex128)
    return tensor.numpy(force=True)


def _describe(
    one: np.ndarray, other: np.ndarray, close: np.ndarray, rtol: float, atol: float
) -> str:
    wide = complex if one.dtype.kind == "c" or other.dtype.kind == "c" else float
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        absolute = np.abs(one.astype(wide) - other.astype(wide))
        relative = absolute / np.abs(other.astype(wide))
    absolute, relative = (np.where(close, -1.0, part) for part in (absolute, relative))
    lines = []
    if one.ndim == 0:
        lines.append("Scalars are not close!\n")
        lines.append(f"Expected {other.item()} but got {one.item()}.")
    else:
        lines.append("Tensor-likes are not close!\n")
        bad = int((~close).sum())
        lines.append(f"Mismatched elements: {bad} / {close.size} ({bad / close.size:.1%})")
    for name, part, allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        place = np.unravel_index(
            int(np.argmax(np.where(np.isnan(part), math.inf, part))), part.shape
        )
        at = f" at index {tuple(int(i) for i in place)}" if one.ndim else ""
        lines.append(
            f"Greatest {name} difference: {float(part[place])}{at} (up to {allowed} allowed)"
        )
    return "\n".join(lines)
