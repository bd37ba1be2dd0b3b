"""The groups of programs as they are printed and drawn; a group read back from its text computes
the bits that fusion does.

    pytest tests/python/fusion/test_groups.py --update-goldens

writes the texts and the pictures anew.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Tuple

import pytest

import treadle
from treadle import Tensor
from treadle.fusion import Group, explain

GOLDENS = Path(__file__).resolve().parent / "goldens"
UPDATE = "pytest tests/python/fusion/test_groups.py --update-goldens"
SVG = "{http://www.w3.org/2000/svg}"


def softmax(x: Tensor) -> Sequence[Tensor]:
    e = (x - x.amax(-1, keepdim=True)).exp()
    return [e / e.sum(-1, keepdim=True)]


def _layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    centered = x - x.mean(-1, keepdim=True)
    variance = (centered * centered).mean(-1, keepdim=True)
    return centered * treadle.rsqrt(variance + 1e-5) * w + b


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Sequence[Tensor]:
    return [_layer_norm(x, w, b)]


def gelu(x: Tensor) -> Sequence[Tensor]:
    return [0.5 * x * (1 + treadle.erf(x * 0.7071067811865476))]


def adam(m: Tensor, g: Tensor, v: Tensor, p: Tensor) -> Sequence[Tensor]:
    mean, square = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return [p - 0.001 * mean / (square.sqrt() + 1e-8), mean, square]


def dropout_residual_layer_norm(
    x: Tensor, mask: Tensor, r: Tensor, w: Tensor, b: Tensor
) -> Sequence[Tensor]:
    return [_layer_norm(r + x * mask * 1.25, w, b)]


def chain_of_nine(x: Tensor, y: Tensor) -> Sequence[Tensor]:
    return [(((x * y + 1) * x - y) * 2 + x * 0.5 - y) * x + 1]


def several_groups(x: Tensor) -> Sequence[Tensor]:
    """Values that cannot pass from group to group but through memory."""
    double = x * 2
    total = double.sum()
    return [double.t() + 1, x - total, x * double.sum(-1).reshape(-1, 1)[:1]]


ROWS, ROW = (24, 200), (200,)
# With the shapes of their arguments, which are in the order in which they are read.
PROGRAMS: Dict[Callable[..., Sequence[Tensor]], Tuple[Tuple[int, ...], ...]] = {
    softmax: (ROWS,),
    layer_norm: (ROWS, ROW, ROW),
    gelu: (ROWS,),
    adam: ((5000,),) * 4,
    dropout_residual_layer_norm: (ROWS, ROWS, ROWS, ROW, ROW),
    chain_of_nine: (ROWS, ROWS),
    several_groups: (ROWS,),
}
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


def _inputs(program: Callable[..., Any]) -> List[Tensor]:
    generator = treadle.Generator().manual_seed(0)
    return [treadle.rand(shape, generator=generator) for shape in PROGRAMS[program]]


def _waiting(program: Callable[..., Any], inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    with treadle.fuse(least=0):
        return program(*inputs)


def _compare(name: str, text: str, request: pytest.FixtureRequest) -> None:
    golden = GOLDENS / name
    if request.config.getoption("--update-goldens"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert golden.exists(), f"{name} is not there; write it: {UPDATE}"
    assert text == golden.read_text(), f"the groups have changed; after reading that: {UPDATE}"


@every_program
def test_text(program: Callable[..., Any], request: pytest.FixtureRequest) -> None:
    results = _waiting(program, _inputs(program))
    text = f"{explain()}\n"
    del results
    _compare(f"{program.__name__}.txt", text, request)


@every_program
def test_a_group_read_back_computes_the_same_bits(program: Callable[..., Any]) -> None:
    inputs = _inputs(program)
    with treadle.fuse(enabled=False):
        expected = program(*inputs)
    results = _waiting(program, inputs)
    groups = [g.group for g in explain().groups]
    assert [Group.parse(str(group)) for group in groups] == groups
    own = [read for group in groups for read in group.reads if not read.why_apart]
    if len(inputs) == 1:
        inputs = inputs * len(own)
    assert len(own) == len(inputs)
    left, written = iter(inputs), {}
    for group in map(Group.parse, map(str, groups)):
        given = [
            written[read.source].as_strided(read.shape, read.strides)
            if read.why_apart
            else next(left)
            for read in group.reads
        ]
        written.update(group.run(given))
    assert all(_is_in(known, list(written.values())) for known in expected)
    assert all(treadle.equal(*pair) for pair in zip(results, expected))


def _is_in(known: Tensor, values: Sequence[Tensor]) -> bool:
    return any(value.shape == known.shape and treadle.equal(value, known) for value in values)


# ---- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [layer_norm, several_groups], ids=lambda p: p.__name__)
def test_picture(program: Callable[..., Any], request: pytest.FixtureRequest) -> None:
    results = _waiting(program, _inputs(program))
    explanation = explain()
    del results
    _compare(f"{program.__name__}.svg", explanation.draw().svg, request)


@every_program
def test_picture_has_what_the_text_has(program: Callable[..., Any], tmp_path: Path) -> None:
    results = _waiting(program, _inputs(program))
    explanation = explain()
    del results
    explanation.draw().save(tmp_path / "groups.svg")
    svg = (tmp_path / "groups.svg").read_text()
    assert svg == explanation._repr_svg_()
    root = xml.fromstring(svg)
    boxes = Counter(box.get("class") for box in root.iter(f"{SVG}rect"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    groups = [g.group for g in explanation.groups]
    reads = [read for group in groups for read in group.reads]
    steps = [step for group in groups for step in group.steps]
    assert boxes["group"] == len(groups)
    assert boxes["operator"] == len(steps)
    assert boxes["cut"] == sum(bool(read.why_apart) for read in reads)
    assert boxes["leaf"] == len(reads) - boxes["cut"]
    assert boxes["result"] == sum(step.is_written for step in steps)
    for words in (
        *(g.cost for g in explanation.groups),
        *(step.call for step in steps),
        *(read.why_apart for read in reads if read.why_apart),
        *(f"float32 {read.shape}" for read in reads),
    ):
        assert words in texts


def test_picture_of_nothing() -> None:
    assert "<rect class" not in explain(treadle.ones(3)).draw().svg


def test_shapes() -> None:
    results = _waiting(layer_norm, _inputs(layer_norm))
    (explained,) = explain(results[0]).groups
    shapes = explained.group.shapes()
    rows, row = (24, 1), (24, 200)
    found = [shapes[step.value] for step in explained.group.steps]
    assert found == [rows, row, row, rows, rows, rows, row, row, row]
    assert [shapes[read.value] for read in explained.group.reads] == [(24, 200), (200,), (200,)]
