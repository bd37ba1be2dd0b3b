"""How tensors are shown: every text here is what PyTorch prints, with `treadle` for `torch`."""

import pytest

import treadle

inf, nan = float("inf"), float("nan")

SHOWN = [
    (lambda: treadle.tensor([1.0, 2.0]), "tensor([1., 2.])"),
    (lambda: treadle.tensor(3.14159265), "tensor(3.1416)"),
    (lambda: treadle.tensor(5), "tensor(5)"),
    (lambda: treadle.tensor(True), "tensor(True)"),
    (lambda: treadle.tensor([True, False]), "tensor([ True, False])"),
    (lambda: treadle.tensor([[1, 20], [300, 4]]), "tensor([[  1,  20],\n        [300,   4]])"),
    (lambda: treadle.tensor([1.5, -2.25]), "tensor([ 1.5000, -2.2500])"),
    (lambda: treadle.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda: treadle.tensor([1.0, 2000.0]), "tensor([1.0000e+00, 2.0000e+03])"),
    (lambda: treadle.tensor([10.0, 2000.0]), "tensor([  10., 2000.])"),
    (lambda: treadle.tensor([2e9, 1e9]), "tensor([2.0000e+09, 1.0000e+09])"),
    (lambda: treadle.tensor([0.0, 0.0]), "tensor([0., 0.])"),
    (lambda: treadle.tensor([nan, inf, -inf]), "tensor([nan, inf, -inf])"),
    (lambda: treadle.tensor([nan, 1000.0]), "tensor([  nan, 1000.])"),
    (lambda: treadle.tensor([nan, 1.5]), "tensor([   nan, 1.5000])"),
    (
        lambda: treadle.tensor([1.0, 2.0], dtype=treadle.float64),
        "tensor([1., 2.], dtype=treadle.float64)",
    ),
    (lambda: treadle.tensor([1], dtype=treadle.int32), "tensor([1], dtype=treadle.int32)"),
    (lambda: treadle.tensor([1.0], dtype=treadle.float16), "tensor([1.], dtype=treadle.float16)"),
    (lambda: treadle.tensor([1.0], dtype=treadle.bfloat16), "tensor([1.], dtype=treadle.bfloat16)"),
    (lambda: treadle.tensor([1 + 2j]), "tensor([1.+2.j])"),
    (lambda: treadle.tensor([1.5 - 2.25j, 0.5j]), "tensor([1.5000-2.2500j, 0.0000+0.5000j])"),
    (lambda: treadle.tensor([]), "tensor([])"),
    (lambda: treadle.tensor([], dtype=treadle.int64), "tensor([], dtype=treadle.int64)"),
    (lambda: treadle.zeros((2, 0)), "tensor([], size=(2, 0))"),
    (
        lambda: treadle.zeros((2, 3), device="meta"),
        "tensor(..., device='meta', size=(2, 3))",
    ),
    (
        lambda: treadle.tensor([1.0], requires_grad=True),
        "tensor([1.], requires_grad=True)",
    ),
    (
        lambda: treadle.tensor([1.0], requires_grad=True) * 2,
        "tensor([2.], grad_fn=<MulBackward0>)",
    ),
    (
        lambda: treadle.arange(1001),
        "tensor([   0,    1,    2,  ...,  998,  999, 1000])",
    ),
    (
        lambda: treadle.arange(30),
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    (
        lambda: treadle.zeros((2, 2, 2)),
        "tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])",
    ),
    (
        lambda: treadle.arange(1200).reshape((3, 400)),
        "tensor([[   0,    1,    2,  ...,  397,  398,  399],\n"
        "        [ 400,  401,  402,  ...,  797,  798,  799],\n"
        "        [ 800,  801,  802,  ..., 1197, 1198, 1199]])",
    ),
    (
        lambda: treadle.arange(1200).reshape((400, 3)),
        "tensor([[   0,    1,    2],\n        [   3,    4,    5],\n        [   6,    7,    8],\n"
        "        ...,\n"
        "        [1191, 1192, 1193],\n        [1194, 1195, 1196],\n        [1197, 1198, 1199]])",
    ),
]


@pytest.mark.parametrize("make, text", SHOWN, ids=[text[:40] for _, text in SHOWN])
def test_repr(make, text):
    assert repr(make()) == text


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
