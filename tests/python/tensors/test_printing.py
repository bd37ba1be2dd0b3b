"""How tensors, modules and what belongs to them are shown: the text is PyTorch's, with `treadle`
for `torch`, for the cases of tests/data/printing."""

# SPDX-License-Identifier: Apache-2.0

import json
import sys
import warnings

import pytest

import treadle
from source_tree import DATA

HERE = DATA / "printing"
sys.path.insert(0, str(HERE))
from printing_cases import CASES, text_of  # noqa: E402  shared with generate.py

EXPECTED = json.loads((HERE / "expected.json").read_text())

# Operators that are made of others here: the last of those is what backward begins with.
MADE_OF_OTHERS = {
    "mse": ("MseLossBackward0", "MeanBackward0"),
    "transpose": ("TBackward0", "TransposeBackward0"),
    "gathered": ("IndexBackward0", "IndexIntegerBackward0"),
}


@pytest.mark.parametrize("name", CASES)
def test_text_of_pytorch(name):
    expected = EXPECTED[name].replace("torch.", "treadle.")
    theirs, ours = MADE_OF_OTHERS.get(name, ("", ""))
    assert theirs in expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert text_of(CASES[name], treadle) == expected.replace(theirs, ours)


def test_str_is_repr():
    tensor = treadle.tensor([[1.5]])
    assert str(tensor) == repr(tensor)


def test_suffixes_go_to_a_new_line_when_they_do_not_fit():
    tensor = treadle.arange(18, dtype=treadle.int32)
    shown = repr(tensor)
    assert shown.endswith("17],\n       dtype=treadle.int32)")


def test_views_show_what_they_see():
    tensor = treadle.arange(6).reshape((2, 3))
    assert repr(tensor.transpose(0, 1)) == "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])"


def test_parameter():
    parameter = treadle.nn.Parameter(treadle.tensor([1.0]))
    assert repr(parameter) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_print_options():
    tensor = treadle.tensor([1.23456789, 2.0])
    with treadle.printoptions(precision=2):
        assert repr(tensor) == "tensor([1.23, 2.00])"
    assert repr(tensor) == "tensor([1.2346, 2.0000])"
    with treadle.printoptions(sci_mode=True):
        assert repr(tensor) == "tensor([1.2346e+00, 2.0000e+00])"
    with treadle.printoptions(threshold=4, edgeitems=1):
        assert repr(treadle.arange(6)) == "tensor([0,  ..., 5])"
    with treadle.printoptions(profile="full"):
        assert "500" in repr(treadle.arange(1001))
    with pytest.raises(ValueError, match="set_printoptions: expected a profile"):
        treadle.set_printoptions(profile="tiny")
    with pytest.raises(ValueError, match="expected precision >= 0"):
        treadle.set_printoptions(precision=-1)


def test_showing_records_nothing_and_changes_nothing():
    tensor = treadle.randn((40, 40), requires_grad=True)
    before = tensor._version
    repr(tensor)
    assert tensor._version == before and tensor.grad is None
