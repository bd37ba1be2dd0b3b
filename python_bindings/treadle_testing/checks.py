"""The checks of an operator: each takes it with a dtype, and goes through its samples.

    reference(op, "float32")        results against NumPy
    forms_agree(op, "float32")      out= and in-place give the same bits, and return what they must

Treadle's own tests call these for every operator (tests/python/operators/test_operators.py and
tests/python/autograd/test_gradients.py); OperatorTests makes the same tests for a library outside.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle.autograd import gradcheck, gradgradcheck

from . import cases, device
from .cases import samples_of
from .catalogue import Operator, operators
from .check import assert_matches, call, expected, outcome, same_bits, tensors
from .expression import pointwise_samples
from .sample import NUMPY_TYPES, Maker, Sample, map_arrays, to_array, to_tensor


def reference(op: Operator, dtype: str) -> None:
    compared = 0
    for n, sample in enumerate(samples_of(op, dtype)):
        result = call(op, sample, dtype)
        if sample.expect is not None:
            compared += 1
            assert_matches(
                result, expected(sample, dtype), dtype, sample, f"{op.id} sample {n} {dtype}"
            )
    assert compared, f"{op.id} has no sample with a reference in {dtype}"


def forms_agree(op: Operator, dtype: str) -> None:
    for sample in samples_of(op, dtype):
        if op.random or op.name.endswith("_"):
            continue
        result = tensors(call(op, sample, dtype))
        if op.takes_out:
            out = [treadle.empty((0,), dtype=t.dtype) for t in result]
            returned = call(op, sample, dtype, out=out[0] if len(out) == 1 else tuple(out))
            same = [o.shape for o in out] == [t.shape for t in result]
            assert same and (op.is_unwritten or same_bits(out, result)), f"{op.id}: out= differs"
            assert all(a is b for a, b in zip(tensors(returned), out)), (
                f"{op.id}: out= returns its argument"
            )
        if op.has_form("inplace"):
            args = map_arrays(sample.args, lambda a: to_tensor(a, dtype))
            kwargs = {
                k: map_arrays(v, lambda a: to_tensor(a, dtype)) for k, v in sample.kwargs.items()
            }
            first = args[0]
            if first.shape != result[0].shape or not treadle.can_cast(result[0].dtype, first.dtype):
                before = to_array(first).copy()
                with pytest.raises((RuntimeError, ValueError)):
                    op.inplace(*args, **kwargs)
                np.testing.assert_array_equal(to_array(first), before)
            else:
                version = first._version
                assert op.inplace(*args, **kwargs) is first
                assert first._version > version
                assert same_bits(first, result[0].to(first.dtype)), f"{op.id}: in-place differs"


def _restrided(t: treadle.Tensor) -> treadle.Tensor:
    """The same values at other addresses: last dimension first, with gaps and a negative stride
    where there is one.
    """
    if t.dim() == 0:
        return t
    wide = treadle.from_numpy(np.repeat(to_array(t)[..., ::-1], 2, axis=-1)[..., ::2][..., ::-1])
    wide = wide.to(t.dtype) if wide.dtype != t.dtype else wide
    assert wide.shape == t.shape
    if t.is_cpu:
        return wide
    # A copy to a device has no gaps, so the place comes first.
    memory = t.new_empty([*reversed(t.shape[1:]), t.shape[0], 2])
    return memory.permute(*reversed(range(t.dim())), t.dim()).select(-1, 1).copy_(t)


def layouts_agree(op: Operator, dtype: str) -> None:
    for sample in samples_of(op, dtype):
        if op.random or sample.expect is None or op.name.endswith("_"):
            continue
        if op.kind == "view" or sample.strides:
            continue  # whether a view exists depends on the strides
        args = map_arrays(sample.args, lambda a: _restrided(to_tensor(a, dtype)))
        kwargs = {
            k: map_arrays(v, lambda a: _restrided(to_tensor(a, dtype)))
            for k, v in sample.kwargs.items()
        }
        assert_matches(
            outcome(op, op.function(*args, **kwargs), args, kwargs),
            expected(sample, dtype),
            dtype,
            sample,
            f"{op.id} restrided",
        )


def meta_agrees(op: Operator, dtype: str) -> None:
    """Shapes and dtypes are known without data; where they depend on the data, an exception says
    so.
    """
    for sample in samples_of(op, dtype):
        real = tensors(call(op, sample, dtype))
        args = map_arrays(sample.args, lambda a: to_tensor(a, dtype).to("meta"))
        kwargs = {
            k: map_arrays(v, lambda a: to_tensor(a, dtype).to("meta"))
            for k, v in sample.kwargs.items()
        }
        if not any(t.is_meta for t in tensors(args) + tensors(list(kwargs.values()))):
            continue  # a factory
        try:
            meta = tensors(outcome(op, op.function(*args, **kwargs), args, kwargs))
        except (NotImplementedError, RuntimeError) as error:
            assert op.kind in ("composite", "returns") and "meta" in str(error), (
                f"{op.id}: no meta result: {error}"
            )
            continue
        assert op.kind != "returns"
        assert [(t.shape, t.dtype) for t in meta] == [(t.shape, t.dtype) for t in real]
        assert all(t.is_meta for t in meta)


def same_bits_at_any_thread_count(op: Operator, dtype: str) -> None:
    threads = treadle.get_num_threads()
    try:
        for sample in samples_of(op, dtype):
            results = []
            for n in (1, 2, 3, 8):
                treadle.set_num_threads(n)
                treadle.manual_seed(0)
                results.append(call(op, sample, dtype))
            if not op.is_unwritten:
                assert all(same_bits(r, results[0]) for r in results[1:]), (
                    f"{op.id}: bits depend on the thread count"
                )
    finally:
        treadle.set_num_threads(threads)


def _pending(t: treadle.Tensor) -> treadle.Tensor:
    """The same values, as a result that waits."""
    return t.logical_and(t) if t.dtype is treadle.bool else t.mul(1)


def fused_pairs() -> list:
    """(operator, dtype): operators on elements and reductions with all their dtypes, the others,
    whose arguments alone wait, with one.
    """
    out: dict[str, Any] = {}
    for pair in cases.pairs():
        op, _ = pair.values
        waits = op.kind in ("pointwise", "reduce")
        out.setdefault(pair.id if waits else op.id, pair)
    return list(out.values())


def fusion_agrees(op: Operator, dtype: str) -> None:
    """A call whose arguments and results wait has the bits of one that runs at once."""
    for sample in samples_of(op, dtype):
        results = []
        for mode in (treadle.fuse(enabled=False), treadle.fuse(least=0)):
            treadle.manual_seed(0)
            with mode:
                args = map_arrays(sample.args, lambda a: _pending(to_tensor(a, dtype)))
                kwargs = {
                    k: map_arrays(v, lambda a: _pending(to_tensor(a, dtype)))
                    for k, v in sample.kwargs.items()
                }
                results.append(outcome(op, op.function(*args, **kwargs), args, kwargs))
        assert op.is_unwritten or same_bits(*results), f"{op.id}: bits depend on fusion"


def fused_gradients_agree(op: Operator, dtype: str) -> None:
    """The same of gradients."""
    for leaves, called in differentiable_calls(op, dtype):
        results = []
        for mode in (treadle.fuse(enabled=False), treadle.fuse(least=0)):
            with mode:
                given = [leaf.detach().clone().requires_grad_() for leaf in leaves]
                outputs = [t for t in called(op, *map(_pending, given)) if t.requires_grad]
                grads = treadle.autograd.grad(
                    outputs, given, [treadle.ones_like(t) for t in outputs], allow_unused=True
                )
                results.append([g for g in grads if g is not None])
        assert same_bits(*results), f"{op.id}: bits of gradients depend on fusion"


# ---- Dtypes outside the row ----


def _undeclared(op: Operator, dtype: str) -> tuple[list[Any], dict[str, Any], str]:
    """Arguments of a sample with the dtype where the row is about it, and what an error calls
    that.
    """
    if op.kind == "pointwise":
        # Numbers of the dtype's own kind, which do not promote it to another.
        sample = next(iter(pointwise_samples(op, Maker(dtype))))
        convert: Callable[[Any], Any] = lambda a: to_tensor(a, dtype)
        args = map_arrays(list(sample.args), convert)
        return args, {k: map_arrays(v, convert) for k, v in sample.kwargs.items()}, ""
    declared = next(d for d in reversed(op.dtypes) if d in cases.dtypes_of(op) or d == op.dtypes[0])
    sample = next(iter(samples_of(op, declared)))
    wanted = getattr(treadle, dtype)
    tensor_names = [a["name"] for a in op.args if a["type"]["base"] == "Tensor"]
    named = op.json["dtype_of"]
    if named not in tensor_names and named not in sample.kwargs and tensor_names:
        named = tensor_names[0]  # a dtype that is not given is that of the first tensor

    def undeclare(value: Any) -> Any:
        if isinstance(value, treadle.dtype):
            return wanted
        return map_arrays(value, lambda a: to_tensor(a, declared).to(wanted))

    rows = op.json.get("argument_dtypes") or {}

    def changed(name: str, value: Any) -> Any:
        """Others go with it, but for those whose dtypes the entry says by themselves."""
        if name == named:
            return undeclare(value)
        may_go_with = name not in rows or rows[name]["same"] or dtype in rows[name]["dtypes"]

        def keep_or_convert(a: np.ndarray) -> Any:
            t = to_tensor(a, declared)
            goes = may_go_with and t.dtype == getattr(treadle, declared)
            return t.to(wanted) if goes else t

        return map_arrays(value, keep_or_convert)

    args = [changed(a["name"], v) for a, v in zip(op.args, sample.args)]
    kwargs = {name: changed(name, v) for name, v in sample.kwargs.items()}
    return args, kwargs, f"{named} of a dtype" if named in tensor_names else named


def _refusal(op: Operator, form: str, place: str, dtype: str, subject: str) -> str:
    """The whole message for a dtype outside the row."""
    if op.kind in ("composite", "view"):
        return f"{form}: expected {subject} in ({', '.join(op.dtypes)}), got {dtype}"
    # The row of kernels: integers that are promoted first need none of their own.
    promoted = op.json["promote"] == "float"
    kernels = [d for d in op.dtypes if not promoted or "float" in d or "complex" in d]
    return (
        f"{form}: expected a device, layout and dtype that has a kernel, "
        f"got {place}, strided, {dtype}\nkernels exist for: cpu ({', '.join(kernels)})"
    )


def _without_lists_of_devices(said: str, op: Operator) -> str:
    """An error without the lists of kernels that devices have of their own, after those of the CPU;
    these may be for declared dtypes only.
    """

    def left_out(listed: re.Match[str]) -> str:
        assert set(listed[1].split(", ")) <= set(op.dtypes), said
        return ""

    return re.sub(r"; \w+ \(([^()]+)\)", left_out, said)


def undeclared_cells(library: str = "aten") -> list:
    """(operator, dtype) for every cell outside of the rows."""
    return [
        pytest.param(o, d, id=f"{o.id}-{d}")
        for o in operators(library)
        if cases.in_suite(o) and cases.has_samples(o)
        for d in sorted(set(NUMPY_TYPES) - set(o.dtypes))
    ]


def undeclared_cells_are_refused(op: Operator, dtype: str) -> None:
    """By the exception that names the row, in every form and on the meta device."""
    args, kwargs, subject = _undeclared(op, dtype)
    calls = {op.name: lambda: op.function(*args, **kwargs)}
    if op.takes_out:
        outs = [treadle.empty((0,), dtype=treadle.complex128) for _ in op.json["returns"]]
        out = outs[0] if len(outs) == 1 else tuple(outs)
        calls["out="] = lambda: op.function(*args, **kwargs, out=out)
    if op.has_form("inplace") and not op.name.endswith("_"):
        calls[op.name + "_"] = lambda: op.inplace(*args, **kwargs)
    if op.kind != "returns" and tensors(args):
        to_meta = lambda v: v.to("meta") if isinstance(v, treadle.Tensor) else v
        on_meta = [[to_meta(t) for t in a] if isinstance(a, list) else to_meta(a) for a in args]
        named = {k: to_meta(v) for k, v in kwargs.items()}
        calls["meta"] = lambda: op.function(*on_meta, **named)
    for form, call_it in calls.items():
        with pytest.raises(NotImplementedError) as info:
            call_it()
        # Kernels of elements are those of the functional form.
        name = form if form.endswith("_") and op.kind != "pointwise" else op.name
        # The meta device takes the dtypes that the CPU takes.
        place = "cpu" if form == "meta" else device.kind()
        said = str(info.value)
        if device.kind() != "cpu":
            said = _without_lists_of_devices(said, op)
        assert said == _refusal(op, name, place, dtype, subject), form


# ---- Gradients ----


def leaves_and_call(sample: Sample, dtype: str) -> tuple[list[treadle.Tensor], Any]:
    """Leaf tensors of the sample that take gradients, and a function of them that makes the
    call.
    """
    leaves: list[treadle.Tensor] = []

    def place(a: np.ndarray) -> Any:
        t = to_tensor(a, dtype)
        if t.is_floating_point() or t.is_complex():
            leaves.append(t.requires_grad_())
            return ("leaf", len(leaves) - 1)
        return t

    args = map_arrays(sample.args, place)
    kwargs = {k: map_arrays(v, place) for k, v in sample.kwargs.items()}

    def fill(value: Any, given: tuple[treadle.Tensor, ...]) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[0] == "leaf":
            return given[value[1]]
        if isinstance(value, (list, tuple)):
            return type(value)(fill(v, given) for v in value)
        return value

    def call(op: Operator, *given: treadle.Tensor) -> Any:
        values = list(fill(args, given))
        if sample.domain is not None:
            values[0] = sample.domain(values[0])
        result = op.function(*values, **{k: fill(v, given) for k, v in kwargs.items()})
        if sample.settle is not None:
            result = sample.settle(result)
        return tuple(t for t in tensors(result) if t.is_floating_point() or t.is_complex())

    return leaves, call


def differentiable_calls(op: Operator, dtype: str) -> list[tuple[list[treadle.Tensor], Any]]:
    out = []
    for sample in samples_of(op, dtype):
        if not sample.grad or op.random or op.name.endswith("_"):
            continue
        leaves, call = leaves_and_call(sample, dtype)
        if leaves and any(t.requires_grad for t in call(op, *leaves)):
            out.append((leaves, call))
    return out


def gradients(op: Operator, dtype: str) -> None:
    for leaves, called in differentiable_calls(op, dtype):
        assert gradcheck(lambda *given: called(op, *given), tuple(leaves))


def second_gradients(op: Operator, dtype: str) -> None:
    for leaves, called in differentiable_calls(op, dtype):
        if sum(t.numel() for t in leaves) > 80:
            continue
        try:
            assert gradgradcheck(lambda *given: called(op, *given), tuple(leaves))
        except NotImplementedError as error:
            # The formula uses an operator whose own derivative is not known (lgamma: digamma's); it
            # must say so.
            assert "derivative is not implemented" in str(error)


class _Called:
    """A stand-in for an operator, which leaves_and_call() calls."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function


