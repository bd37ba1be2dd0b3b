"""Every kind of contract violation, each with the exact text of its message.

The law: the operator, what was expected, what came; at most six lines; no name from inside the
library. These are the goldens; that every message of every operator keeps the law is asserted by
calling all of them with arguments that do not fit (operators/hostile.py).
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle_testing.cases import has_samples, in_suite
from treadle_testing.catalogue import Operator, operators
from treadle_testing.hostile import INTERNAL_NAMES, NAMED, calls_of, problem_of
from treadle_testing.law import MOST_LINES

ones = treadle.ones


def leaf() -> treadle.Tensor:
    return ones(2, requires_grad=True)


def part(n: int) -> tuple[treadle.Tensor, treadle.Tensor]:
    """Two views of one memory that overlap in part."""
    memory = ones(n)
    return memory[1:], memory[:-1]


def overlapping() -> Any:
    argument, out = part(4)
    return treadle.mul(argument, 2, out=out)


def an_input_of_another_shape() -> Any:
    x = ones(2, 3)
    return treadle.mm(x, ones(3, 5), out=x)


def backward_twice() -> None:
    y = (leaf() * leaf()).sum()
    y.backward()
    y.backward()


# kind of violation: (call, exception, message)
GOLDENS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "wrong rank": (
        lambda: treadle.mm(ones(2), ones(2, 2)),
        RuntimeError,
        "mm: expected self and mat2 with 2 dimensions, got shapes (2,) and (2, 2)",
    ),
    "wrong rank, a condition": (
        lambda: treadle.conv2d(ones(1, 1, 4, 4), ones(2, 2)),
        RuntimeError,
        "conv2d: expected weight.dim() == 4, got weight.dim() = 2",
    ),
    "sizes that do not fit": (
        lambda: treadle.mm(ones(2, 3), ones(2, 3)),
        RuntimeError,
        "mm: expected shapes that multiply, got (2, 3) and (2, 3)",
    ),
    "shapes that do not broadcast": (
        lambda: ones(2, 3) + ones(4),
        RuntimeError,
        "add: expected shapes that broadcast, got (2, 3) and (4,)",
    ),
    "shape of another size": (
        lambda: ones(6).reshape(4, 2),
        RuntimeError,
        "reshape: expected a shape of 6 elements, got shape = (4, 2)",
    ),
    "dtype outside the row": (
        lambda: treadle.bitwise_and(ones(2), ones(2)),
        NotImplementedError,
        "bitwise_and: expected a device, layout and dtype that has a kernel, got cpu, "
        "strided, float32\n"
        "kernels exist for: cpu (bool, uint8, uint16, uint32, uint64, int8, int16, int32, "
        "int64)",
    ),
    "dtype outside the row, made of others": (
        lambda: treadle.imag(ones(2)),
        NotImplementedError,
        "imag: expected self of a dtype in (complex64, complex128), got float32",
    ),
    "dtypes that differ": (
        lambda: treadle.mm(ones(2, 2), ones(2, 2, dtype=treadle.float64)),
        RuntimeError,
        "mm: expected self and mat2 of one dtype, got treadle.float32 and treadle.float64",
    ),
    "dtype of an index": (
        lambda: treadle.gather(ones(3), 0, treadle.tensor([0.5])),
        RuntimeError,
        "gather: expected index of dtype int64 or int32, got treadle.float32",
    ),
    "number of another kind": (
        lambda: treadle.add(ones(2, dtype=treadle.int64), 1, alpha=0.5),
        RuntimeError,
        "add: expected an integer beside tensors of dtype treadle.int64, got 0.5",
    ),
    "devices that differ": (
        lambda: ones(2) + ones(2, device="meta"),
        RuntimeError,
        "add: expected all tensors on one device, got cpu and meta",
    ),
    "index outside": (
        lambda: treadle.index_select(ones(3), 0, treadle.tensor([7])),
        IndexError,
        "index_select: expected index in [0, 3), got index = 7",
    ),
    "index outside, negative": (
        lambda: treadle.index_select(ones(3), 0, treadle.tensor([-4])),
        IndexError,
        "index_select: expected index in [0, 3), got index = -4",
    ),
    "index of an element": (
        lambda: ones(3)[5],
        IndexError,
        "index: expected index in [-3, 3) for dimension 0, got index = 5",
    ),
    "too many indices": (
        lambda: ones(3)[0, 0],
        IndexError,
        "index: expected at most 1 indices for a tensor of shape (3,), got 2",
    ),
    "dimension outside": (
        lambda: ones(2, 3).sum(2),
        IndexError,
        "sum: Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    "dimension of a 0-dim tensor": (
        lambda: treadle.tensor(1.0).softmax(3),
        IndexError,
        "softmax: Dimension out of range (expected to be in range of [-1, 0], but got 3)",
    ),
    "dimension twice": (
        lambda: ones(2, 3).permute(0, 0),
        RuntimeError,
        "permute: dim 0 appears multiple times in the list of dims (0, 0)",
    ),
    "negative size": (
        lambda: treadle.zeros(2, -3),
        RuntimeError,
        "zeros: expected size >= 0, got size = (2, -3)",
    ),
    "negative where positive is needed": (
        lambda: treadle.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), stride=(0, 1)),
        RuntimeError,
        "conv2d: expected stride > 0, got stride = (0, 1)",
    ),
    "above what there is": (
        lambda: ones(3).topk(4),
        RuntimeError,
        "topk: expected k in [0, 3], got k = 4",
    ),
    "sizes that overflow": (
        lambda: treadle.zeros(2**40, 2**40),
        RuntimeError,
        "zeros: expected sizes whose bytes can be counted in 63 bits, got sizes = "
        "(1099511627776, 1099511627776)",
    ),
    "number above int64": (
        lambda: treadle.zeros(2**70),
        OverflowError,
        "zeros: expected an int that fits 64 bits, got 1180591620717411303424",
    ),
    "more memory than there is": (
        lambda: treadle.empty(2**57),
        treadle.OutOfMemoryError,
        "empty: expected to allocate 512.0 PiB on cpu, the system refused",
    ),
    "list of another length": (
        lambda: treadle.conv2d(ones(1, 1, 4, 4), ones(1, 1, 2, 2), stride=(1, 1, 1)),
        RuntimeError,
        "conv2d: expected stride to have 2 entries, got (1, 1, 1)",
    ),
    "empty list": (
        lambda: treadle.cat([]),
        ValueError,
        "cat: expected a non-empty list of tensors, got an empty one",
    ),
    "list with a stranger": (
        lambda: treadle.cat([ones(2), 1]),
        TypeError,
        "cat(): expected cat(Tensor[] tensors, int dim=0, *, Tensor? out=None)\n"
        "got (list of [Tensor, int]): argument 'tensors' must be Tensor[], not list of "
        "[Tensor, int]",
    ),
    "None for a tensor": (
        lambda: treadle.exp(None),
        TypeError,
        "exp(): expected exp(Tensor input, *, Tensor? out=None)\n"
        "got (None): argument 'input' must be Tensor, not None",
    ),
    "None in a list": (
        lambda: treadle.cat([ones(2), None]),
        TypeError,
        "cat(): expected cat(Tensor[] tensors, int dim=0, *, Tensor? out=None)\n"
        "got (list of [Tensor, None]): argument 'tensors' must be Tensor[], not list of "
        "[Tensor, None]",
    ),
    "text outside the choice": (
        lambda: treadle.div(ones(2), ones(2), rounding_mode="up"),
        RuntimeError,
        "div: expected rounding_mode in ('trunc', 'floor'), got rounding_mode = 'up'",
    ),
    "text for a tensor": (
        lambda: treadle.add(ones(2), "a"),
        TypeError,
        "add(): expected one of:\n"
        "  add(Tensor input, Tensor other, *, Number alpha=1, Tensor? out=None)\n"
        "  add(Tensor input, Number other, Number alpha=1, *, Tensor? out=None)\n"
        "got (Tensor, str)",
    ),
    "text for a number": (
        lambda: treadle.zeros("3"),
        TypeError,
        "zeros(): expected zeros(int[] size, *, dtype? dtype=None, layout? layout=None, "
        "device? device=None, bool? pin_memory=None, Tensor? out=None, bool "
        "requires_grad=False)\n"
        "got (str): argument 'size' must be int[], not str",
    ),
    "text for a dtype": (
        lambda: treadle.zeros(2, dtype="float32"),
        TypeError,
        "zeros(): expected zeros(int[] size, *, dtype? dtype=None, layout? layout=None, "
        "device? device=None, bool? pin_memory=None, Tensor? out=None, bool "
        "requires_grad=False)\n"
        "got (int, dtype=str): argument 'dtype' must be dtype?, not str",
    ),
    "text that is no device": (
        lambda: treadle.zeros(2, device="nowhere"),
        RuntimeError,
        "zeros: Expected one of cpu, meta, cuda device type at start of device string: nowhere",
    ),
    "an index that is none": (
        lambda: treadle.zeros(2, device="cuda:x"),
        RuntimeError,
        "zeros: expected a device, one of cpu, meta, cuda with an optional index such as "
        "':1', got 'cuda:x'",
    ),
    "no argument": (
        lambda: treadle.exp(),
        TypeError,
        "exp(): expected exp(Tensor input, *, Tensor? out=None)\ngot (): argument 'input' missing",
    ),
    "unknown keyword": (
        lambda: treadle.exp(ones(2), nonsense=1),
        TypeError,
        "exp(): expected exp(Tensor input, *, Tensor? out=None)\n"
        "got (Tensor, nonsense=int): unexpected argument 'nonsense'",
    ),
    "too many arguments": (
        lambda: treadle.exp(ones(2), 1, 2),
        TypeError,
        "exp(): expected exp(Tensor input, *, Tensor? out=None)\n"
        "got (Tensor, int, int): too many arguments by position",
    ),
    "argument twice": (
        lambda: treadle.exp(ones(2), input=ones(2)),
        TypeError,
        "exp(): expected exp(Tensor input, *, Tensor? out=None)\n"
        "got (Tensor, input=Tensor): argument 'input' given twice",
    ),
    "out of another dtype": (
        lambda: treadle.add(ones(2), 1, out=treadle.zeros(2, dtype=treadle.int64)),
        RuntimeError,
        "add: expected out of a dtype that float32 can be cast to, got int64",
    ),
    "out on another device": (
        lambda: treadle.add(ones(2), 1, out=treadle.zeros(2, device="meta")),
        RuntimeError,
        "add: expected out on cpu, got out on meta",
    ),
    "out that is expanded": (
        lambda: treadle.add(ones(3), 1, out=treadle.zeros(1).expand(3)),
        RuntimeError,
        "add: expected to write a tensor whose elements do not share memory, got sizes = "
        "(3,), strides = (0,); clone() it first",
    ),
    "out that overlaps": (
        overlapping,
        RuntimeError,
        "mul: expected memory to write that is an input's own or apart from it, got tensors "
        "that overlap in part; clone() one of them first",
    ),
    "out that is an input of another shape": (
        an_input_of_another_shape,
        RuntimeError,
        "mm: expected an out of shape (2, 5), for it shares memory with an input, got (2, 3)",
    ),
    "out that requires grad": (
        lambda: treadle.add(ones(2), 1, out=leaf()),
        RuntimeError,
        "add: functions with out=... arguments don't support automatic differentiation, but "
        "one of the arguments requires grad",
    ),
    "out for an input that requires grad": (
        lambda: treadle.add(leaf(), 1, out=ones(2)),
        RuntimeError,
        "add: functions with out=... arguments don't support automatic differentiation, but "
        "one of the arguments requires grad",
    ),
    "out that cannot grow": (
        lambda: treadle.add(ones(9), 1, out=treadle.from_numpy(np.zeros(2, np.float32))),
        RuntimeError,
        "add: expected an out of shape (9,), for its storage cannot grow, got (2,); the storage "
        "is one over memory of another owner",
    ),
    "out of the wrong type": (
        lambda: treadle.add(ones(2), 1, out=3),
        TypeError,
        "add(): expected one of:\n"
        "  add(Tensor input, Tensor other, *, Number alpha=1, Tensor? out=None)\n"
        "  add(Tensor input, Number other, Number alpha=1, *, Tensor? out=None)\n"
        "got (Tensor, int, out=int)",
    ),
    "out, too few": (
        lambda: treadle.topk(ones(3), 1, out=(ones(1),)),
        TypeError,
        "topk: expected out to be a tuple of 2 tensors, got 1",
    ),
    "in place on a leaf": (
        lambda: leaf().add_(1),
        RuntimeError,
        "add_: a leaf Variable that requires grad is being used in an in-place operation",
    ),
    "in place to a smaller shape": (
        lambda: ones(3).add_(ones(2, 3)),
        RuntimeError,
        "add_: expected shapes that broadcast to self's (3,), got a result of shape (2, 3)",
    ),
    "in place to a narrower dtype": (
        lambda: ones(3, dtype=treadle.int64).add_(0.5),
        RuntimeError,
        "add_: expected a result that can be written to self of dtype treadle.int64, got "
        "treadle.float32",
    ),
    "in place on an expanded tensor": (
        lambda: ones(1).expand(3).mul_(2),
        RuntimeError,
        "mul_: expected to write a tensor whose elements do not share memory, got sizes = "
        "(3,), strides = (0,); clone() it first",
    ),
    "values of a meta tensor": (
        lambda: ones(1, device="meta").item(),
        NotImplementedError,
        "item: expected a tensor with data, got one on the meta device",
    ),
    "values that decide a shape, on meta": (
        lambda: ones(3, device="meta").nonzero(),
        NotImplementedError,
        "nonzero: expected a device, layout and dtype that has a kernel, got meta, strided, "
        "float32\n"
        "kernels exist for: cpu (bool, uint8, uint16, uint32, uint64, int8, int16, int32, "
        "int64, float16, bfloat16, float32, float64, complex64, complex128)",
    ),
    "reduction of nothing": (
        lambda: ones(0).max(),
        RuntimeError,
        "max: expected a tensor with elements, or a dim to reduce, got shape (0,)",
    ),
    "truth of several values": (
        lambda: bool(ones(2)),
        RuntimeError,
        "bool: expected a tensor with one element, whose truth is not ambiguous, got float32[2]",
    ),
    "view the strides do not allow": (
        lambda: ones(2, 3).t().view(6),
        RuntimeError,
        "view: expected a shape that the strides of the tensor allow, got shape = (6,) for "
        "sizes = (3, 2), strides = (1, 3)\n"
        "use reshape, which copies where it must",
    ),
    "geometry outside memory": (
        lambda: ones(4).as_strided((3,), (2,)),
        RuntimeError,
        "as_strided: expected a view inside its storage of 4 elements, got sizes = (3,), "
        "strides = (2,), offset = 0",
    ),
    "division of integers by zero": (
        lambda: treadle.tensor([1]) // 0,
        RuntimeError,
        "floor_divide: expected a non-zero divisor, got 0",
    ),
    "probability outside": (
        lambda: ones(2).bernoulli_(2.0),
        RuntimeError,
        "bernoulli_: expected p <= 1, got p = 2.0",
    ),
    "no spacing for a dimension": (
        lambda: treadle.gradient(ones(3), spacing=[]),
        RuntimeError,
        "gradient: expected a spacing for each of 1 dimensions, got 0",
    ),
    "quantile outside": (
        lambda: treadle.quantile(ones(3), treadle.tensor([0.5, 1.5])),
        RuntimeError,
        "quantile: expected q in [0, 1], got one that is not",
    ),
    "weights of nothing": (
        lambda: treadle.cov(ones(2, 2), fweights=treadle.tensor([0, 0])),
        RuntimeError,
        "cov: expected weights with a sum > 0, got one of 0",
    ),
    "edges of bins in disorder": (
        lambda: treadle.histogram(ones(3), treadle.tensor([0.0, 2.0, 1.0])),
        RuntimeError,
        "histogram: expected bin edges in ascending order, got 1.0 at 2",
    ),
    "gradient of integers": (
        lambda: ones(1, dtype=treadle.int64).requires_grad_(),
        RuntimeError,
        "requires_grad_: only Tensors of floating point and complex dtype can require "
        "gradients, got treadle.int64",
    ),
    "backward of several values": (
        lambda: (leaf() * 1).backward(),
        RuntimeError,
        "backward: grad can be implicitly created only for scalar outputs, got shape (2,)",
    ),
    "backward twice": (
        backward_twice,
        RuntimeError,
        "MulBackward0: Trying to backward through the graph a second time, but the values it "
        "saved were freed by the first; pass retain_graph=True to the first backward to keep "
        "them",
    ),
}


@pytest.mark.parametrize("kind", GOLDENS)
def test_golden(kind: str) -> None:
    call, exception, message = GOLDENS[kind]
    with pytest.raises(exception) as info:
        call()
    assert type(info.value) is exception
    assert str(info.value) == message


def test_goldens_keep_the_law() -> None:
    for kind, (_, _, message) in GOLDENS.items():
        assert len(message.splitlines()) <= MOST_LINES, kind
        assert not INTERNAL_NAMES.search(message), kind
        assert NAMED.match(message), kind


@pytest.mark.parametrize("op", [o for o in operators() if in_suite(o) and has_samples(o)], ids=repr)
def test_messages_of_every_operator(op: Operator) -> None:
    """A spread of the calls that test_bad_input makes all of, in processes that may use less
    memory."""
    calls = [c for c in calls_of(op) if "huge" not in c.label]
    chosen = calls[:8] + calls[8 :: max(1, len(calls) // 24)]
    problems = [f"{c.label}: {p}" for c in chosen if (p := problem_of(c))]
    assert not problems, "\n".join(problems)
