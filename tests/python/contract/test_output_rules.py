"""The rules of `out=`: what it may be and what becomes of it, for every operator that takes one;
and the strides of results. docs/contract.md states the rules.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle_testing import device
from treadle_testing.cases import dtypes_of, has_samples, in_suite, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.check import same_bits, tensors
from treadle_testing.sample import Sample, map_arrays, to_tensor

PREFERRED = ("float32", "float64", "int64", "bool", "complex64", "int32")
WITH_OUT = [
    o for o in operators() if in_suite(o) and has_samples(o) and o.takes_out and not o.is_unwritten
]


class Case:
    """One call of an operator, made anew each time, and what it returns without `out=`."""

    def __init__(self, op: Operator, sample: Sample, dtype: str):
        self.op, self.sample, self.dtype = op, sample, dtype
        self.wanted = tensors(self.call())

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        convert: Callable[[np.ndarray], Any] = lambda a: to_tensor(a, self.dtype)
        args = map_arrays(list(self.sample.args), convert)
        return args, {k: map_arrays(v, convert) for k, v in self.sample.kwargs.items()}

    def call(self, args: Any = None, **extra: Any) -> Any:
        positional, named = self.arguments()
        treadle.manual_seed(0)
        return self.op.function(*(positional if args is None else args), **named, **extra)

    def into(self, outs: list[treadle.Tensor], args: Any = None) -> None:
        self.call(args, out=outs[0] if len(outs) == 1 else tuple(outs))


def cases_of(op: Operator, most: int = 4) -> list[Case]:
    declared = dtypes_of(op)
    dtype = next((d for d in PREFERRED if d in declared), declared[0])
    found = [Case(op, s, dtype) for s in samples_of(op, dtype)]
    # One of each number of dimensions, those with elements first.
    found.sort(key=lambda c: not all(t.numel() for t in c.wanted))
    shapes: dict[Any, Case] = {}
    for case in found:
        shapes.setdefault(tuple(t.dim() for t in case.wanted), case)
    return list(shapes.values())[:most]


def garbage(shape: tuple[int, ...], dtype: treadle.dtype) -> treadle.Tensor:
    """A tensor whose values are wrong for every result."""
    return treadle.full(shape, 77 if dtype != treadle.bool else True).to(dtype)


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
@pytest.mark.parametrize("elements", ["none", "too few", "too many"])
def test_an_out_of_another_shape_is_resized(op: Operator, elements: str) -> None:
    for case in cases_of(op):
        shapes = {
            "none": lambda t: (0,),
            "too few": lambda t: (1,) * (t.dim() + 1),
            "too many": lambda t: (3, t.numel() + 5),
        }
        outs = [garbage(shapes[elements](t), t.dtype) for t in case.wanted]
        kept = [o.data_ptr() for o in outs]
        case.into(outs)
        assert same_bits(outs, case.wanted)
        assert all(o.is_contiguous() for o in outs)
        for out, place in zip(outs, kept):
            # Memory that suffices is kept; a tensor without elements has no address.
            assert elements != "too many" or not out.numel() or out.data_ptr() == place


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
@pytest.mark.parametrize("elements", ["none", "too few", "with gaps"])
def test_an_out_that_is_a_view_of_another_shape_is_refused(op: Operator, elements: str) -> None:
    """It would take in what lies beside it."""
    for case in cases_of(op):
        if not all(t.numel() for t in case.wanted):
            continue
        memories = [garbage((2, 3 * t.numel() + 3), t.dtype) for t in case.wanted]
        views = {
            "none": lambda m, t: m[0, 1:1],
            "too few": lambda m, t: m[0, 1 : 1 + t.numel() // 2].view((1,) * t.dim() + (-1,)),
            "with gaps": lambda m, t: m[:, : 2 * t.numel() + 1],
        }
        outs = [views[elements](m, t) for m, t in zip(memories, case.wanted)]
        shapes = [o.shape for o in outs]
        with pytest.raises(RuntimeError, match=r"^[\w.]+: expected an out of shape .* is a view"):
            case.into(outs)
        assert [o.shape for o in outs] == shapes
        for memory in memories:
            assert same_bits(memory, garbage(tuple(memory.shape), memory.dtype))


def test_an_out_that_is_a_view_may_shrink_into_its_own_place() -> None:
    s = treadle.zeros(6)
    out = s[1:5]
    assert treadle.add(treadle.ones(2), 1, out=out) is out and out.shape == (2,)
    assert s.tolist() == [0, 2, 2, 0, 0, 0]
    whole = s.view(2, 3)
    treadle.add(treadle.ones(8), 1, out=whole)  # nothing lies beside it
    assert whole.tolist() == [2] * 8 and s.tolist() == [2] * 6


def test_an_out_that_is_a_view_and_does_not_fit_says_so() -> None:
    s = treadle.zeros(6)
    with pytest.raises(RuntimeError) as info:
        treadle.add(treadle.ones(4), treadle.ones(4), out=s[:2])
    assert str(info.value) == (
        "add: expected an out of shape (4,), for it is a view and may not take in what lies beside "
        "it, got (2,)"
    )
    with pytest.raises(
        RuntimeError, match=r"^linspace: expected an out of shape \(4,\), for it is"
    ):
        treadle.linspace(1, 4, 4, out=treadle.zeros(10)[:8].view(2, 4)[:, :2])
    assert s.tolist() == [0] * 6


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
def test_an_out_of_the_right_shape_keeps_memory_and_strides(op: Operator) -> None:
    for case in cases_of(op):
        memories, outs = [], []
        for t in case.wanted:
            memories.append(garbage((*t.shape, 2), t.dtype))
            outs.append(memories[-1].select(-1, 1))
        strides = [o.stride() for o in outs]
        versions = [o._version for o in outs]
        case.into(outs)
        assert same_bits([o.contiguous() for o in outs], case.wanted)
        assert [o.stride() for o in outs] == strides
        assert all(o._version > v for o, v in zip(outs, versions))
        for memory, t in zip(memories, case.wanted):
            beside = memory.select(-1, 0).contiguous()
            assert same_bits(beside, garbage(tuple(t.shape), t.dtype)), "only `out` is written"


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
def test_a_result_is_cast_to_the_dtype_of_out_or_refused(op: Operator) -> None:
    case = cases_of(op)[0]
    for dtype in (treadle.bool, treadle.int32, treadle.float64, treadle.complex128):
        outs = [garbage(tuple(t.shape), dtype) for t in case.wanted]
        if op.json["promote"] == "sum":
            case.into(outs)  # computed in the dtype of `out`, as if it were asked for by dtype=
            assert [o.dtype for o in outs] == [dtype] * len(outs)
        elif all(treadle.can_cast(t.dtype, dtype) for t in case.wanted):
            case.into(outs)
            # A kernel may compute in the dtype of `out`, which is then the more exact.
            for o, t in zip(outs, case.wanted):
                treadle.testing.assert_close(o, t.to(dtype), rtol=1e-4, atol=1e-4, equal_nan=True)
        else:
            before = [o.clone() for o in outs]
            with pytest.raises(RuntimeError, match=r"^[\w.]+: expected .*dtype"):
                case.into(outs)
            assert same_bits(outs, before)


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
def test_an_out_on_another_device_is_refused(op: Operator) -> None:
    case = cases_of(op)[0]
    if not tensors(case.arguments()[0]):
        return  # a factory makes its result where `out` is
    outs = [treadle.empty(tuple(t.shape), dtype=t.dtype, device="meta") for t in case.wanted]
    with pytest.raises(RuntimeError, match=r"^[\w.]+: expected .*(on|device).*(cpu|meta)"):
        case.into(outs)


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
def test_an_out_that_is_an_argument_gets_the_result(op: Operator) -> None:
    """Reading comes before writing: an argument given as `out` too is as good as any."""
    for case in cases_of(op):
        if len(case.wanted) != 1:
            continue
        args, _ = case.arguments()
        for i, a in enumerate(args):
            same = isinstance(a, treadle.Tensor) and (a.shape, a.dtype) == (
                case.wanted[0].shape,
                case.wanted[0].dtype,
            )
            if same:
                fresh, _ = case.arguments()
                case.into([fresh[i]], fresh)
                assert same_bits(fresh[i], case.wanted[0]), f"argument {i}"


Shifted = Callable[[int, treadle.dtype], tuple[treadle.Tensor, treadle.Tensor, treadle.Tensor]]


def shifted_views(n: int, dtype: treadle.dtype) -> tuple[treadle.Tensor, ...]:
    """Memory, and two runs of n elements in it, one element apart."""
    memory = garbage((n + 1,), dtype)
    return memory, memory[:n], memory[1:]


def shifted_buffers(n: int, dtype: treadle.dtype) -> tuple[treadle.Tensor, ...]:
    """The same as tensors that know nothing of each other: three storages over one buffer of the
    host. Other devices have no such tensors."""
    if device.kind() != "cpu":
        return shifted_views(n, dtype)
    item = treadle.zeros(1, dtype=dtype).element_size()
    buffer = bytearray(item * (n + 1))
    memory = treadle.frombuffer(buffer, dtype=dtype)
    memory.copy_(garbage((n + 1,), dtype))
    return (
        memory,
        treadle.frombuffer(buffer, dtype=dtype, count=n),
        treadle.frombuffer(buffer, dtype=dtype, count=n, offset=item),
    )


def shifted_arrays(n: int, dtype: treadle.dtype) -> tuple[treadle.Tensor, ...]:
    if dtype == treadle.bfloat16 or device.kind() != "cpu":
        return shifted_buffers(n, dtype)
    array = garbage((n + 1,), dtype).numpy().copy()
    return tuple(treadle.from_numpy(a) for a in (array, array[:-1], array[1:]))


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
@pytest.mark.parametrize("shifted", [shifted_views, shifted_buffers, shifted_arrays])
def test_an_out_that_overlaps_an_argument_in_part(op: Operator, shifted: Shifted) -> None:
    """Either an exception and nothing written, or the right result; never a mixture."""
    for case in cases_of(op):
        if len(case.wanted) != 1 or case.wanted[0].numel() < 2:
            continue
        wanted = case.wanted[0]
        args, _ = case.arguments()
        for i, a in enumerate(args):
            if not isinstance(a, treadle.Tensor) or a.dtype != wanted.dtype or a.numel() < 2:
                continue
            memory, first, second = shifted(max(a.numel(), wanted.numel()), a.dtype)
            given = first[: a.numel()].copy_(a.reshape(-1)).view(a.shape)
            before = memory.clone()
            out = second[: wanted.numel()].view(wanted.shape)
            moved = [*args[:i], given, *args[i + 1 :]]
            try:
                case.into([out], moved)
            except RuntimeError as error:
                assert "memory" in str(error)
                assert same_bits(memory, before)
            else:
                assert same_bits(out, wanted)


INPLACE = [o for o in operators() if in_suite(o) and has_samples(o) and o.has_form("inplace")]


@pytest.mark.parametrize("op", INPLACE, ids=repr)
@pytest.mark.parametrize("shifted", [shifted_views, shifted_buffers, shifted_arrays])
def test_a_target_that_overlaps_an_argument_in_part(op: Operator, shifted: Shifted) -> None:
    """The same of the in-place form."""
    for case in cases_of(op):
        args, named = case.arguments()
        target = args[0] if args else None
        if not isinstance(target, treadle.Tensor) or target.numel() < 2:
            continue
        for i, a in enumerate(args[1:], 1):
            if not isinstance(a, treadle.Tensor) or a.dtype != target.dtype or a.numel() < 2:
                continue
            # The two have values in common, which is what both calls start from.
            memory, first, second = shifted(max(a.numel(), target.numel()), a.dtype)
            given = first[: a.numel()].copy_(a.reshape(-1)).view(a.shape)
            written = second[: target.numel()].view(target.shape)
            before, apart = memory.clone(), written.clone()
            rest = [*args[1:i], given.clone(), *args[i + 1 :]]
            try:
                treadle.manual_seed(0)
                op.inplace(apart, *rest, **named)
            except (RuntimeError, IndexError):
                continue  # the values in common are none that the operator takes
            rest[i - 1] = given
            try:
                treadle.manual_seed(0)
                op.inplace(written, *rest, **named)
            except RuntimeError as error:
                assert "memory" in str(error)
                assert same_bits(memory, before)
            else:
                assert same_bits(written, apart)


@pytest.mark.parametrize("make", [shifted_views, shifted_buffers, shifted_arrays])
def test_an_index_that_is_written_is_checked_as_it_is_read(make: Shifted) -> None:
    for write in (
        lambda me, i: me.scatter_(0, i, treadle.full((1000,), 2**40)),
        lambda me, i: treadle.gather(treadle.full((1000,), 2**40), 0, i, out=me),
        lambda me, i: me.index_put_((i,), treadle.full((1000,), 2**40)),
        lambda me, i: me.index_fill_(0, i, 2**40),
        lambda me, i: me.index_add_(0, i, treadle.full((1000,), 2**40)),
        lambda me, i: me.index_copy_(0, i, treadle.full((1000,), 2**40)),
        lambda me, i: me.scatter_add_(0, i, treadle.full((1000,), 2**40)),
        lambda me, i: treadle.take(treadle.full((1000,), 2**40), i, out=me),
        lambda me, i: treadle.index_select(treadle.full((1000,), 2**40), 0, i, out=me),
    ):
        memory, index, target = make(1000, treadle.int64)
        memory.zero_()
        apart, target_apart = index.clone(), target.clone()
        write(target_apart, apart)
        write(target, index)
        assert same_bits(target, target_apart)


@pytest.mark.parametrize("make", [shifted_views, shifted_buffers, shifted_arrays])
@pytest.mark.parametrize("n", [5, 200, 3_000_000])
def test_a_copy_between_tensors_that_overlap_is_right(make: Shifted, n: int) -> None:
    memory, first, second = make(n, treadle.float32)
    memory.copy_(treadle.arange(n + 1))
    second.copy_(first)
    assert memory[0].item() == 0 and treadle.equal(second, treadle.arange(n).float())
    memory.copy_(treadle.arange(n + 1))
    with pytest.raises(RuntimeError, match="^add_: .*overlap in part"):
        second.add_(first)
    assert treadle.equal(memory, treadle.arange(n + 1).float())


@pytest.mark.parametrize("make", [shifted_views, shifted_buffers, shifted_arrays])
def test_lists_whose_tensors_overlap_are_worked_through_in_order(make: Shifted) -> None:
    if device.kind() != "cpu":
        pytest.skip("a device without the operator has it run on a copy of each tensor")
    memory, first, second = make(50_000, treadle.float32)

    def step(params: list[treadle.Tensor], grads: list[treadle.Tensor]) -> None:
        treadle._C._fused_sgd_(
            params, grads, [], weight_decay=0.0, momentum=0.0, lr=-1.0, dampening=0.0,
            nesterov=False, maximize=False, is_first_step=False,
        )  # fmt: skip

    memory.fill_(1)
    step([first, second], [treadle.ones(50_000), treadle.ones(50_000)])
    assert memory[0].item() == 2 and memory[-1].item() == 2 and (memory[1:-1] == 3).all()
    memory.copy_(treadle.arange(50_001))
    step([first], [second])
    wanted = 2 * treadle.arange(50_000) + 1
    assert treadle.equal(first, wanted.float()) and memory[-1].item() == 50_000
    # The other way round each element is written before it is read.
    memory.copy_(treadle.arange(50_001))
    step([second], [first])
    assert treadle.equal(second, wanted.float()) and memory[0].item() == 0


def test_a_list_of_tensors_with_gaps_is_written_in_its_elements_only() -> None:
    base = treadle.zeros(9)
    p = treadle.nn.Parameter(base.as_strided((3, 3), (2, 2)))  # meeting elements, and odd gaps
    p.grad = treadle.ones(9).as_strided((3, 3), (2, 2))
    treadle.optim.SGD([p], lr=1.0).step()
    assert (base[1::2] == 0).all() and (base[::2] < 0).all()


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
def test_an_out_whose_elements_share_memory_is_refused(op: Operator) -> None:
    for case in cases_of(op):
        if len(case.wanted) != 1 or case.wanted[0].numel() < 2:
            continue
        t = case.wanted[0]
        out = garbage((1,) * t.dim(), t.dtype).expand(t.shape)
        with pytest.raises(RuntimeError, match="do not share memory"):
            case.into([out])
        assert same_bits(out, garbage(tuple(t.shape), t.dtype))


@pytest.mark.parametrize(
    "op", [o for o in WITH_OUT if len(cases_of(o, most=1)[0].wanted) > 1], ids=repr
)
def test_outs_that_share_memory_are_refused(op: Operator) -> None:
    for case in cases_of(op):
        if not all(t.numel() for t in case.wanted):
            continue
        size = 16 * max(t.numel() for t in case.wanted)
        for resized, says in [(False, " that overlap"), (True, " in one storage, to be resized")]:
            memory = treadle.zeros(size * len(case.wanted), dtype=treadle.uint8)
            outs = [
                memory[size * k * resized :][: t.numel() * t.element_size()]
                .view(t.dtype)
                .reshape((1, *t.shape) if resized else t.shape)
                for k, t in enumerate(case.wanted)
            ]
            with pytest.raises(RuntimeError) as info:
                case.into(outs)
            wanted = f": expected outs in memory of their own, got outs 0 and 1{says}"
            assert str(info.value).endswith(wanted)
            assert not memory.any()
            assert [o.dim() - resized for o in outs] == [t.dim() for t in case.wanted]


@pytest.mark.parametrize("op", WITH_OUT, ids=repr)
def test_an_out_that_requires_grad_is_refused(op: Operator) -> None:
    case = cases_of(op)[0]
    if not all(t.is_floating_point() for t in case.wanted):
        return
    outs = [garbage(tuple(t.shape), t.dtype).requires_grad_() for t in case.wanted]
    with pytest.raises(RuntimeError, match=r"^\w+: .*requires? grad"):
        case.into(outs)


# ---- strides of results --------------------------------------------------------------------------

IMAGE = (2, 3, 4, 5)
UNARY = [
    o
    for o in operators()
    if o.kind == "pointwise" and in_suite(o) and "float32" in o.dtypes and len(o.args) == 1
]


def image(order: tuple[int, ...] = (0, 2, 3, 1)) -> treadle.Tensor:
    """A tensor of shape IMAGE whose dimensions lie in memory in the given order."""
    memory = treadle.rand([IMAGE[d] for d in order])
    back = [order.index(d) for d in range(4)]
    return memory.permute(*back)


@pytest.mark.parametrize("op", UNARY, ids=repr)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)], ids=repr)
def test_pointwise_results_keep_the_order_of_strides(op: Operator, order: tuple[int, ...]) -> None:
    x = image(order)
    assert op.function(x).stride() == x.stride()


def test_pointwise_results_of_two_operands() -> None:
    last = image()
    assert last.is_contiguous(memory_format=treadle.channels_last)
    assert (last + last).stride() == last.stride()
    assert (last + 1).stride() == last.stride()
    assert (last + treadle.rand(3, 1, 1)).stride() == last.stride()
    assert (last * image((0, 1, 2, 3))).stride() == last.stride(), "the first operand decides"
    assert (image((0, 1, 2, 3)) * last).is_contiguous()
    assert treadle.where(last > 0.5, last, last).stride() == last.stride()


def test_gaps_and_expanded_dimensions_are_not_kept() -> None:
    gaps = treadle.rand(4, 6)[:, ::2]
    assert (gaps + 1).stride() == (3, 1)
    wide = treadle.rand(4, 1).expand(4, 3)
    assert (wide + 1).is_contiguous()
    turned = treadle.rand(6, 4)[::2].t()
    assert (turned + 1).stride() == (1, 4)
    assert (treadle.rand(0, 3).t() + 1).shape == (3, 0)


def test_other_kernels_give_contiguous_results() -> None:
    """The results have the same values, whatever the layout of the image. test_memory_formats.py
    has the kernels that keep channels_last."""
    functional = treadle.nn.functional
    calls = (
        lambda x: functional.layer_norm(x, x.shape[1:]),
        lambda x: functional.instance_norm(x),
        lambda x: functional.softmax(x, 1),
        lambda x: functional.max_unpool2d(x, treadle.arange(20).view(4, 5).expand(x.shape), 2),
        lambda x: treadle.cumsum(x, 2),
    )
    last = image()
    assert last.is_contiguous(memory_format=treadle.channels_last)
    for i, call in enumerate(calls):
        got, wanted = call(last), call(last.contiguous())
        assert got.is_contiguous() and wanted.is_contiguous(), i
        treadle.testing.assert_close(got, wanted)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_keeps_the_layout_of_the_image(training: bool) -> None:
    last = image()
    results = [
        treadle.nn.functional.batch_norm(x, treadle.zeros(3), treadle.ones(3), training=training)
        for x in (last, last.contiguous())
    ]
    assert results[0].stride() == last.stride()
    assert results[1].is_contiguous()
    treadle.testing.assert_close(*results)


def test_copies_keep_the_order_or_take_the_one_asked_for() -> None:
    x = image()
    assert x.clone().stride() == x.stride()
    assert treadle.empty_like(x).stride() == x.stride()
    assert treadle.zeros_like(x).stride() == x.stride()
    assert x.contiguous().is_contiguous()
    assert x.to(treadle.float64).stride() == x.stride()
    assert x.clone(memory_format=treadle.contiguous_format).is_contiguous()
    plain = image((0, 1, 2, 3))
    last = plain.contiguous(memory_format=treadle.channels_last)
    assert last.stride() == x.stride() and same_bits(last.contiguous(), plain)