# Where the tensor lies that an in-place form changes: the tensor, and all that is looked at after.


def _alone(x: treadle.Tensor) -> tuple[treadle.Tensor, treadle.Tensor]:
    y = x.clone()
    return y, y


def _on_a_view(x: treadle.Tensor) -> tuple[treadle.Tensor, treadle.Tensor]:
    base = treadle.stack([x * 3, x])
    return base[1], base


def _on_a_transposed_view(x: treadle.Tensor) -> tuple[treadle.Tensor, treadle.Tensor]:
    moved = x.movedim(0, -1) if x.dim() else x
    view = treadle.stack([moved, moved * 2])[0]
    view = view.movedim(-1, 0) if x.dim() else view
    return view, view


def in_place_gradients(op: Operator, dtype: str) -> None:
    """The in-place form, alone, on a view, on a transposed view and twice, has the gradients, first
    and second, of the functional form."""

    def in_place(place: Callable[..., Any], times: int) -> Any:
        def function(x: treadle.Tensor, *args: Any, **kwargs: Any) -> treadle.Tensor:
            changed, whole = place(x)
            for _ in range(times):
                op.inplace(changed, *args, **kwargs)
            return whole

        return _Called(function)

    def functional(times: int, beside: bool) -> Any:
        def function(x: treadle.Tensor, *args: Any, **kwargs: Any) -> treadle.Tensor:
            y = x
            for _ in range(times):
                y = op.function(y, *args, **kwargs)
            return treadle.stack([x * 3, y]) if beside else y

        return _Called(function)

    def found(called: Any, leaves: list[treadle.Tensor], call: Any) -> list[treadle.Tensor]:
        (output,) = call(called, *leaves)
        weight = treadle.linspace(0.5, 1.5, output.numel(), dtype=treadle.float64)
        grads = treadle.autograd.grad(
            output, leaves, weight.reshape(output.shape).to(output.dtype),
            create_graph=True, allow_unused=True,
        )  # fmt: skip
        result = [treadle.zeros_like(x) if g is None else g for x, g in zip(leaves, grads)]
        total = sum(g.abs().square().sum() for g in result if g.requires_grad)
        if isinstance(total, treadle.Tensor):
            try:
                second = treadle.autograd.grad(total, leaves, allow_unused=True)
            except NotImplementedError:
                second = ()
            result += [treadle.zeros_like(x) if g is None else g for x, g in zip(leaves, second)]
        return result

    for sample in samples_of(op, dtype):
        if not sample.grad or op.random or sample.settle is not None:
            continue
        leaves, call = leaves_and_call(sample, dtype)
        if not leaves or sum(t.numel() for t in leaves) > 80:
            continue
        results = call(op, *leaves)
        first = map_arrays(sample.args, lambda a: to_tensor(a, dtype))[0]
        if (
            len(results) != 1
            or not results[0].requires_grad
            or not (first.is_floating_point() or first.is_complex())
            or results[0].shape != first.shape
            or results[0].dtype != first.dtype
        ):
            continue
        for name, place, times, beside in (
            ("alone", _alone, 1, False),
            ("on a view", _on_a_view, 1, True),
            ("on a transposed view", _on_a_transposed_view, 1, False),
            ("twice", _alone, 2, False),
        ):
            try:
                want = found(functional(times, beside), leaves, call)
            except NotImplementedError as error:
                assert "derivative is not implemented" in str(error)
                break
            try:
                got = found(in_place(place, times), leaves, call)
            except RuntimeError as error:
                # A result that an operator saves is changed by the second call.
                if times == 1 or "expected result" not in str(error):
                    raise
                continue
            for g, w in zip(got, want):
                treadle.testing.assert_close(
                    g, w, equal_nan=True, msg=lambda m: f"{op.id} in place, {name}: {m}"
                )


def gradients_have_the_same_bits(op: Operator, dtype: str) -> None:
    threads = treadle.get_num_threads()
    try:
        for leaves, call in differentiable_calls(op, dtype):
            results = []
            for n in (1, 2, 3, 8):
                treadle.set_num_threads(n)
                outputs = [t for t in call(op, *leaves) if t.requires_grad]
                results.append(
                    treadle.autograd.grad(
                        outputs, leaves, [treadle.ones_like(t) for t in outputs], allow_unused=True
                    )
                )
            assert all(
                same_bits([g for g in r if g is not None], [g for g in results[0] if g is not None])
                for r in results
            )
    finally:
        treadle.set_num_threads(threads)
