"""The fuzzer: a fresh run over every operator, and that it finds, shrinks and replays what is
wrong.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.draw import draw
from fuzz.judge import Finding, judge
from fuzz.memory import Snapshot
from fuzz.recipe import LAYOUTS, Literal, Recipe, TensorNode, build
from fuzz.script import source
from fuzz.sequence import STEPS, sequence
from fuzz.shrink import candidates
from fuzz.values import FILLED, PALETTES, Palette

import treadle
from fuzz import law
from source_tree import TESTS

# Faults, by name: a module that puts the fault into `neg`, as a library might have it.
FAULTS = {
    "crash": """
def fault(*args, **kwargs):
    if args and getattr(args[0], "dtype", None) == treadle.int64:
        ctypes.string_at(8)
    return right(*args, **kwargs)
""",
    "hang": """
def fault(*args, **kwargs):
    while args and getattr(args[0], "dtype", None) == treadle.int64 and args[0].numel() == 67:
        pass
    return right(*args, **kwargs)
""",
    "wrong result": """
def fault(*args, **kwargs):
    result = right(*args, **kwargs)
    return result + 1 if result.dtype == treadle.float64 else result
""",
    "writes what it may not": """
def fault(*args, **kwargs):
    result = right(*args, **kwargs)
    if args and isinstance(args[0], treadle.Tensor) and args[0].dtype == treadle.int64:
        args[0].detach().zero_()
    return result
""",
    "writes though it fails": """
def fault(*args, **kwargs):
    if args and isinstance(args[0], treadle.Tensor) and args[0].dtype == treadle.int64:
        args[0].detach().zero_()
        raise ValueError("neg: expected another dtype, got int64")
    return right(*args, **kwargs)
""",
    "exception of another type": """
def fault(*args, **kwargs):
    if args and getattr(args[0], "dtype", None) == treadle.int64:
        raise KeyError("neg: expected another dtype, got int64")
    return right(*args, **kwargs)
""",
    "message with internal names": """
def fault(*args, **kwargs):
    if args and getattr(args[0], "dtype", None) == treadle.int64:
        raise ValueError("neg: expected std::vector<int64_t>, got nothing")
    return right(*args, **kwargs)
""",
    "differs from meta": """
def fault(*args, **kwargs):
    result = right(*args, **kwargs)
    return result.reshape(-1) if result.is_meta else result
""",
    "depends on the layout": """
def fault(*args, **kwargs):
    result = right(*args, **kwargs)
    return result if args[0].is_contiguous() else result - 1
""",
    "refuses a call that fits": """
def fault(*args, **kwargs):
    if args and getattr(args[0], "dtype", None) == treadle.float64:
        raise ValueError("neg: expected another dtype, got float64")
    return right(*args, **kwargs)
""",
    "leak": """
kept = []
def fault(*args, **kwargs):
    result = right(*args, **kwargs)
    kept.append(result)
    return result
""",
}
HEAD = "import ctypes\nimport treadle\nright = treadle._C.neg\n"
TAIL = "\ntreadle._C.neg = treadle.neg = fault\n"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """python -m fuzz, as ./dev fuzz calls it."""
    places = [str(folder), str(TESTS), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "fuzz", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.mark.slow
def test_every_operator(tmp_path: Path) -> None:
    # The same calls each time: `./dev fuzz` draws others.
    done = run(tmp_path, "--calls", "50000", "--seed", "1608731674")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert ", 0 findings" in done.stdout


def test_sequences(tmp_path: Path) -> None:
    done = run(tmp_path, "--sequences", "100", "--seed", "7")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "100 sequences, 0 findings"


def test_a_sequence_is_always_the_same(tmp_path: Path) -> None:
    logs = []
    for _ in range(2):
        made = sequence(7, 3)
        assert made.run(STEPS) is None
        logs.append(made.log)
    assert logs[0] == logs[1] and len(logs[0]) == STEPS


SEQUENCE_FAULTS = {
    "writes beside": """
def add_(self, other, right=treadle.Tensor.add_):
    if self.numel() and self.storage_offset():
        self.as_strided((1,), (1,), 0).fill_(97)
    return right(self, other)
treadle.Tensor.add_ = add_
""",
    "dies of SIGSEGV": """
def resize_(self, shape):
    ctypes.string_at(8)
