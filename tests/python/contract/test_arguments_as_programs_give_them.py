"""Arguments in the forms that programs give them: values, sizes, dimensions and devices."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as torch

# ---- values ----


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8], ids=str)
def test_masked_fill_of_integers_takes_the_integer_part(dtype: Any) -> None:
    x = torch.zeros(3, dtype=dtype)
    mask = torch.tensor([True, False, True])
    assert x.masked_fill(mask, 3.96).tolist() == [3, 0, 3]
    assert x.masked_fill_(mask, 0.96).tolist() == [0, 0, 0]


@pytest.mark.parametrize("fill", [lambda x: x.fill_(3.0), lambda x: x.fill_(torch.tensor(3.0))])
def test_fill_of_an_expanded_tensor_writes_the_one_element(fill: Any) -> None:
    base = torch.zeros(2, 1)
    expanded = base.expand(2, 5)
    before = base._version
    assert fill(expanded) is expanded
    assert base.tolist() == [[3], [3]]
    assert base._version > before


def test_zero_of_an_expanded_tensor() -> None:
    base = torch.ones(1)
    base.expand(4).zero_()
    assert base.tolist() == [0]


def test_fill_of_an_expanded_tensor_cuts_its_gradient() -> None:
    leaf = torch.ones(1, requires_grad=True)
    copy = leaf * 2
    copy.expand(3).fill_(5.0)
    copy.sum().backward()
    assert leaf.grad.tolist() == [0]


@pytest.mark.parametrize(
    "index, values",
    [
        (torch.tensor([0, 1, 2, 3]), torch.arange(4.0).view(1, 4)),
        (torch.tensor([True, True, True, True]), torch.arange(4.0).view(1, 1, 4)),
    ],
    ids=["integers", "mask"],
)
def test_values_may_have_leading_dimensions_of_one_element(index: Any, values: Any) -> None:
    x = torch.zeros(4)
    x[index] = values
    assert x.tolist() == [0, 1, 2, 3]


def test_values_with_leading_dimensions_have_their_gradient() -> None:
    values = torch.ones(1, 1, 2, requires_grad=True)
    torch.zeros(2, 2).index_put((torch.tensor([0]),), values).sum().backward()
    assert values.grad.tolist() == [[[1, 1]]]


def test_values_of_another_shape_are_refused() -> None:
    with pytest.raises(RuntimeError) as error:
        torch.zeros(4)[torch.tensor([0, 1])] = torch.ones(2, 2)
    assert str(error.value) == (
        "index_put: expected values that broadcast to the indexed shape (2,), got shape (2, 2)"
    )


def test_a_list_within_itself_is_refused() -> None:
    data: list = [0]
    data.append(data)
    for nested in (data, [[1, 2], data]):
        with pytest.raises((TypeError, ValueError)):
            torch.tensor(nested)
    loop: list = []
    loop.append(loop)
    with pytest.raises(TypeError) as error:
        torch.tensor(loop)
    assert str(error.value) == "tensor: expected lists that end, got one that contains itself"


@pytest.mark.parametrize(
    "call",
    [
        lambda m: torch.where(m, torch.ones(2), torch.zeros(2)),
        lambda m: torch.where(m, 1.0, torch.zeros(2)),
        lambda m: torch.where(m, torch.ones(2), 0.0),
        lambda m: torch.where(m, 1.0, 0.0),
        lambda m: torch.ones(2).where(m, torch.zeros(2)),
    ],
)
def test_a_mask_of_bytes_chooses_with_a_warning(call: Any) -> None:
    mask = torch.tensor([2, 0], dtype=torch.uint8)
    with pytest.warns(UserWarning) as caught:
        result = call(mask)
    assert result.tolist() == [1, 0] and result.dtype == torch.float32
    assert [str(w.message) for w in caught] == [
        "where: a mask of dtype uint8 is deprecated; use one of dtype bool"
    ]


def test_a_mask_of_other_integers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="expected condition.dtype"):
        torch.where(torch.tensor([1, 0]), torch.ones(2), torch.zeros(2))


# ---- sizes and dimensions ----


def test_sizes_may_be_arrays_of_one_integer() -> None:
    assert torch.ones((np.array(3), np.int64(4))).shape == (3, 4)
    assert torch.zeros(2).new(size=(3, 4)).shape == (3, 4)
    for wrong in (np.array(2.5), np.array([2])):
        with pytest.raises(TypeError):
            torch.ones((wrong, 4))


@pytest.mark.parametrize("name", ["all", "any"])
def test_truth_over_no_dimension_is_that_of_each_element(name: Any) -> None:
    x = torch.tensor([[0, 2], [3, 0]])
    function = getattr(torch, name)
    for keepdim in (False, True):
        result = function(x, dim=(), keepdim=keepdim)
        assert result.dtype == torch.bool
        assert result.tolist() == [[False, True], [True, False]]
    assert function(x, dim=None).shape == ()


def test_searchsorted_compares_values_of_two_dtypes_in_their_common_one() -> None:
    row = torch.tensor([1, 2, 3], dtype=torch.int32)
    values = torch.tensor([0.5, 1.5, 3.0], dtype=torch.float64)
    assert torch.searchsorted(row, values).tolist() == [0, 1, 2]
    assert torch.bucketize(values, row, right=True).tolist() == [0, 1, 3]
    order = torch.tensor([2, 1, 0])
    assert torch.searchsorted(row.flip(0), values, sorter=order).tolist() == [0, 1, 2]
    out = torch.zeros(3, dtype=torch.int64)
    assert torch.searchsorted(row, values, out=out) is out
    assert out.tolist() == [0, 1, 2]


def test_resampling_writes_to_an_out() -> None:
    from treadle import _C

    out = torch.zeros(1, 1, 4)
    x = torch.arange(2.0).view(1, 1, 2)
    assert _C._nn.upsample_nearest1d(x, (4,), out=out) is out
    assert out.tolist() == [[[0, 0, 1, 1]]]


def test_nonzero_gives_tensors_or_an_out() -> None:
    with pytest.raises(RuntimeError) as error:
        torch.nonzero(torch.ones(3), as_tuple=True, out=torch.zeros(1))
    assert str(error.value) == "nonzero: expected no out beside as_tuple=True, which gives tensors"


def test_unravel_index_of_other_types_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="expected indices of an integer dtype"):
        torch.unravel_index(torch.tensor([1.0]), (2, 2))
    with pytest.raises(TypeError, match="expected ints in shape, got float"):
        torch.unravel_index(torch.tensor([1]), (1, 2.0))
    with pytest.raises(TypeError, match="expected shape to be an int or a sequence, got Tensor"):
        torch.unravel_index(torch.tensor([1]), torch.tensor([2, 2]))


# ---- devices ----


def test_a_device_keeps_its_number_and_a_tensor_of_the_cpu_has_none() -> None:
    import pickle

    device = torch.device("cpu:0")
    assert (str(device), device.index) == ("cpu:0", 0)
    assert torch.device("cpu", 0) == device
    assert torch.device(device) == device
    assert device != torch.device("cpu")
    assert pickle.loads(pickle.dumps(device)) == device
    assert torch.zeros(2, device=device).device == torch.device("cpu")
    assert torch.zeros(2, device="cpu:0").to(device).device.index is None


def test_the_cpu_may_have_any_number() -> None:
    second = torch.device("cpu:1")
    assert (str(second), second.index) == ("cpu:1", 1)
    assert torch.zeros(2, device="cpu:1").device == torch.device("cpu")
    for wrong in ("cpu:", "cpu:x", "cpu:-1", "cpu:1x"):
        with pytest.raises(RuntimeError, match="expected a device"):
            torch.device(wrong)
