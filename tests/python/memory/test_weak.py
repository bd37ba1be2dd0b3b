"""utils.weak: references and dictionaries by which object it is."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc

import pytest

import treadle
from treadle.utils.weak import (
    TensorWeakRef,
    WeakIdKeyDictionary,
    WeakIdRef,
    WeakTensorKeyDictionary,
)


def test_references_are_equal_for_one_object():
    x, y = treadle.ones(2), treadle.ones(2)
    assert WeakIdRef(x) == WeakIdRef(x) != WeakIdRef(y)
    assert hash(WeakIdRef(x)) == id(x) and WeakIdRef(x)() is x
    reference = WeakIdRef(x)
    del x
    gc.collect()
    assert reference() is None and reference == reference


def test_a_dictionary_forgets_tensors_that_are_gone():
    known = WeakTensorKeyDictionary()
    x, y = treadle.ones(2), treadle.ones(2)
    known[x], known[y] = "x", "y"
    assert known[x] == "x" and y in known and treadle.ones(2) not in known and 3 not in known
    assert len(known) == 2 and {id(k) for k in known} == {id(x), id(y)}
    with pytest.raises(KeyError):
        known[treadle.ones(2)]
    del y
    gc.collect()
    assert list(known.values()) == ["x"] and len(known.keyrefs()) == 1
    assert known.pop(x) == "x" and len(known) == 0
    assert known.setdefault(x, 1) == 1 and known.get(x) == 1
    del known[x]
    assert x not in known


def test_dictionaries_are_copied_joined_and_compared():
    x, y = treadle.ones(1), treadle.zeros(1)
    known = WeakIdKeyDictionary({})
    known[x] = [1]
    other = known.copy()
    assert other == known and other[x] is known[x]
    deep = copy.deepcopy(known)
    assert deep == known and deep[x] is not known[x]
    more = WeakIdKeyDictionary()
    more[y] = [2]
    assert len(known | more) == 2 and len(known) == 1
    known |= more
    assert known[y] == [2] and known != other
    assert known != 3


def test_a_reference_to_a_tensor():
    x = treadle.ones(2)
    reference = TensorWeakRef(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None
    with pytest.raises(AssertionError) as caught:
        TensorWeakRef(3)
    assert str(caught.value) == "TensorWeakRef: expected a tensor, got int"
