"""How a tensor is shown: `tensor([[1., 2.],\\n        [3., 4.]], dtype=treadle.float64,
requires_grad=True)`.

All elements that are shown get the same width and the same form (whole, fixed, scientific), chosen
from the values. A tensor of more than `threshold` elements shows the first and last `edgeitems` of
each dimension.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator, Optional

from treadle import _C, _names
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad


class _Options:
    """The settings of `set_printoptions`."""

    def __init__(self) -> None:
        self.precision = 4
        self.threshold: float = 1000
        self.edgeitems = 3
        self.linewidth = 80
        self.sci_mode: Optional[bool] = None


_options = PRINT_OPTS = _Options()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: Optional[int] = None,
    threshold: Optional[float] = None,
    edgeitems: Optional[int] = None,
    linewidth: Optional[int] = None,
    profile: Optional[str] = None,
    sci_mode: Optional[bool] = None,
) -> None:
    """How tensors are shown from now on. `profile` is 'default', 'short' or 'full'; the others
    change it."""
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(
                f"set_printoptions: expected a profile of {sorted(_PROFILES)}, got '{profile}'"
            )
        for name, value in _PROFILES[profile].items():
            setattr(_options, name, value)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
                raise ValueError(f"set_printoptions: expected {name} >= 0, got {value!r}")
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force."""
    return dict(vars(_options))


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """`set_printoptions` for the length of a `with` block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        vars(_options).update(before)


class _Format:
    """The form that fits a set of numbers: whole ("1."), fixed ("1.5000") or scientific
    ("1.5000e+10")."""

    def __init__(self, values: list, is_float: bool) -> None:
        self.is_float = is_float
        self.whole = True
        self.scientific = False
        if not is_float:
            self.width = max((len(str(value)) for value in values), default=1)
            return
        counted = [value for value in values if math.isfinite(value) and value != 0]
        self.width = 1
        if counted:
            self._choose(counted)
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
            self.width = max((len(self._text(value)) for value in counted), default=1)

    def _choose(self, counted: list[float]) -> None:
        largest = max(abs(value) for value in counted)
        smallest = min(abs(value) for value in counted)
        spread = largest / smallest if smallest > largest / 1.7e308 else math.inf
        self.whole = all(value == math.floor(value) for value in counted)
        self.scientific = (
            spread > 1000.0 or largest > 1.0e8 or (not self.whole and smallest < 1.0e-4)
        )
        self.width = max(len(self._text(value)) for value in counted)

    def _text(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{_options.precision}e}"
        if self.whole:
            text = f"{value:.0f}"
            return text + "." if math.isfinite(value) else text
        return f"{value:.{_options.precision}f}"

    def show(self, value: Any) -> str:
        """One element, as wide as all."""
        return (self._text(value) if self.is_float else str(value)).rjust(self.width)


class _ComplexFormat:
    """The form of complex numbers: one for all real parts, one for all imaginary parts."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Format([value.real for value in values], True)
        self.imag = _Format([value.imag for value in values], True)
        self.width = self.real.width + self.imag.width + 1

    def show(self, value: complex) -> str:
        """One element, as wide as all."""
        imag = self.imag.show(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real.show(value.real) + sign + imag


def _edges(tensor: Tensor) -> Tensor:
    """The elements that are shown: of each dimension too long, its first and last few."""
    edge = _options.edgeitems
    for dim, size in enumerate(tensor.shape):
        if size > 2 * edge:
            ends = (tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge))
            tensor = _C.cat(ends, dim)
    return tensor


def _flat(nested: Any) -> list:
    """All numbers in lists of lists."""
    level = [nested]
    while level and isinstance(level[0], list):
        level = [item for part in level for item in part]
    return level


