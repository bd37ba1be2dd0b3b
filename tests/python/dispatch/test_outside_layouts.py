"""Layouts that a program registers: a vector kept as runs of equal values. Whatever goes by the
parts of a tensor works for it; kernels, rules and the fallback answer calls; mistakes are refused.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
from typing import Any, Callable, Iterator

import pytest

import treadle
from treadle import Tensor
from treadle.testing import assert_close


def _check(size: treadle.Size, lengths: Tensor, values: Tensor, version: int) -> None:
    if lengths.dtype != treadle.int64 or lengths.dim() != 1 or lengths.shape != values.shape[:1]:
        raise ValueError("test_runs: expected a length for each value")
    if lengths.is_meta:
        return
    if tuple(size) != (int(lengths.sum()),) or bool((lengths < 0).any()):
        raise ValueError(f"test_runs: expected lengths of {tuple(size)}, got {lengths.tolist()}")


def _to_dense(t: Tensor) -> Tensor:
    runs = RUNS.contents(t)
    return runs.values.repeat_interleave(runs.lengths)


RUNS = treadle.library.register_layout(
    "test_runs",
    parts=("lengths", "values"),
    fields=("version",),
    values="values",
    check=_check,
    to_dense=_to_dense,
)


@RUNS.rule("pointwise")
def _by_run(op: Any, args: tuple, kwargs: dict) -> Any:
    tensors = [x for x in args if isinstance(x, Tensor)]
    if len(tensors) != 1:
        return NotImplemented
    runs = RUNS.contents(tensors[0])
    values = op(*(runs.values if x is tensors[0] else x for x in args), **kwargs)
    return RUNS.tensor(tensors[0].shape, lengths=runs.lengths, values=values, version=runs.version)


@RUNS.kernel("aten::sum")
def _sum(self: Tensor, *, dtype: Any = None) -> Tensor:
    runs = RUNS.contents(self)
    return (runs.values * runs.lengths).sum(dtype=dtype)


def example(**options: Any) -> Tensor:
    values = treadle.tensor([1.0, -2.0, 3.0], **options)
    return RUNS.tensor((6,), lengths=treadle.tensor([2, 1, 3]), values=values, version=1)


DENSE = [1.0, 1.0, -2.0, 3.0, 3.0, 3.0]


@pytest.fixture
def with_fallback() -> Iterator[None]:
    RUNS.fallback = "to_dense"
    yield
    RUNS.fallback = "error"


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises((RuntimeError, TypeError, ValueError, NotImplementedError)) as error:
        call()
    return f"{type(error.value).__name__}: {error.value}"


def test_a_tensor_is_made_of_its_parts() -> None:
    t = example()
    assert t.layout is RUNS.layout and repr(t.layout) == "treadle.test_runs"
    assert (t.shape, t.dtype, t.dim()) == ((6,), treadle.float32, 1)
    runs = RUNS.contents(t)
    assert (runs.lengths.tolist(), runs.values.tolist(), runs.version) == (
        [2, 1, 3],
        [1.0, -2.0, 3.0],
        1,
    )
    assert t.to_dense().tolist() == DENSE
    assert t.to_dense(treadle.float64).dtype is treadle.float64
    assert repr(t) == (
        "tensor(lengths=tensor([2, 1, 3]),\n       values=tensor([ 1., -2.,  3.]),\n"
        "       size=(6,), version=1, layout=treadle.test_runs)"
    )
    assert repr(RUNS) == "<layout test_runs of lengths, values, version>"


def test_calls_go_to_kernels_and_rules() -> None:
    t = example()
    for made in (t.exp(), t * 2, 1 - t, treadle.clamp(t, min=0), t.abs().sqrt()):
        assert made.layout is RUNS.layout
    assert_close((t * 2 - 1).to_dense(), treadle.tensor(DENSE) * 2 - 1)
    assert t.sum().item() == 9.0 and t.sum(dtype=treadle.float64).dtype is treadle.float64
    version = t._version
    assert t.neg_() is t and t.to_dense().tolist() == [-x for x in DENSE]
    assert t._version == version + 1
    t.copy_(example())
    assert t.to_dense().tolist() == DENSE


def test_other_calls_are_errors() -> None:
    t = example()
    assert error_of(lambda: t.cumsum(0)) == (
        "NotImplementedError: cumsum: expected strided tensors, got one of layout test_runs; call "
        "to_dense()"
    )
    assert error_of(lambda: treadle.exp(t, out=treadle.empty(6))) == (
        "NotImplementedError: exp: expected no out= for tensors of layout test_runs, got one"
    )


def test_the_fallback_is_counted_and_can_be_an_error(with_fallback: None) -> None:
    t, dense = example(), treadle.tensor(DENSE)
    before = RUNS.fallback_calls().get("aten::cumsum", 0)
    assert_close(t.cumsum(0), dense.cumsum(0))
    assert_close(treadle.stack([t, t]), treadle.stack([dense, dense]))
    assert RUNS.fallback_calls()["aten::cumsum"] == before + 1
    out = treadle.empty(0)
    assert treadle.cumsum(t, 0, out=out) is out
    assert_close(out, dense.cumsum(0))
    assert_close(t + dense, dense * 2)
    assert error_of(lambda: t.cumsum_(0)) == (
        "RuntimeError: cumsum_: expected a result of layout test_runs and shape (6,), got layout "
        "strided and shape (6,)"
    )
    assert error_of(lambda: treadle.cumsum(dense, 0, out=t)).startswith("NotImplementedError: ")
    RUNS.fallback = "error"
    assert error_of(lambda: t.cumsum(0)).startswith("NotImplementedError: cumsum: expected strided")
    assert error_of(lambda: setattr(RUNS, "fallback", "yes")) == (
        "ValueError: fallback: expected one of error, to_dense, got 'yes'"
    )


def test_gradients_flow_to_the_parts(with_fallback: None) -> None:
    values = treadle.tensor([1.0, -2.0, 3.0], requires_grad=True)
    t = RUNS.tensor((6,), lengths=treadle.tensor([2, 1, 3]), values=values, version=1)
    ((t * t.to_dense()).cumsum(0).sum() + (t * 3).sum()).backward()
    dense = treadle.tensor(DENSE, requires_grad=True)
    ((dense * dense).cumsum(0).sum() + (dense * 3).sum()).backward()
    totals = [float(part.sum()) for part in dense.grad.split([2, 1, 3])]
    assert values.grad.tolist() == pytest.approx(totals)

    leaf = example().requires_grad_()
    assert leaf.requires_grad and leaf.is_leaf
    (leaf * 2).sum().backward()
    assert leaf.grad.layout is RUNS.layout
    assert RUNS.contents(leaf.grad).values.tolist() == [4.0, 2.0, 6.0]
    assert error_of(lambda: leaf.neg_()) == (
        "RuntimeError: neg_: expected no leaf that requires grad, got one"
    )


def test_copies_and_conversions_go_by_parts() -> None:
    t = example()
    for again in (t.clone(), copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert again is not t and again.layout is RUNS.layout
        assert again.to_dense().tolist() == DENSE and RUNS.contents(again).version == 1
    wide = t.to(treadle.float64)
    assert wide.dtype is treadle.float64 and RUNS.contents(wide).lengths.dtype is treadle.int64
    assert t.half().dtype is treadle.float16 and t.to(wide).dtype is treadle.float64
    there = t.to("meta")
    assert there.is_meta and there.shape == (6,) and RUNS.contents(there).lengths.is_meta
    assert pickle.loads(pickle.dumps(RUNS.layout)) is RUNS.layout
    assert pickle.loads(pickle.dumps(RUNS)) is RUNS
    assert treadle.library.registered_layout("test_runs") is RUNS
    wants = pickle.loads(pickle.dumps(example().requires_grad_()))
    assert wants.requires_grad and wants.is_leaf


def test_checkpoints() -> None:
    file = io.BytesIO()
    treadle.save({"x": example(), "p": treadle.nn.Parameter(example()), "at": RUNS.layout}, file)
    file.seek(0)
    loaded = treadle.load(file)
    assert loaded["x"].to_dense().tolist() == DENSE and loaded["at"] is RUNS.layout
    assert type(loaded["p"]) is treadle.nn.Parameter and loaded["p"].requires_grad
    assert loaded["p"].layout is RUNS.layout


@pytest.mark.parametrize("save", [pickle.dumps, None], ids=["pickle", "checkpoint"])
def test_contents_of_files_are_checked(save: Any) -> None:
    """A file by another program, with lengths that do not fit."""
    t = example()
    RUNS.contents(t).lengths.copy_(treadle.tensor([2, 1, 40]))
    if save is not None:
        text = error_of(lambda: pickle.loads(save(t)))
    else:
        file = io.BytesIO()
        treadle.save(t, file)
        file.seek(0)
        with pytest.raises(Exception) as error:
            treadle.load(file)
        text = str(error.value)
    assert "test_runs: expected lengths of (6,), got [2, 1, 40]" in text


def test_a_layout_that_is_not_registered_is_named() -> None:
    written = pickle.dumps(example()).replace(b"test_runs", b"best_runs")
    assert error_of(lambda: pickle.loads(written)) == (
        "RuntimeError: expected a registered layout, got 'best_runs'; register it first, as the "
        "program that wrote it did"
    )
    assert error_of(lambda: treadle.library.registered_layout("best_runs")).startswith(
        "RuntimeError: expected a registered layout, got 'best_runs'"
    )
    assert error_of(lambda: treadle.library.registered_layout("sparse_csr")) == (
        "RuntimeError: expected a layout from outside of the library, got treadle.sparse_csr"
    )


class _Items(treadle.utils.data.Dataset):
    def __getitem__(self, index: int) -> Tensor:
        return example() * index

    def __len__(self) -> int:
        return 3


def test_other_processes() -> None:
    loader = treadle.utils.data.DataLoader(
        _Items(), batch_size=None, num_workers=1, multiprocessing_context="fork"
    )
    sums = [t.sum().item() for t in loader]
    assert sums == [0.0, 9.0, 18.0]
    t = example().share_memory_()
    assert t.is_shared()
    process = treadle.multiprocessing.get_context("fork").Process(target=t.neg_)
    process.start()
    process.join()
    assert process.exitcode == 0


def test_explain_names_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    treadle.explain("sum")
    shown = capsys.readouterr().out
    assert "test_runs" in shown and "test_outside_layouts.py:" in shown


def test_several_threads() -> None:
    t, wrong = example(), []

    def work() -> None:
        for _ in range(50):
            if (t.exp().log() * 2).sum().item() != pytest.approx(18.0, rel=1e-5):
                wrong.append(t)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


BAD = treadle.library.register_layout("test_bad", parts=("values",), values="values")


def bad() -> Tensor:
    return BAD.tensor((2,), values=treadle.ones(2))


@BAD.kernel("aten::exp")
def _none(self: Tensor) -> Any:
    return None


@BAD.kernel("aten::neg")
def _other_size(self: Tensor) -> Tensor:
    return BAD.tensor((3,), values=treadle.ones(3))


@BAD.kernel("aten::sin")
def _raises(self: Tensor) -> Tensor:
    raise KeyError("sin")


@BAD.kernel("aten::cos")
def _calls_itself(self: Tensor) -> Tensor:
    return self.cos()


@BAD.kernel("aten::max.dim")
def _one_of_two(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    return self if dim == 0 and not keepdim else None


@BAD.rule("pointwise")
def _wrong_rule(op: Any, args: tuple, kwargs: dict) -> Any:
    return "text" if op.name() == "aten::tan" else NotImplemented


def test_kernels_and_rules_that_are_wrong() -> None:
    assert error_of(lambda: bad().exp()).startswith("RuntimeError: exp: expected ")
    assert bad().neg().shape == (3,)
    assert error_of(lambda: bad().neg_()) == (
        "RuntimeError: neg_: expected a result of layout test_bad and shape (2,), got layout "
        "test_bad and shape (3,)"
    )
    with pytest.raises(KeyError, match="sin"):
        bad().sin()
    with pytest.raises(RecursionError):
        bad().cos()
    assert error_of(lambda: bad().max(0)).startswith("RuntimeError: max")
    assert error_of(lambda: bad().tan()) == (
        "RuntimeError: tan: expected the rule of the layout test_bad to return Tensor, got str\n"
        "  tan(Tensor self) -> Tensor"
    )
    assert error_of(lambda: bad().to_dense()) == (
        "NotImplementedError: to_dense: expected a layout with a kernel of to_dense, got test_bad"
    )
    assert error_of(lambda: bad().to_sparse()).startswith("NotImplementedError: ")
    with pytest.raises((RuntimeError, NotImplementedError)):
        treadle.eye(2).to_sparse() @ bad()
    assert error_of(lambda: setattr(BAD, "fallback", "to_dense")) == (
        "ValueError: fallback: expected a layout with to_dense, got test_bad"
    )


def test_a_to_dense_that_is_wrong() -> None:
    wrong: dict[str, Any] = {}
    layout = treadle.library.register_layout(
        "test_wrong", parts=("values",), values="values", to_dense=lambda t: wrong["result"]
    )
    t = layout.tensor((2,), values=treadle.ones(2))
    text = "RuntimeError: to_dense: expected to_dense of the layout test_wrong to return a "
    for result, got in (
        (None, "strided tensor, got NoneType"),
        (t, "strided tensor, got treadle.test_wrong"),
        (treadle.ones(3), "tensor of shape (2,), got (3,)"),
    ):
        wrong["result"] = result
        assert error_of(lambda: t.to_dense()) == text + got


@pytest.mark.parametrize(
    "name, options, said",
    [
        (
            "test_runs",
            {},
            "ValueError: expected a new layout name, got 'test_runs', which is taken",
        ),
        ("a b", {}, "ValueError: register_layout: expected names that are identifiers, got 'a b'"),
        ("x", {"parts": ()}, "ValueError: register_layout: expected at least one part, got none"),
        (
            "x",
            {"values": "v"},
            "ValueError: register_layout: expected values to be one of the parts, got 'v'",
        ),
        (
            "x",
            {"fields": ("size",)},
            "ValueError: register_layout: expected names of parts and fields that differ and are "
            "not 'size', got 'size'",
        ),
        (
            "x",
            {"fallback": "to_dense"},
            "ValueError: register_layout: expected a function to_dense for this fallback, got "
            "fallback='to_dense'",
        ),
    ],
)
def test_layouts_that_are_refused(name: str, options: dict, said: str) -> None:
    given = {"parts": ("values",), "values": "values", **options}
    assert error_of(lambda: treadle.library.register_layout(name, **given)) == said


def test_tensors_that_are_refused() -> None:
    lengths, values = treadle.tensor([1]), treadle.ones(1)
    assert error_of(lambda: RUNS.tensor((1,), values=values)) == (
        "TypeError: test_runs: expected lengths, values, version, got values"
    )
    assert error_of(lambda: RUNS.tensor((1,), lengths=[1], values=values, version=1)) == (
        "TypeError: test_runs: expected a tensor for lengths, got list"
    )
    assert error_of(lambda: RUNS.tensor((5,), lengths=lengths, values=values, version=1)) == (
        "ValueError: test_runs: expected lengths of (5,), got [1]"
    )
    assert error_of(
        lambda: RUNS.tensor((1,), lengths=lengths, values=values.to("meta"), version=1)
    ) == ("ValueError: test_runs: expected parts on one device, got cpu and meta")
    assert error_of(
        lambda: RUNS.tensor((1,), lengths=lengths, values=values.to_sparse(), version=1)
    ) == ("ValueError: test_runs: expected strided parts, got values of treadle.sparse_coo")
    assert error_of(lambda: RUNS.contents(values)) == (
        "TypeError: test_runs: expected a tensor of treadle.test_runs, got treadle.strided"
    )
    for size in ((-1,), (1 << 62, 1 << 62)):
        with pytest.raises((ValueError, RuntimeError)):
            BAD.tensor(size, values=values)


def test_kernels_that_are_refused() -> None:
    again = error_of(lambda: RUNS.kernel("aten::sum", _sum))
    assert again.startswith("RuntimeError: aten::sum: ") and again.count(__file__) == 2
    assert error_of(lambda: RUNS.kernel("aten::summ", _sum)).startswith(
        "RuntimeError: expected the name of an operator, got 'aten::summ'"
    )
    assert error_of(lambda: RUNS.kernel("aten::exp_", _sum)) == (
        "RuntimeError: aten::exp_: expected an operator's first form, aten::exp, for a kernel of a "
        "layout; the other forms are made of it"
    )
    assert error_of(lambda: RUNS.kernel("sum", _sum)) == (
        "ValueError: kernel: expected an operator or its full name, as aten::mm, got sum"
    )
    assert error_of(lambda: RUNS.kernel("aten::mm", 3)) == (
        "TypeError: kernel: expected a function, got int"
    )
    assert error_of(lambda: RUNS.rule("points")) == (
        "ValueError: rule: expected one of pointwise, reduce, kernel, view, composite or None, got "
        "'points'"
    )


def test_as_many_layouts_as_there_is_room_for() -> None:
    program = (
        "import treadle\n"
        "for i in range(20):\n"
        "    treadle.library.register_layout(f'l{i}', parts=('v',), values='v')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: expected at most ")
