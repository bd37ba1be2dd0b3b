"""Counting floating-point operations: of matrix products, convolutions and attention, in each
module, forward and backward.

    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    counter.get_total_flops()       # a multiplication and an addition are two
    print(counter.get_table())      # by module and operator

Calls are recorded as treadle.profiler does it, so that a backward pass and the parts of operators
count, too; each recorded call of an operator in `flop_registry` is given to its formula. Marks
between the calls say which modules run from there on.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import json
import warnings
from collections import defaultdict
from math import prod
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

from treadle import _C
from treadle._ops import ops
from treadle.utils import _flop_calls
from treadle.utils._pytree import tree_map
from treadle.utils.module_tracker import ModuleTracker

aten = ops.aten

flop_registry: Dict[Any, Callable[..., int]] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, _C.Tensor) else i


def shape_wrapper(f: Callable[..., int]) -> Callable[..., int]:
    """A formula over shapes as one over tensors."""

    def over_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return over_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable:
    """Decorates a formula for an operator, or for each of a list: `treadle.ops.my_ns.name`.

    The formula takes what the operator takes, with a shape for each tensor, and `out_shape`; with
    get_raw, tensors without data, and `out_val`. It returns the number of operations. Raises
    ValueError for a target that is no operator, RuntimeError for one that has a formula.
    """
    targets = list(targets) if isinstance(targets, (list, tuple)) else [targets]

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        whole = formula if get_raw else shape_wrapper(formula)
        for target in targets:
            if not isinstance(target, _C._OperatorPacketCall):
                raise ValueError(
                    "register_flop_formula: expected operators such as torch.ops.my_ns.name, "
                    f"got {target} of type {type(target).__name__}"
                )
            if target in flop_registry:
                raise RuntimeError(
                    f"register_flop_formula: expected an operator without a formula, got {target}"
                )
            flop_registry[target] = whole
        return whole

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The count of a product of matrices."""
    (m, k), (k2, n) = a_shape, b_shape
    if k != k2:
        raise AssertionError(
            f"mm_flop: expected shapes that multiply, got {tuple(a_shape)} and {tuple(b_shape)}"
        )
    return 2 * m * n * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """The count of a product of matrices; the sum is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """The count of a batch of products of matrices."""
    return a_shape[0] * mm_flop(tuple(a_shape[1:]), tuple(b_shape[1:]))


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """The count of a batch of products of matrices; the sum is not counted."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """A convolution without its bias: x is (N, C, ...), w (C_out, C_in / groups, ...)."""
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * prod(places) * prod(w_shape)


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The count of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def _grad_weight_flop(moved_shape: Any, whole_shape: Any, weight_shape: Any) -> int:
    """The count of a convolution's gradient for its weight: each place of `moved` is multiplied
    with a window of `whole`. As in PyTorch, groups do not make it less."""
    return 2 * prod(moved_shape) * whole_shape[1] * prod(weight_shape[2:])


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Any,
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: int,
    output_mask: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The count of a convolution's gradients for its input and its weight."""
    flops = 0
    if output_mask[0]:
        flops += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        moved, whole = (x_shape, grad_out_shape) if transposed else (grad_out_shape, x_shape)
        flops += _grad_weight_flop(moved, whole, w_shape)
    return flops


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """The count of attention: the products of queries with keys, and of weights with values."""
    *heads, queries, size = query_shape
    return 2 * prod(heads) * queries * key_shape[-2] * (size + value_shape[-1])


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(
    query_shape: Any,
    key_shape: Any,
    value_shape: Any,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The count of attention, whatever the mask leaves out."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(
    grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any
) -> int:
    """The count of attention's gradients: five products, as the weights are computed again."""
    *heads, queries, size = query_shape
    return 2 * prod(heads) * queries * key_shape[-2] * (3 * size + 2 * value_shape[-1])


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(
    grad_out_shape: Any,
    query_shape: Any,
    key_shape: Any,
    value_shape: Any,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The count of attention's gradients."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


def normalize_tuple(x: Any) -> tuple:
    """A value that is no tuple as a tuple of one."""
    return x if isinstance(x, tuple) else (x,)


# A convolution's gradients are counted by what they are made of: a convolution and a kernel of
# their own. Attention has one kernel.
_flop_calls.inner.update(
    {
        "aten::convolution": _flop_calls.Inner(
            aten.convolution_backward, conv_flop, only_in_gradients=True
        ),
        "aten::_convolution_grad_weight": _flop_calls.Inner(
            aten.convolution_backward,
            shape_wrapper(lambda *args, **kwargs: _grad_weight_flop(*args[:3])),
        ),
        "aten::_attention": _flop_calls.Inner(
            aten._scaled_dot_product_flash_attention_for_cpu, sdpa_flop
        ),
        "aten::_attention_backward": _flop_calls.Inner(
            aten._scaled_dot_product_flash_attention_for_cpu_backward, sdpa_backward_flop
        ),
    }
)


# ---- the recording ----

_open: List["FlopCounterMode"] = []


def _count_what_ran(counters: List["FlopCounterMode"]) -> None:
    """Give what was recorded so far to the counters."""
    events, _ = _C._profiler_stop()
    for counter in counters:
        counter._count(events)


@contextlib.contextmanager
def _recording_goes_on() -> Iterator[None]:
    try:
        yield
    finally:
        _C._profiler_start(True, False)


class _MarkingTracker(ModuleTracker):
    """Puts a mark into the recording when other modules run."""

    def __init__(self) -> None:
        super().__init__()
        self.prefix = f"modules of counter {id(self)}: "
        self.sets: List[FrozenSet[str]] = []

    def _before(self, module: Any, inputs: Any) -> None:
        # Between the outermost calls what was recorded is counted, so that it does not pile up.
        if len(self.parents) == 1 and not self.is_bw and _open:
            with _recording_goes_on():
                _count_what_ran(_open)
        super()._before(module, inputs)

    def _changed(self) -> None:
        self.sets.append(frozenset(self.parents))
        _C._profiler_end(_C._profiler_begin(f"{self.prefix}{len(self.sets) - 1}"))


class FlopCounterMode:
    """Counts the floating-point operations of its block, of the thread that runs it.

    Args:
        mods: not needed: modules are found as they run.
        depth: of modules in the table: 1 for the outermost; None for all.
        display: whether the table is printed at the end of the block.
        custom_mapping: formulas beside those of `flop_registry`, which they go before, by operator.
            They are called as register_flop_formula() says; one with an attribute `_get_raw` that
            is true takes tensors.
        skip_unsupported: takes nothing away: an operator without a formula counts for nothing but
            for what it is made of.

    The operators inside one that has a formula are not counted. The gradients of convolutions and,
    in a backward pass, of attention are counted by the library's own formulas alone. Products with
    vectors are counted as products of matrices where that is what runs. Raises RuntimeError when
    treadle.profiler records already, and a profiler cannot record inside the block.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: Optional[int] = 2,
        display: bool = True,
        custom_mapping: Optional[Dict[Any, Callable[..., int]]] = None,
        skip_unsupported: bool = False,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "FlopCounterMode: expected no mods, which are found as they run", stacklevel=2
            )
        self.depth = depth
        self.display = display
        self.skip_unsupported = skip_unsupported
        self.mod_tracker = _MarkingTracker()
        self._counts: Dict[str, Dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = {
            **flop_registry,
            **{
                operator: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
                for operator, formula in (custom_mapping or {}).items()
            },
        }
        self._by_name = _flop_calls.by_name(self.flop_registry)
        self._modules: FrozenSet[str] = frozenset({"Global"})

    def __enter__(self) -> "FlopCounterMode":
        if _open:
            with _recording_goes_on():
                _count_what_ran(_open)
        elif _C._profiler_running():
            raise RuntimeError(
                "FlopCounterMode: expected no profiler around it, got a recording that runs"
            )
        else:
            _C._profiler_start(True, False)
        _open.append(self)
        self._counts.clear()
        self._modules = frozenset({"Global"})
        self.mod_tracker.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        counters = list(_open)
        _open.remove(self)
        self.mod_tracker.__exit__()
        with _recording_goes_on() if _open else contextlib.nullcontext():
            _count_what_ran(counters)
        self.mod_tracker.sets.clear()
        if self.display and error[:1] in ((), (None,)):
            print(self.get_table(self.depth))

    def _count(self, events: list) -> None:
        """Add what was recorded."""
        prefix, sets = self.mod_tracker.prefix, self.mod_tracker.sets
        calls = ((name, kind, parent) for name, kind, _, parent, *_ in events)
        for event, found in zip(events, _flop_calls.formulas(calls, self._by_name)):
            name = event[0]
            if found is not None:
                operator, formula = found
                flops = _flop_calls.flops_of(formula, name, *map(json.loads, event[7:10]))
                for module in self._modules:
                    self._counts[module][operator] += flops
            elif name.startswith(prefix):
                self._modules = sets[int(name[len(prefix) :])]

    @property
    def flop_counts(self) -> Dict[str, Dict[Any, int]]:
        """The operations by module and operator, up to now."""
        if self in _open:
            with _recording_goes_on():
                _count_what_ran(_open)
        return self._counts

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> Dict[str, Dict[Any, int]]:
        """The operations by the name of the module, "Global" for all, and operator. Those of a
        module's children are among its own."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_unsupported_ops(self) -> Dict[str, int]:
        """The operators that could not be looked into: there are none."""
        return {}

    def get_table(self, depth: Optional[int] = None) -> str:
        """The operations as text, by module and operator."""
        depth = self.depth if depth is None else depth
        return _table(self.flop_counts, depth)


# ---- the table ----

suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """By which suffix a number has two digits or more before the point."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: float, suffix: str) -> str:
    """A number in units of the suffix, with three digits behind the point."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: float, denom: float) -> str:
    """A part in percent."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


def _table(counts: Dict[str, Dict[Any, int]], depth: Optional[int]) -> str:
    total = sum(counts["Global"].values())
    suffix = get_suffix_str(total)

    def row(title: str, flops: int) -> Tuple[str, str, str]:
        number = convert_num_with_suffix(flops, suffix) if suffix else str(flops)
        return title, number, convert_to_percent_str(flops, total)

    def of_module(module: str) -> Iterator[Tuple[str, str, str]]:
        yield row(module, sum(counts[module].values()))
        for operator, flops in counts[module].items():
            yield row(f"- {operator}", flops)

    rows: List[Tuple[str, str, str]] = []
    is_whole = False
    for module in sorted(counts):
        if module == "Global" or (depth is not None and module.count(".") >= depth):
            continue
        is_whole = is_whole or sum(counts[module].values()) == total
        rows += of_module(module)
    if not is_whole and total:
        rows = [*of_module("Global"), *rows]
    rows = rows or [("Global", "0", "0%")]
    header = ("Module", "FLOP", "% Total")
    widths = [max(len(h) + 2, *(len(r[i]) for r in rows)) for i, h in enumerate(header)]

    def line(first: str, *others: str) -> str:
        cells = [first.ljust(widths[0]), *(o.rjust(w) for o, w in zip(others, widths[1:]))]
        return "  ".join(cells)

    return "\n".join([line(*header), line(*("-" * w for w in widths)), *(line(*r) for r in rows)])


__all__ = ["FlopCounterMode", "register_flop_formula"]
