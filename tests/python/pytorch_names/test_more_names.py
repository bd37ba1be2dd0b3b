"""Names of PyTorch 2.15 that are small: what they say and do."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import pytest

import treadle
import treadle.compiler.config
import treadle.monitor
from treadle import nn
from treadle.nn import functional as F  # noqa: N812
from treadle.testing import assert_close


def test_grouped_products() -> None:
    a, b = treadle.randn(7, 4), treadle.randn(3, 4, 5)
    offs = treadle.tensor([2, 2, 6], dtype=treadle.int32)
    expected = treadle.cat([a[:2] @ b[0], a[2:6] @ b[2], treadle.zeros(1, 5)])
    assert_close(F.grouped_mm(a, b, offs=offs), expected)
    stacked = treadle.randn(3, 7, 4)
    assert_close(F.grouped_mm(stacked, b), stacked @ b)
    wide = treadle.randn(4, 7)
    columns = F.grouped_mm(treadle.randn(3, 2, 4), wide, offs=offs)
    assert columns.shape == (2, 7) and (columns[:, 6:] == 0).all()
    both = F.grouped_mm(wide, treadle.randn(7, 3), offs=offs, out_dtype=treadle.float64)
    assert both.shape == (3, 4, 3) and both.dtype == treadle.float64 and (both[1] == 0).all()
    for given, message in (
        (None, "grouped_mm: expected offs for an operand of two dimensions, got None"),
        (offs + 9, "grouped_mm: expected offs that grow to at most 7, got [11, 11, 15]"),
    ):
        with pytest.raises(ValueError) as error:
            F.grouped_mm(a, b, offs=given)
        assert str(error.value) == message
    with pytest.raises(ValueError) as error:
        F.grouped_mm(a[0], b)
    message = "grouped_mm: expected matrices or stacks of them, got shapes (4,) and (3, 4, 5)"
    assert str(error.value) == message


def test_a_linear_layer_and_its_loss() -> None:
    x, target = treadle.randn(6, 4), treadle.tensor([0, 2, 1, 1, -100, 0])
    layer = nn.LinearCrossEntropyLoss(4, 3, bias=True, label_smoothing=0.1)
    scores = F.linear(x, layer.linear.weight, layer.linear.bias)
    expected = F.cross_entropy(scores, target, label_smoothing=0.1)
    assert_close(layer(x, target), expected)
    weight = treadle.randn(3, 2, 4)
    loss = F.linear_cross_entropy(x, weight, treadle.tensor([[0, 1]] * 6), reduction="none")
    scores = treadle.einsum("ni,coi->nco", x, weight)
    assert_close(loss, F.cross_entropy(scores, treadle.tensor([[0, 1]] * 6), reduction="none"))
    assert nn.LinearCrossEntropyOptions().acc_policy == "auto"


def test_layers_by_older_names() -> None:
    with pytest.warns(FutureWarning, match="^NLLLoss2d is the older name of NLLLoss$"):
        loss = nn.NLLLoss2d(reduction="sum")
    assert isinstance(loss, nn.NLLLoss) and loss.reduction == "sum"
    with pytest.warns(FutureWarning, match="^Container is an older class"):
        assert list(nn.Container(a=nn.ReLU())._modules) == ["a"]
    given = {"device": "cpu", "factory_kwargs": {"dtype": treadle.float64}}
    assert nn.factory_kwargs(given) == {"device": "cpu", "dtype": treadle.float64}
    with pytest.raises(TypeError) as error:
        nn.factory_kwargs({"bias": True})
    message = "factory_kwargs: expected device, dtype and memory_format, got ['bias']"
    assert str(error.value) == message
    with pytest.raises(TypeError, match="^factory_kwargs: expected dtype once, got it twice$"):
        nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 2}})


def test_names_among_the_functions_of_layers() -> None:
    x = treadle.randn(2, 3, 6, 6)
    values, indices = F.adaptive_max_pool2d_with_indices(x, 2)
    assert treadle.equal(x.flatten(2).gather(2, indices.flatten(2)), values.flatten(2))
    assert F.adaptive_max_pool1d_with_indices(x[0], 2)[1].shape == (3, 6, 2)
    assert F.adaptive_max_pool3d_with_indices(x, 2)[1].shape == (2, 2, 2, 2)
    assert F.GRID_SAMPLE_PADDING_MODES["border"] == 1
    F.assert_int_or_pair([1, 2], "size", "no {}")
    with pytest.raises(AssertionError, match="^no size$"):
        F.assert_int_or_pair([1, 2, 3], "size", "no {}")


def test_questions_about_tensors_that_are_not_here() -> None:
    x = treadle.ones(2)
    for name in ("is_ipu", "is_maia", "is_mkldnn", "is_mtia", "is_vulkan", "is_xla"):
        assert getattr(x, name) is False
    assert x.name is None and not x.is_distributed() and not hasattr(x, "names")
    assert_close(treadle.ones(2).polygamma_(1), treadle.polygamma(1, x))
    with pytest.raises(RuntimeError, match=r"^eig: expected a call of treadle.linalg.eig"):
        treadle.eye(2).eig()
    assert x.reshape(1, 2).to_sparse().to_dense().tolist() == [[1.0, 1.0]]


def test_types_of_results_written_to_out() -> None:
    assert treadle.return_types.sort_out is treadle.return_types.sort
    assert treadle.return_types.max in treadle.return_types.all_return_types


def test_switches_of_autograd() -> None:
    from treadle import autograd

    assert autograd.is_multithreading_enabled()
    with autograd.set_multithreading_enabled(False):
        assert not autograd.is_multithreading_enabled()
    assert autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(False)
    assert not autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(True)
    with autograd.enforce_grad_layout_policy(False):
        pass


def test_the_fast_way_of_attention() -> None:
    from treadle.backends import mha

    assert mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    assert not mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(True)
    cuda = treadle.backends.cuda
    assert not cuda.fp16_bf16_reduction_math_sdp_allowed()
    cuda.allow_fp16_bf16_reduction_math_sdp(True)
    assert cuda.fp16_bf16_reduction_math_sdp_allowed()
    cuda.allow_fp16_bf16_reduction_math_sdp(False)
    for name in ("flash", "efficient", "cudnn"):
        assert not getattr(cuda, f"can_use_{name}_attention")(None)
    assert not cuda.is_ck_sdpa_available()


def test_what_is_said_to_a_compiler() -> None:
    from treadle import compiler

    assert compiler.nonstrict_trace(len) is len
    assert compiler.skip_guard_on_globals_unsafe([1, 2]) == [True, True]
    assert compiler.set_enable_guard_collectives(True) is False
    assert compiler.set_enable_guard_collectives(False) is True
    assert compiler.save_cache_artifacts() is None
    assert compiler.config.recompile_limit == 8
    compiler.cudagraph_mark_warmup_incomplete()


def test_events(monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle.monitor import COUNT, MAX, MEAN, VALUE, Event, Stat

    seen: list = []
    handle = treadle.monitor.register_event_handler(seen.append)
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stat = Stat("loss", [MEAN, COUNT, MAX, VALUE], timedelta(seconds=10), max_samples=3)
    for value in (1.0, 5.0, 3.0, 9.0):
        stat.add(value)
    assert stat.count == 3 and stat.get() == {MEAN: 3.0, COUNT: 3.0, MAX: 5.0, VALUE: 3.0}
    assert seen == []
    now[0] = 11.0
    stat.add(2.0)
    assert [event.name for event in seen] == ["torch.monitor.Stat"]
    expected = {"loss.mean": 3.0, "loss.count": 3.0, "loss.max": 5.0, "loss.value": 3.0}
    assert seen[0].data == expected and stat.count == 1
    written: list = []

    class Writer:
        def add_scalar(self, name: str, value: Any, walltime: float) -> None:
            written.append((name, value, walltime))

    handler = treadle.monitor.TensorboardEventHandler(Writer())
    handler(seen[0])
    handler(Event("other", datetime.now(), {"x": 1}))
    assert [(name, value) for name, value, _ in written] == list(expected.items())
    treadle.monitor.unregister_event_handler(handle)
    treadle.monitor.log_event(seen[0])
    assert len(seen) == 1
    message = "^unregister_event_handler: expected a handler that is registered$"
    with pytest.raises(ValueError, match=message):
        treadle.monitor.unregister_event_handler(handle)
    with pytest.raises(ValueError, match="^Stat: expected a window of some time, got 0:00:00$"):
        Stat("x", [], timedelta(0))


def test_older_places() -> None:
    import treadle.masked.maskedtensor.creation

    import treadle.cpu.amp.autocast_mode
    import treadle.cpu.amp.grad_scaler

    assert treadle.cpu.amp.autocast_mode.autocast is treadle.cpu.amp.autocast
    assert treadle.cpu.amp.grad_scaler.GradScaler is treadle.cpu.amp.GradScaler
    creation = treadle.masked.maskedtensor.creation
    assert creation.masked_tensor is treadle.masked.masked_tensor
