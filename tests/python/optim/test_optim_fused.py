"""The native steps over lists of tensors: what they refuse (and then write nothing), memory that
tensors share, threads, and their place among what autograd knows."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle import _C
from treadle_testing.check import same_bits

SETTINGS: dict[str, Any] = dict(
    lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-3, amsgrad=True, maximize=False
)
NAMES = ("self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs")
Lists = list[list[treadle.Tensor]]


def lists(shapes: Any = ((2, 3), (4,)), dtype: treadle.dtype = treadle.float64) -> Lists:
    """Parameters, gradients, both moments, largest moments; and the numbers of steps."""
    generator = treadle.Generator().manual_seed(0)
    made = [
        [treadle.rand(shape, generator=generator, dtype=dtype) for shape in shapes] for _ in NAMES
    ]
    return [*made, [treadle.tensor(1.0) for _ in shapes]]


def adam(given: Lists, **changed: Any) -> None:
    _C._fused_adam_(*given, **{**SETTINGS, **changed})


def arrays(given: Lists) -> list[np.ndarray]:
    return [tensor.detach().numpy().copy() for each in given for tensor in each]


# ---- refusals ------------------------------------------------------------------------------------


def replaced(which: int, place: int, tensor: Any) -> Callable[[Lists], None]:
    def change(given: Lists) -> None:
        given[which][place] = tensor

    return change


def shortened(which: int) -> Callable[[Lists], None]:
    return lambda given: given[which].pop()


def read_only() -> treadle.Tensor:
    array = np.ones(4)
    array.flags.writeable = False
    return treadle.from_numpy(array)


OF_DOUBLES = dict(dtype=treadle.float64)
REFUSED: list[tuple[Callable[[Lists], Any], dict[str, Any], type[Exception], str]] = [
    (lambda g: [each.clear() for each in g], {}, RuntimeError, "at least one tensor in self"),
    (shortened(1), {}, RuntimeError, "expected grads to hold 2 tensors, as self does, got 1"),
    (shortened(4), {}, RuntimeError, "expected max_exp_avg_sqs to hold 2 tensors"),
    (lambda g: g[4].clear(), {}, RuntimeError, "max_exp_avg_sqs to hold 2 tensors.* got 0"),
    (shortened(5), {}, RuntimeError, "expected state_steps to hold 2 tensors"),
    (
        replaced(2, 1, treadle.ones(5, **OF_DOUBLES)),
        {},
        RuntimeError,
        r"expected exp_avgs\[1\] of shape \(4,\), got \(5,\)",
    ),
    (
        replaced(1, 1, treadle.ones(4, dtype=treadle.float32)),
        {},
        RuntimeError,
        r"expected grads\[1\] of dtype float64, got float32",
    ),
    (
        replaced(3, 0, treadle.ones(2, 3, device="meta", **OF_DOUBLES)),
        {},
        RuntimeError,
        r"expected exp_avg_sqs\[0\] on cpu, got meta",
    ),
    (
        replaced(0, 1, treadle.ones(4).int()),
        {},
        RuntimeError,
        r"expected self\[1\] of dtype float64",
    ),
    (replaced(0, 1, None), {}, TypeError, r"must be Tensor\[\], not list of \[Tensor, None\]"),
    (replaced(1, 0, 3.5), {}, TypeError, r"must be Tensor\[\], not list of \[float, Tensor\]"),
    (
        replaced(0, 1, treadle.ones(1, **OF_DOUBLES).expand(4)),
        {},
        RuntimeError,
        "expected to write a tensor whose elements do not share memory",
    ),
    (
        lambda g: replaced(2, 1, read_only())(g),
        {},
        RuntimeError,
        "expected memory that may be written, got a read-only tensor",
    ),
    (replaced(5, 0, treadle.ones(2)), {}, RuntimeError, "state_steps to be one real number"),
    (
        replaced(5, 1, treadle.ones((), device="meta")),
        {},
        RuntimeError,
        "a tensor of state_steps on cpu, got meta",
    ),
    (lambda g: None, {"grad_scale": treadle.ones(3)}, RuntimeError, "grad_scale to be one real"),
    (
        lambda g: None,
        {"found_inf": treadle.ones((), dtype=treadle.complex64)},
        RuntimeError,
        "found_inf to be one real number, got complex64",
    ),
    (
        replaced(1, 1, treadle.ones(1, **OF_DOUBLES).expand(4)),
        {"grad_scale": treadle.tensor(2.0)},
        RuntimeError,
        "expected to write a tensor whose elements do not share memory",
    ),
]


@pytest.mark.filterwarnings("ignore:.*not writable")
@pytest.mark.parametrize("change, settings, error, text", REFUSED)
def test_refused_before_anything_is_written(
    change: Any, settings: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = lists()
    watched = [tensor for each in given for tensor in each]
    before = [tensor.numpy().copy() for tensor in watched]
    change(given)
    with pytest.raises(error, match=r"(?s)_fused_adam_(\(\))?: .*" + text):
        adam(given, **settings)
    for tensor, wanted in zip(watched, before):
        np.testing.assert_array_equal(tensor.numpy(), wanted)


# ---- memory --------------------------------------------------------------------------------------


def sequentially(given: Lists) -> list[np.ndarray]:
    """The meaning of a call: one place after the other, each from copies of what it holds then."""
    for place in range(len(given[0])):
        copies = [[each[place].clone()] for each in given]
        adam(copies)
        for index in (0, 2, 3, 4):
            given[index][place].copy_(copies[index][0])
    return arrays(given)


def columns(memory: treadle.Tensor, given: Lists) -> None:
    given[0][:] = [memory[:, 0], memory[:, 1]]


def neighbours(memory: treadle.Tensor, given: Lists) -> None:
    """Two parameters that share elements, and a moment that is shifted against its parameter."""
    flat = memory.view(-1)
    count = given[0][0].numel()
    given[0][:] = [flat[:count], flat[count // 2 : count // 2 + count]]
    given[2][1] = flat[count // 2 + 1 : count // 2 + 1 + count]


def its_own_gradient(memory: treadle.Tensor, given: Lists) -> None:
    given[1][0] = given[0][0]


def backwards(memory: treadle.Tensor, given: Lists) -> None:
    given[0][0] = given[0][0].flip(0).as_strided(given[0][0].shape, (1,))
    given[1][0] = memory[:, 0].flip(0)


@pytest.mark.parametrize("count", [7, 40_000], ids=["few", "many"])
@pytest.mark.parametrize("arrange", [columns, neighbours, its_own_gradient, backwards])
def test_memory_that_is_shared(arrange: Any, count: int) -> None:
    ends = []
    for run in (lambda given: (adam(given), arrays(given))[1], sequentially):
        given = lists(((count,), (count,)))
        memory = treadle.sin(treadle.arange(2.0 * count, **OF_DOUBLES)).view(count, 2)
        arrange(memory, given)
        ends.append([memory.numpy().copy(), *run(given)])
    for one, other in zip(*ends):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float64, treadle.bfloat16], ids=str)
def test_same_bits_at_any_thread_count(dtype: treadle.dtype) -> None:
    """Lists long enough to be shared out among threads, with pieces that begin anywhere."""
    shapes = ((3, 4), (50_001,), (0, 2), (), (7, 9001), (33_000,), (1,))
    threads = treadle.get_num_threads()
    ends = []
    try:
        for count in (1, 2, 3, 8):
            treadle.set_num_threads(count)
            given = lists(shapes, dtype)
            given[0][4] = given[0][4].t().contiguous().t()  # one that is walked through copies
            adam(given)
            ends.append(given)
    finally:
        treadle.set_num_threads(threads)
    assert all(same_bits(end, ends[0]) for end in ends[1:])
    alone = lists(shapes, dtype)
    for place in range(len(shapes)):
        adam([[each[place]] for each in alone])
    assert same_bits(alone, ends[0])


@pytest.mark.parametrize("dtype", [treadle.float16, treadle.bfloat16], ids=str)
def test_half_precision_is_rounded_once(dtype: treadle.dtype) -> None:
    given = lists(((700,),), dtype)
    wide = [[t.double() for t in each] for each in given]
    adam(given)
    adam(wide)
    for narrow, exact in zip(given[0] + given[2] + given[3], wide[0] + wide[2] + wide[3]):
        eps = treadle.finfo(dtype).eps
        np.testing.assert_allclose(narrow.double().numpy(), exact.numpy(), rtol=eps, atol=1e-6)


# ---- autograd ------------------------------------------------------------------------------------


def test_versions_are_counted() -> None:
    given = lists()
    before = [[tensor._version for tensor in each] for each in given]
    adam(given)
    for which, each in enumerate(given):
        for tensor, version in zip(each, before[which]):
            assert (tensor._version > version) == (which < 5)


def test_parameters_are_changed_without_recording_only() -> None:
    given = lists()
    given[0][1].requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        adam(given)
    before = given[0][1].tolist()
    with treadle.no_grad():
        adam(given)
    assert given[0][1].tolist() != before and given[0][1].grad_fn is None


def test_there_is_no_derivative() -> None:
    start = treadle.ones(4, dtype=treadle.float64, requires_grad=True)
    given = lists()
    given[0][1] = start * 2
    adam(given)
    assert given[0][1].requires_grad and given[0][0].requires_grad
    with pytest.raises(NotImplementedError, match="_fused_adam_"):
        given[0][1].sum().backward()
