"""func.rearrange: dimensions permuted, split and joined by their names."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle.func import rearrange

X = treadle.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "pattern, sizes, wanted",
    [
        ("a b c -> c b a", {}, X.permute(2, 1, 0)),
        ("a b c -> c (a b)", {}, X.permute(2, 0, 1).reshape(4, 6)),
        ("... c -> c ...", {}, X.permute(2, 0, 1)),
        ("a ... -> (...) a", {}, X.reshape(2, 12).T),
        ("a ... -> a (... 1)", {}, X.reshape(2, 12)),
        ("a b (c d) -> a 1 b d c", {"d": 2}, X.reshape(2, 3, 2, 2).transpose(2, 3).unsqueeze(1)),
        ("a b c -> (a b c)", {}, X.reshape(24)),
        ("a b c -> a () b c", {}, X.unsqueeze(1)),
    ],
)
def test_values(pattern, sizes, wanted):
    assert treadle.equal(rearrange(X, pattern, **sizes), wanted)


def test_a_list_is_stacked_and_gradients_go_through():
    x, y = (treadle.ones(2, requires_grad=True) for _ in range(2))
    result = rearrange([x, y], "l n -> n l")
    assert result.shape == (2, 2)
    (result * treadle.tensor([1.0, 2.0])).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "pattern, sizes, message",
    [
        (
            "a b -> b a", {},
            "rearrange: expected a tensor of 2 dimensions for 'a b -> b a', got 3",
        ),
        (
            "a b c -> a b", {},
            "rearrange: expected the same names on both sides, got 'a b c -> a b'",
        ),
        ("a b c", {}, "rearrange: expected a pattern with one ->, got 'a b c'"),
        (
            "a b (c d) -> a b c d", {"d": 3},
            "rearrange: expected the sizes of (c d) to make 4, got {'c': None, 'd': 3} for "
            "'a b (c d) -> a b c d'",
        ),
        (
            "a a c -> a a c", {},
            "rearrange: expected each name once, got 'a' twice in 'a a c -> a a c'",
        ),
        (
            "a b (c -> a b c", {},
            "rearrange: expected pairs of parentheses, got 'a b (c -> a b c'",
        ),
        (
            "a b ) -> a b", {},
            "rearrange: expected pairs of parentheses, got 'a b ) -> a b'",
        ),
        (
            "a b 2 -> a b 2", {},
            "rearrange: expected names, ( ), 1 and ... , got '2' in 'a b 2 -> a b 2'",
        ),
        (
            "a (... b) -> a ... b", {},
            "rearrange: expected ... alone on the left side, got 'a (... b) -> a ... b'",
        ),
        (
            "a b c -> a b c", {"z": 1},
            "rearrange: expected sizes of names in 'a b c -> a b c', got 'z'",
        ),
    ],
)  # fmt: skip
def test_messages(pattern, sizes, message):
    with pytest.raises(ValueError) as caught:
        rearrange(X, pattern, **sizes)
    assert str(caught.value) == message
