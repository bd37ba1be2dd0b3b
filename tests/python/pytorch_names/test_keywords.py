"""Keywords of PyTorch 2.15 that old and new programs give."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings

import pytest

import treadle
from treadle import fx, signal
from treadle.fx.passes.split_module import split_module


def test_the_older_name_of_gradients():
    x = treadle.ones(2, requires_grad=True)
    with pytest.warns(FutureWarning, match="grad_variables is deprecated"):
        treadle.autograd.backward(x * 2, grad_variables=treadle.tensor([1.0, 3.0]))
    assert x.grad.tolist() == [2.0, 6.0]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError) as caught:
        treadle.autograd.backward(x * 2, x, grad_variables=x)
    assert str(caught.value) == (
        "backward: expected one of grad_tensors and grad_variables, got both"
    )


def test_modes_and_functions_by_keyword():
    counted = treadle.enable_grad(orig_func=treadle.is_grad_enabled)
    with treadle.no_grad():
        assert counted() is True
    once = treadle.autograd.function.once_differentiable(fn=lambda ctx, gradient: gradient)
    assert once(None, treadle.ones(1)).item() == 1


def test_the_layout_of_a_sparse_tensor():
    x = treadle.sparse_coo_tensor([[0]], [1.0], (2,), layout=treadle.sparse_coo)
    assert x.to_dense().tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError) as caught:
        treadle.sparse_coo_tensor([[0]], [1.0], (2,), layout=treadle.strided)
    assert str(caught.value) == (
        "sparse_coo_tensor: expected the layout treadle.sparse_coo, got treadle.strided"
    )


def test_the_layout_of_a_window():
    assert signal.windows.windows.hann is signal.windows.hann
    assert signal.windows.hann(3, layout=treadle.strided).tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ValueError) as caught:
        signal.windows.hann(3, layout=treadle.sparse_coo)
    assert str(caught.value) == (
        "hann: expected layout = treadle.strided, got layout = treadle.sparse_coo"
    )


def test_parts_that_return_tuples():
    gm = fx.symbolic_trace(lambda x: (x + 1) * 2)
    part_of = {"add": 0, "mul": 1}
    split = split_module(gm, gm, lambda n: part_of[n.name], tuple_return=True)
    x = treadle.ones(2)
    assert split(x).tolist() == [4.0, 4.0]
    assert [t.tolist() for t in split.submod_0(x)] == [[2.0, 2.0]]


def test_what_compile_keeps():
    program = treadle.compile(
        lambda x: x + 1, backend=lambda gm, inputs: gm, name="mine", recompile_limit=4,
        isolate_recompiles=True, dynamic_shapes=None,
    )  # fmt: skip
    assert program(treadle.ones(1)).item() == 2
    assert treadle.compiler.keep_tensor_guards_unsafe([1, 2], keep_parameters=True) == [True, True]


def test_paths_of_extensions():
    from treadle.utils import cpp_extension

    assert cpp_extension.include_paths(torch_include_dirs=False) == []
    assert cpp_extension.library_paths(torch_include_dirs=False) == []
    with pytest.raises(ValueError) as caught:
        cpp_extension.library_paths(cross_target_platform="windows")
    assert str(caught.value) == (
        "library_paths: expected cross_target_platform=None, got 'windows': extensions are built "
        "for this machine"
    )


def test_names_of_loading_data():
    from treadle.utils.data import backward_compatibility, dataloader

    assert dataloader.get_worker_info is treadle.utils.data.get_worker_info
    with pytest.warns(UserWarning, match="^worker_init_fn of backward_compatibility is deprecated"):
        backward_compatibility.worker_init_fn(0)


@pytest.mark.filterwarnings("ignore:.*numbers by position before the tensors")
def test_numbers_that_old_programs_give_by_position() -> None:
    x, y = treadle.tensor([1.0, 2.0]), treadle.tensor([3.0, 4.0])
    assert x.clone().add_(2, y).tolist() == treadle.add(x, 2, y).tolist() == [7, 10]
    assert x.sub(2, y).tolist() == [-5, -6]
    assert x.clone().addcmul_(2.0, y, y).tolist() == [19, 34]
    assert treadle.addcdiv(x, 3, y, y).tolist() == [4, 5]
    assert treadle.add(x, 2, y, out=treadle.empty(2)).tolist() == [7, 10]
    m = treadle.eye(2)
    assert m.addmm(2, 3, m, m).tolist() == treadle.addmm(2, m, 3, m, m).tolist() == [[5, 0], [0, 5]]
    assert m.addmm(2, m, m).tolist() == treadle.addmm(2, m, m, m).tolist() == [[3, 0], [0, 3]]
    assert x.addmv(2, 3, m, y).tolist() == [11, 16]
    for call in (lambda: x.add(y, 2, y), lambda: treadle.addmm(m, 2, m, m), lambda: x.mul(2, y)):
        with pytest.raises(TypeError, match="expected"):
            call()


def test_the_older_order_warns() -> None:
    x = treadle.ones(2)
    for name, call in (
        ("add_", lambda: x.clone().add_(2, x)),
        ("addcmul", lambda: treadle.addcmul(x, 2, x, x)),
    ):
        with pytest.warns(UserWarning) as given:
            call()
        assert [str(one.message) for one in given] == [
            f"{name}: numbers by position before the tensors are deprecated; give them as keywords"
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.add(x, alpha=2)
        with pytest.raises(UserWarning):
            x.add(2, x)