class _Body:
    """Lays out nested lists of numbers in brackets."""

    def __init__(self, shape: tuple, summarised: bool, form: Any) -> None:
        self.shape = shape
        self.form = form
        self.cut = [summarised and size > 2 * _options.edgeitems for size in shape]

    def lay_out(self, nested: Any, dim: int, indent: int) -> str:
        """The text of one part, which starts `indent` characters into its line."""
        left = len(self.shape) - dim
        if left == 0:
            return self.form.show(nested)
        if left == 1:
            return self._row(nested, dim, indent)
        parts = [self.lay_out(part, dim + 1, indent + 1) for part in nested]
        if self.cut[dim]:
            parts.insert(_options.edgeitems, "...")
        return "[" + ("," + "\n" * (left - 1) + " " * (indent + 1)).join(parts) + "]"

    def _row(self, numbers: list, dim: int, indent: int) -> str:
        items = [self.form.show(number) for number in numbers]
        if self.cut[dim]:
            items.insert(_options.edgeitems, " ...")
        per_line = max(1, int((_options.linewidth - indent) // (self.form.width + 2)))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _body(tensor: Tensor, indent: int) -> str:
    summarised = tensor.numel() > _options.threshold
    shown = _edges(tensor) if summarised else tensor
    dtype = tensor.dtype
    if dtype.is_floating_point:
        shown = shown.to(_C.float64)
    elif dtype.is_complex:
        shown = shown.to(_C.complex128)
    nested = shown.tolist()
    values = _flat(nested) if tensor.dim() else [nested]
    form = _ComplexFormat(values) if dtype.is_complex else _Format(values, dtype.is_floating_point)
    return _Body(tuple(tensor.shape), summarised, form).lay_out(nested, 0, indent)


def _is_obvious(dtype: _C.dtype) -> bool:
    """Whether the elements already show the dtype."""
    default = _C.get_default_dtype()
    if dtype.is_complex:
        return dtype == (_C.complex128 if default == _C.float64 else _C.complex64)
    return dtype in (default, _C.int64, _C.bool)


def _grad_suffix(tensor: Tensor) -> list[str]:
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view that a change of its base has made unusable
        return ["grad_fn=<Invalid>"]
    if node is not None:
        name = node.name() if callable(getattr(node, "name", None)) else type(node).__name__
        return [f"grad_fn=<{name.rsplit('::', 1)[-1]}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _quantized_repr(tensor: Tensor) -> str:
    """The real numbers of a quantized tensor, and what they were rounded with."""
    head = "tensor("
    scheme = tensor.qscheme()
    suffixes = [] if tensor.device.type == "cpu" else [f"device='{tensor.device}'"]
    suffixes.append(f"size={tuple(tensor.shape)}")
    suffixes.append(f"dtype={_names.in_words_of_the_program(str(tensor.dtype))}")
    suffixes.append(f"quantization_scheme={scheme}")
    if tensor.device.type == "meta":
        return _join(head + "...", suffixes, len(head))
    parts = _C._layout_contents(tensor)[0]
    scales, zeros = parts["scales"].cpu(), parts["zero_points"].cpu()
    if str(scheme).endswith("per_tensor_affine"):
        suffixes += [f"scale={scales.item()}", f"zero_point={zeros.item()}"]
    else:
        suffixes += [f"scale={scales}", f"zero_point={zeros}"]
        suffixes.append(f"axis={tensor.q_per_channel_axis()}")
    body = _body(tensor.dequantize().cpu(), len(head)) if tensor.numel() else "[]"
    return _join(head + body, suffixes, len(head))


def tensor_repr(tensor: Tensor) -> str:
    """The text that `repr(tensor)` gives."""
    kind = type(tensor)
    is_wrapper = _C._is_wrapper(tensor)
    if tensor.is_quantized:
        return _quantized_repr(tensor)
    if tensor.layout != _C.strided and not is_wrapper:
        from treadle.sparse._text import sparse_repr

        return sparse_repr(tensor)
    is_plain = kind is Tensor or kind.__torch_function__ is _C._disabled_torch_function_impl
    is_plain = is_plain and kind.__torch_dispatch__ is _C._disabled_torch_dispatch_impl
    prefix = "tensor(" if is_plain else f"{kind.__name__}("
    indent = len(prefix)
    plain = tensor if is_wrapper else tensor.detach()
    suffixes = []
    if plain.device.type != "cpu":
        suffixes.append(f"device='{plain.device}'")
    if is_wrapper or plain.device.type == "meta":
        suffixes.append(f"size={tuple(plain.shape)}")
        if plain.dtype != _C.get_default_dtype():
            suffixes.append(f"dtype={plain.dtype}")
        body = "..."
    elif plain.numel() == 0:
        if plain.dim() != 1:
            suffixes.append(f"size={tuple(plain.shape)}")
        if plain.dtype != _C.get_default_dtype():
            suffixes.append(f"dtype={plain.dtype}")
        body = "[]"
    else:
        if not _is_obvious(plain.dtype):
            suffixes.append(f"dtype={plain.dtype}")
        with no_grad():
            body = _body(plain.to("cpu"), indent)
    return _join(prefix + body, suffixes + _grad_suffix(tensor), indent)


def _join(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """Add the suffixes, each on a new line if it would not fit on the last; the first on a new one
    if `new_line`."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or length + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
            new_line = False
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements alone, further lines `indent` to the right."""
    return _body(self.detach(), indent) if self.numel() else "[]"


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text of a tensor with what follows the elements, and the closing parenthesis."""
    return _join(tensor_str, suffixes, indent, force_newline)


def _str_intern(inp: Tensor, *, tensor_contents: Optional[str] = None) -> str:
    """The text of a tensor; `tensor_contents` in the place of its elements."""
    if tensor_contents is None:
        return tensor_repr(inp)
    suffixes = [] if _is_obvious(inp.dtype) else [f"dtype={inp.dtype}"]
    return _join("tensor(" + tensor_contents, suffixes + _grad_suffix(inp), len("tensor("))