treadle.Tensor.resize_ = resize_
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", SEQUENCE_FAULTS)
def test_finds_what_is_wrong_in_a_sequence(fault: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import ctypes, treadle\n" + SEQUENCE_FAULTS[fault])
    count = 20 if fault.startswith("dies") else 100  # a process that died takes seconds to replace
    done = run(tmp_path, "--sequences", str(count), "--seed", "2")
    assert done.returncode == 1 and fault in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    first = next(line for line in done.stdout.splitlines() if line.startswith("sequence "))
    number = first.split()[1].rstrip(":")
    again = run(tmp_path, "--sequences", "1", "--seed", "2", "--first", number)
    assert again.returncode == 1 and fault in again.stdout


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_finds_shrinks_and_replays(fault: str, tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(HEAD + FAULTS[fault] + TAIL)
    # A process that died or hangs takes seconds to replace.
    calls = {"crash": 100, "hang": 80}.get(fault, 700)
    done = run(
        tmp_path, "--op", "neg", "--calls", str(calls), "--seed", "3", "--with", "faulty",
        "--hang", "3", "--shrink", "10", "--out", "found", "--workers", "2",
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    scripts = [p for p in (tmp_path / "found").glob("*.py") if fault.replace(" ", "-") in p.name]
    assert scripts, done.stdout
    # The fault is in the function: the call of another form may be found first.
    scripts.sort(key=lambda p: (", functional:" not in p.read_text(), p.name))
    text = scripts[0].read_text()
    # Small: nothing that the fault does not need.
    assert "import treadle\n" in text
    if fault in ("crash", "hang", "exception of another type"):
        assert "dtype=treadle.int64" in text and "requires_grad" not in text, text
        assert "treadle.neg(" in text and "kwargs" not in text, text
    if fault not in ("wrong result", "refuses a call that fits", "leak"):
        assert run(tmp_path, "--replay", str(scripts[0]), "--hang", "3").returncode == 1, text
        (tmp_path / "faulty.py").write_text("")
        again = run(tmp_path, "--replay", str(scripts[0]), "--hang", "10")
        assert again.returncode == 0, again.stdout + again.stderr + text


def test_a_run_without_findings(tmp_path: Path) -> None:
    done = run(tmp_path, "--op", "neg", "--calls", "200", "--seed", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "200 calls, 1 operators, 0 findings"
    assert run(tmp_path, "--op", "no_such_operator").returncode == 2


def test_a_number_is_always_the_same_call() -> None:
    for number in range(300):
        assert str(draw(5, number)) == str(draw(5, number))
    assert str(draw(5, 0)) != str(draw(6, 0))


def test_every_form_and_layout_is_drawn() -> None:
    forms, layouts, devices, ops = set(), set(), set(), set()
    for number in range(3000):
        recipe = draw(1, number)
        forms.add(recipe.form)
        ops.add(recipe.op)
        for node in recipe.nodes():
            if isinstance(node, TensorNode):
                layouts.add(node.layout)
                devices.add(node.device)
    assert forms == {"functional", "method", "inplace", "out"}
    assert layouts == set(LAYOUTS) and devices == {"cpu", "meta"}
    assert len(ops) > 400


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FILLED)
def test_source_makes_the_same_tensor(dtype: str, layout: str) -> None:
    for shape in ((), (3,), (2, 3), (2, 1, 4), (0, 2), (5, 40)):
        for palette in PALETTES:
            node = TensorNode(shape, dtype, Palette(palette, 1), layout)
            made, _ = node.build()
            printed = eval(node.source(), {"treadle": treadle})
            assert made.shape == printed.shape == shape and made.dtype == printed.dtype
            assert made.stride() == printed.stride()
            assert str(made.tolist()) == str(printed.tolist())


def test_shrinking_ends() -> None:
    args = [TensorNode((4, 5), grad=True), Literal([3, [2**70, -1.5]])]
    recipe = Recipe("add.Tensor", "out", args)
    for _ in range(2000):
        smaller = next(candidates(recipe), None)
        if smaller is None:
            break
        recipe = smaller
    assert next(candidates(recipe), None) is None
    assert not recipe.args


@pytest.mark.parametrize(
    "error, kind",
    [
        (ValueError("conv2d: expected stride > 0, got stride = (0, 1)"), None),
        (TypeError("'str' object cannot be interpreted as an integer"), None),
        (treadle.OutOfMemoryError("empty: expected to allocate 1 TiB on cpu"), None),
        (ValueError("stranger: refuses"), None),
        (KeyError("a"), "exception of another type"),
        (SystemError("bad call"), "exception of another type"),
        (ValueError(""), "empty message"),
        (ValueError("add: a\nb\nc\nd\ne\nf\ng"), "message of too many lines"),
        (ValueError("add: " + "x" * 2000), "message too long"),
        (RuntimeError("add: treadle::aten::add failed"), "message with internal names"),
        (RuntimeError("add: at aten/engine/contract.cc:12"), "message with internal names"),
        (RuntimeError("something went wrong"), "message that names no operator"),
        (treadle.InternalError("add: broken"), "internal error"),
    ],
)
def test_law(error: Exception, kind: str | None) -> None:
    breach = law.breach(error)
    assert (breach[0] if breach else None) == kind


def test_a_script_is_python() -> None:
    kinds = ("crash", "leak", "writes though it fails", "forms differ", "differs from meta",
             "backward: wrong result", "message too long", "wrong result")  # fmt: skip
    for number in range(400):
        recipe = draw(2, number)
        for kind in kinds:
            text = source(recipe, Finding(kind, 'odd """ text \\ \udc80'), "Call 1 of seed 2.")
            compile(text, "script", "exec")


def test_arguments_are_made_anew() -> None:
    recipe = Recipe("add.Tensor", "functional", [TensorNode((2,)), Literal([1])])
    first, second = build(recipe), build(recipe)
    first.args[0].zero_()
    first.args[1].append(2)
    assert second.args[0].tolist() != [0, 0] and second.args[1] == [1]
    assert build(recipe).args[1] == [1]


def test_a_call_in_place_may_write_self_and_nothing_else_wherever_it_stands() -> None:
    self, other = TensorNode((2,)), TensorNode((2,))
    calls = [
        (0, Recipe("add.Tensor", "inplace", [self, other])),
        (1, Recipe("add.Tensor", "inplace", [], {"other": other, "self": self})),
    ]
    for place, recipe in calls:
        built = build(recipe)
        before = Snapshot(recipe, built)
        built.pieces[place].tensor.add_(1)
        assert before.broken(failed=False) is None
        built.pieces[1 - place].tensor.add_(1)
        assert before.broken(failed=False) == f"argument {1 - place} was written"


def test_a_call_that_another_overload_takes_is_not_compared_with_its_own() -> None:
    """min(a, 0, out=t) is the smaller of two numbers, min(a, 0) goes along a dimension."""
    one, out = TensorNode((), "float32"), TensorNode((), "float32")
    checks = frozenset({"forms"})
    assert judge(Recipe("min.dim", "out", [one, Literal(0)], out=out, checks=checks)) is None
