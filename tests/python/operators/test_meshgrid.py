"""meshgrid: the order of its first two dimensions."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle


def test_the_order_is_given_or_warned_of() -> None:
    x, y = treadle.arange(2), treadle.arange(3)
    with pytest.warns(UserWarning) as given:
        plain = treadle.meshgrid(x, y)
    assert [str(one.message) for one in given] == [
        'meshgrid: indexing will have to be given; without it, it is "ij"'
    ]
    rows = treadle.meshgrid(x, y, indexing="ij")
    columns = treadle.meshgrid([x, y], indexing="xy")
    for a, b, c in zip(plain, rows, columns):
        assert treadle.equal(a, b) and tuple(b.shape) == (2, 3)
        assert treadle.equal(b.T, c)


@pytest.mark.parametrize("indexing", ["", "ji"])
def test_another_order_is_refused(indexing: str) -> None:
    with pytest.raises(RuntimeError) as error:
        treadle.meshgrid(treadle.arange(2), indexing=indexing)
    assert str(error.value) == (f'meshgrid: expected indexing to be "xy" or "ij", got {indexing!r}')
