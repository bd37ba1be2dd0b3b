"""Operators that change the geometry or the memory of one tensor on several threads at once. Each
waits until no operator of another thread runs, and decides then: the tensor is left as one order or
the other of the calls leaves it, and never reaches beyond its storage."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator

import pytest

import treadle

ROUNDS = 25


@contextlib.contextmanager
def _operators_of_another_thread() -> Iterator[None]:
    """A block during which another thread is in the middle of an operator nearly all the time."""
    over = threading.Event()
    large = treadle.ones(400, 400)

    def work() -> None:
        while not over.is_set():
            large @ large

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _is_inside(x: Any) -> bool:
    last = x.storage_offset() + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
    return x.numel() == 0 or (last + 1) * x.element_size() <= x.untyped_storage().nbytes()


def _both(x: Any, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> list[Exception]:
    refused: list[Exception] = []
    start = threading.Barrier(2)

    def call(function: Callable[[Any], Any]) -> None:
        start.wait()
        try:
            function(x)
        except (RuntimeError, IndexError) as error:
            refused.append(error)

    threads = [threading.Thread(target=call, args=(f,)) for f in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return refused


def _wide() -> Any:
    return treadle.arange(24.0).view(4, 6)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
    "as_strided_": lambda x: x.as_strided_((6, 4), (4, 1)),
    "resize_": lambda x: x.resize_(5, 4),
    "resize_as_": lambda x: x.resize_as_(treadle.ones(5, 4)),
    "out of a pointwise operator": lambda x: treadle.add(treadle.ones(5, 4), 1, out=x),
    "out of a reduction": lambda x: treadle.sum(treadle.ones(20, 2), 1, out=x),
    "out of a product": lambda x: treadle.mm(treadle.ones(5, 2), treadle.ones(2, 4), out=x),
}


def _set_data(x: Any) -> None:
    x.data = treadle.ones(2)


OTHERS: dict[str, Callable[[Any], Any]] = {
    "set_": lambda x: x.set_(treadle.ones(2)),
    "set_ to the end of a storage": lambda x: x.set_(treadle.ones(20)[18:]),
    "data": _set_data,
    "a smaller storage": lambda x: x.untyped_storage().resize_(8),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("change", CHANGES)
def test_geometry_stays_inside_the_storage(change: str, other: str) -> None:
    with _operators_of_another_thread():
        for _ in range(ROUNDS):
            x = _wide()
            _both(x, CHANGES[change], OTHERS[other])
            if other != "a smaller storage":
                assert _is_inside(x), (tuple(x.shape), x.stride(), x.storage_offset())
            elif not _is_inside(x):
                with pytest.raises(RuntimeError, match="elements are in its storage"):
                    x.sum()


def test_inputs_that_change_while_out_grows_are_read_as_they_are_then() -> None:
    with _operators_of_another_thread():
        for _ in range(ROUNDS):
            x, out = _wide(), treadle.empty(0)
            refused = _both(
                x, lambda x: treadle.mul(x, 2, out=out), lambda x: x.set_(treadle.ones(2))
            )
            for error in refused:
                assert str(error) == (
                    "mul: expected inputs that stay as they are while out is resized, got one that "
                    "another thread changed"
                )
            assert _is_inside(out)
