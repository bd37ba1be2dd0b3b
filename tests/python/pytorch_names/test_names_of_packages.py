"""Private names that packages for PyTorch call while they run: they do what PyTorch's do."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
import treadle.cuda.profiler
import treadle.nn.functional as F
from treadle import Tensor
from treadle.nn import init
from treadle.nn.modules.transformer import _get_activation_fn
from treadle.utils.data import ConcatDataset, DataLoader
from treadle.utils.data import dataloader as loaders


def test_casts_by_the_name_of_the_dtype() -> None:
    x = treadle.tensor([1.7, 2.0], requires_grad=True)
    dtypes = {
        "Byte": treadle.uint8,
        "Char": treadle.int8,
        "Short": treadle.int16,
        "Int": treadle.int32,
        "Long": treadle.int64,
        "Half": treadle.float16,
        "Float": treadle.float32,
        "Double": treadle.float64,
    }
    for name, dtype in dtypes.items():
        y = getattr(treadle, f"_cast_{name}")(x)
        assert y.dtype == dtype and y[1].item() == 2
    treadle._cast_Double(x, True).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]


def test_whether_cuda_was_used() -> None:
    assert treadle.cuda._initialized == ("cuda" in treadle._C._backends())


def test_a_profiler_needs_a_device() -> None:
    if treadle.cuda.is_available():
        with treadle.cuda.profiler.profile():
            pass
        return
    with pytest.raises(RuntimeError, match="cuda.profiler.start: expected a CUDA device, got none"):
        with treadle.cuda.profiler.profile():
            raise AssertionError("the block is not run")


def test_what_was_built_by_older_names() -> None:
    treadle.__dict__.pop("has_mkldnn", None)  # it is asked once
    with pytest.warns(UserWarning) as warned:
        assert treadle.has_mkldnn is treadle.backends.mkldnn.is_available()
    assert str(warned[0].message) == (
        "has_mkldnn is deprecated; ask treadle.backends.mkldnn.is_available()"
    )
    assert treadle.has_cuda is treadle.backends.cuda.is_built()
    assert treadle.has_mps is treadle.backends.mps.is_built()


def test_what_the_extension_module_answers() -> None:
    assert treadle._C._get_cudnn_enabled() is treadle.backends.cudnn.enabled
    seen = []

    def record(x: Any) -> Any:
        seen.append(treadle._C._is_tracing())
        return x * 2

    treadle.jit.trace(record, treadle.ones(2))
    assert treadle._C._is_tracing() is False and seen[0] is True


def test_mixed_precision_by_its_older_modules() -> None:
    import treadle.cuda.amp.autocast_mode
    import treadle.cuda.amp.common
    import treadle.cuda.amp.grad_scaler as scaler

    assert scaler.GradScaler is treadle.cuda.amp.GradScaler
    assert treadle.cuda.amp.autocast_mode.autocast is treadle.cuda.amp.autocast
    assert callable(treadle.cuda.amp.common.amp_definitely_not_available)


def test_products_of_small_integers() -> None:
    a = treadle.arange(-6, 6, dtype=treadle.int8).reshape(3, 4)
    b = treadle.arange(8, dtype=treadle.int8).reshape(4, 2)
    c = treadle._int_mm(a, b)
    assert c.dtype == treadle.int32 and c.tolist() == [[-44, -62], [4, 2], [52, 66]]
    most = treadle.full((1, 200), 127, dtype=treadle.int8)
    assert treadle._int_mm(most, most.t()).item() == 3225800
    out = treadle.empty(3, 2, dtype=treadle.int32)
    assert treadle._int_mm(a.abs().to(treadle.uint8), b, out=out) is out
    with pytest.raises(RuntimeError) as error:
        treadle._int_mm(a, b.int())
    assert str(error.value) == (
        "_int_mm: expected self of int8 or uint8 and mat2 of int8, got treadle.int8 and "
        "treadle.int32"
    )
    with pytest.raises(RuntimeError) as error:
        treadle._int_mm(a, b.t())
    assert str(error.value) == (
        "_int_mm: expected matrices of shapes (m, k) and (k, n), got (3, 4) and (2, 4)"
    )


def test_reductions_of_segments() -> None:
    x, ends = treadle.arange(6.0), treadle.tensor([0, 2, 6])
    assert treadle._segment_reduce(x, "sum", offsets=ends).tolist() == [1.0, 14.0]


def test_a_sparse_matrix_from_its_diagonals() -> None:
    x = treadle.arange(1.0, 10.0).reshape(3, 3).requires_grad_()
    matrix = treadle.sparse.spdiags(x, treadle.tensor([0, -1, 2]), (3, 4))
    assert matrix.to_dense().tolist() == [[1, 0, 9, 0], [4, 2, 0, 0], [0, 5, 3, 0]]
    matrix.to_dense().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[1, 1, 1], [1, 1, 0], [0, 0, 1]]
    one = treadle.sparse.spdiags(treadle.tensor([1, 2, 3]), treadle.tensor(1), (4, 4))
    assert one.coalesce().indices().tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (treadle.ones(2, 3), treadle.tensor([0]), (3, 3)),
            "expected diagonals of shape (d, n) and d offsets, got shapes (2, 3) and (1,)",
        ),
        (
            (treadle.ones(1, 3), treadle.tensor([0.0]), (3, 3)),
            "expected offsets of int64, got treadle.float32",
        ),
        (
            (treadle.ones(2, 3), treadle.tensor([0, 0]), (3, 3)),
            "expected different offsets, got 0 more than once",
        ),
        (
            (treadle.ones(1, 3), treadle.tensor([0]), (3,)),
            "expected a shape of two sizes, got (3,)",
        ),
        (
            (treadle.ones(1, 3), treadle.tensor([0]), (3, 3), treadle.strided),
            "expected the layout sparse_coo, sparse_csr or sparse_csc, got strided",
        ),
    ],
)
def test_diagonals_that_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(RuntimeError) as error:
        treadle.sparse.spdiags(*arguments)
    assert str(error.value) == f"spdiags: {message}"


def test_masks_as_numbers() -> None:
    mask = treadle.tensor([True, False])
    added = F._canonical_mask(mask, "mask", None, "", treadle.float64)
    assert added is not None and added.dtype == treadle.float64
    assert added.tolist() == [float("-inf"), 0.0]
    numbers = treadle.ones(2)
    assert F._canonical_mask(numbers, "mask", treadle.float32, "other", treadle.half) is numbers
    assert F._canonical_mask(None, "mask", None, "", treadle.float32) is None
    with pytest.raises(AssertionError) as error:
        F._canonical_mask(numbers.int(), "mask", None, "", treadle.float32)
    assert str(error.value) == (
        "only bool and floating types of mask are supported, got treadle.int32"
    )
    with pytest.warns(UserWarning) as warned:
        F._canonical_mask(mask, "mask", treadle.float32, "other", treadle.float32)
    assert str(warned[0].message) == (
        "expected mask and other of one dtype, got treadle.bool and treadle.float32; masks of "
        "two dtypes are deprecated"
    )
    F._canonical_mask(mask, "mask", treadle.float32, "other", treadle.float32, check_other=False)


def test_the_dtype_of_what_may_be_none() -> None:
    assert F._none_or_dtype(None) is None
    assert F._none_or_dtype(treadle.ones(1)) == treadle.float32
    with pytest.raises(RuntimeError) as error:
        F._none_or_dtype(3)  # type: ignore[arg-type]
    assert str(error.value) == "expected None or a Tensor, got int"


def test_activations_by_name() -> None:
    assert _get_activation_fn("relu") is F.relu and _get_activation_fn("gelu") is F.gelu


def test_values_that_are_drawn_without_gradients() -> None:
    x = treadle.empty(100, requires_grad=True)
    assert 2.0 <= init._no_grad_uniform_(x, 2.0, 3.0).min().item() < 3.0
    assert init._no_grad_zero_(init._no_grad_normal_(x, 0.0, 1.0)).abs().sum().item() == 0.0
    assert init._no_grad_fill_(x, 2.0).sum().item() == 200.0
    assert init._no_grad_trunc_normal_(x, 0.0, 1.0, -0.5, 0.5).abs().max().item() <= 0.5


def test_where_datasets_end() -> None:
    assert ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_how_far_an_epoch_has_come(workers: int) -> None:
    batches = iter(DataLoader(list(range(6)), batch_size=2, num_workers=workers))
    assert batches._num_yielded == 0  # type: ignore[attr-defined]
    next(batches)
    assert batches._num_yielded == 1  # type: ignore[attr-defined]
    assert len(list(batches)) == 2 and batches._num_yielded == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_that_starts_later(monkeypatch: Any, workers: int) -> None:
    """A package that goes on in the middle of an epoch does this."""
    made = loaders._BaseDataLoaderIter.__init__

    def skip_one(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        made(self, loader, *args, **kwargs)
        next(self._sampler_iter)
        self._num_yielded = 1

    monkeypatch.setattr(loaders._BaseDataLoaderIter, "__init__", skip_one)
    batches = iter(DataLoader(list(range(6)), batch_size=2, num_workers=workers))
    assert [batch.tolist() for batch in batches] == [[2, 3], [4, 5]]
    assert batches._num_yielded == 3  # type: ignore[attr-defined]


def test_operators_that_may_call_kernels_of_triton() -> None:
    def twice(x: Tensor) -> Tensor:
        return treadle.library.wrap_triton(lambda value: value * 2)(x)

    # The schema is inferred from the annotations.
    twice.__annotations__ = {"x": Tensor, "return": Tensor}
    made = treadle.library.triton_op("tnp::twice", twice, mutates_args=())
    assert made(treadle.ones(2)).tolist() == [2.0, 2.0]
    assert treadle.ops.tnp.twice(treadle.ones(1)).item() == 2.0


def test_what_a_compiler_would_be_asked() -> None:
    from treadle._subclasses.fake_tensor import unset_fake_temporarily

    from treadle._guards import TracingContext

    assert TracingContext.try_get() is None
    with unset_fake_temporarily():
        assert treadle.ones(1).item() == 1.0
    assert treadle.compiler.config.cache_key_tag == ""


def test_names_of_calls_and_of_checks() -> None:
    layer = treadle.nn.Linear(2, 1)
    seen: list = []
    layer.register_forward_hook(lambda *_: seen.append(True))
    x = treadle.ones(1, 2)
    assert treadle.equal(layer._call_impl(x), layer(x)) and len(seen) == 2
    from treadle.testing import FileCheck

    assert FileCheck is treadle.FileCheck
