"""fx.passes.reinplace: calls that write over what nobody needs any more."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random

import pytest

import treadle
from treadle import fx, nn
from treadle.fx.passes.reinplace import reinplace
from treadle.testing import assert_close

X = treadle.arange(6.0).reshape(2, 3) - 2


def changed(program, *args):
    """The targets of the calls afterwards; results and inputs have to be as before."""
    gm = fx.symbolic_trace(program)
    before = [a.clone() for a in args]
    expected = program(*args)
    assert reinplace(gm, *args) is gm
    for _ in range(2):
        assert_close(gm(*args), expected)
    assert all(treadle.equal(a, b) for a, b in zip(args, before))
    return [n.target for n in gm.graph.nodes if n.op.startswith("call")]


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(treadle.ones(3), requires_grad=False)

    def forward(self, x):
        return (self.w + 1).mul(2) + self.w.exp()


@pytest.mark.parametrize(
    ("program", "targets"),
    [
        (lambda x: (x.relu() + 1).exp(), ["relu", "add_", "exp_"]),
        (lambda x: treadle.sub(treadle.abs(x), 1), [treadle.abs, "sub_"]),
        (lambda x: -(x * 2) / 4, ["mul", "neg_", "div_"]),
        # The first result is needed later.
        (lambda x: (lambda y: (y + 1) * y)(x.exp()), ["exp", "add", "mul_"]),
        (lambda x: (lambda y: (y + 1, y))(x.exp()), ["exp", "add"]),
        # Views share its memory.
        (lambda x: (lambda y: (y.t() + 1).t() * y)(x.exp()), ["exp", "t", "add", "t", "mul_"]),
        (lambda x: x.exp().t().add(1), ["exp", "t", "add_"]),
        (lambda x: x.exp()[0].expand(2, 3).add(1), ["exp", "getitem", "expand", "add"]),
        # Other shapes and dtypes, and both operands in one memory.
        (lambda x: x.exp().sum(1), ["exp", "sum"]),
        (lambda x: x.exp() > 1, ["exp", "gt"]),
        (lambda x: (lambda y: y * y)(x.exp()), ["exp", "mul"]),
        (lambda x: x.exp()[:, :2] + x, None),
    ],
)
def test_calls(program, targets):
    if targets is None:
        with pytest.raises(RuntimeError):
            changed(program, X)
        return
    names = [t if isinstance(t, str) else t.__name__ for t in changed(program, X)]
    wanted = [t if isinstance(t, str) else t.__name__ for t in targets]
    assert [n for n in names] == wanted


def test_parameters_stay():
    module = Weighted()
    assert len([t for t in changed(module, X) if str(t).endswith("_")]) == 2
    assert treadle.equal(module.w, treadle.ones(3))


def test_any_program():
    written = 0
    for seed in range(60):
        choose = random.Random(seed)

        def program(x, y):
            choose.seed(seed)  # noqa: B023
            values = [x, y]
            for _ in range(8):
                a, b = choose.choice(values), choose.choice(values)  # noqa: B023
                kind = choose.randrange(6)  # noqa: B023
                made = (
                    a + b if kind == 0 else a * 2 if kind == 1 else a.tanh() if kind == 2
                    else treadle.sub(a, b) if kind == 3 else a[:] if kind == 4 else a.t().t()
                )  # fmt: skip
                values.append(made)
            return values[-1], values[choose.randrange(2, 10)]  # noqa: B023

        targets = changed(program, X, X + 1)
        written += sum(isinstance(t, str) and t.endswith("_") for t in targets)
    assert written > 20
