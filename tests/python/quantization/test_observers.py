"""Observers compute the scales and zero points that PyTorch computes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import pickle
import sys
from typing import Any, Dict

import pytest

import treadle
from source_tree import DATA
from treadle.ao import quantization as q

sys.path.insert(0, str(DATA / "quantization"))
from observer_cases import figures  # noqa: E402  among the data

EXPECTED: Dict[str, Any] = json.loads((DATA / "quantization" / "expected.json").read_text())


@pytest.fixture(scope="module")
def found() -> Dict[str, Any]:
    return json.loads(json.dumps(figures(treadle)))


@pytest.mark.parametrize("name", EXPECTED)
def test_figures_are_those_of_pytorch(name: str, found: Dict[str, Any]) -> None:
    """Scales, zero points and their dtypes are the same; rounded tensors and histograms, which
    follow, are as near as float32 goes."""
    got, wanted = found[name], EXPECTED[name]
    assert got[:4] == wanted[:4] and len(got) == len(wanted)
    for ours, theirs in zip(got[4:], wanted[4:]):
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-30)


def test_the_cases_are_the_recorded_ones(found: Dict[str, Any]) -> None:
    assert list(found) == list(EXPECTED)


def test_the_argument_passes_through_and_history_is_not_kept() -> None:
    x = treadle.tensor([1.0, -3.0], requires_grad=True)
    for observer in (q.MinMaxObserver(), q.HistogramObserver(), q.MovingAverageMinMaxObserver()):
        assert observer(x) is x
        assert not observer.min_val.requires_grad and observer.min_val.item() == -3.0
    assert q.MinMaxObserver()(treadle.empty(0, 3)).shape == (0, 3)
    empty = q.PerChannelMinMaxObserver()
    empty(treadle.empty(0, 3))
    assert empty.min_val.shape == (0,)


def test_observers_forget() -> None:
    observer = q.MinMaxObserver()
    observer(treadle.tensor([1.0, 2.0]))
    observer.reset_min_max_vals()
    assert observer.max_val.item() == -float("inf")
    channels = q.PerChannelMinMaxObserver()
    channels(treadle.ones(3, 2))
    channels.reset_min_max_vals()
    assert channels.min_val.numel() == 0
    with pytest.raises(NotImplementedError) as error:
        q.HistogramObserver().reset_min_max_vals()
    assert str(error.value) == "HistogramObserver: it cannot forget what it observed"


def test_nothing_seen_is_a_warning() -> None:
    text = "must run observer before calling calculate_qparams. Returning default values."
    for observer in (q.MinMaxObserver(), q.HistogramObserver(), q.PerChannelMinMaxObserver()):
        with pytest.warns(UserWarning) as caught:
            scale, zero_point = observer.calculate_qparams()
        assert str(caught[0].message) == text
        assert (scale.tolist(), zero_point.tolist()) == ([1.0], [0])


def test_infinite_numbers_are_left_out_of_histograms() -> None:
    observer = q.HistogramObserver()
    with pytest.warns(UserWarning, match="^HistogramObserver: infinite numbers are left out$"):
        observer(treadle.tensor([1.0, float("inf"), -2.0]))
    assert observer.max_val.item() == 1.0


def test_factories_keep_arguments() -> None:
    factory = q.MinMaxObserver.with_args(quant_min=0, quant_max=127).with_args(dtype=treadle.qint8)
    made = factory()
    assert (made.quant_max, made.dtype) == (127, treadle.qint8) and factory() is not made
    count = []
    computed = q.MinMaxObserver.with_callable_args(eps=lambda: count.append(1) or 0.5)
    assert computed().eps.item() == 0.5 and computed(eps=0.25).eps.item() == 0.25
    assert len(count) == 1
    copied = pickle.loads(pickle.dumps(factory))()
    assert copied.quant_max == 127 and copied.qscheme is treadle.per_tensor_affine


def test_state_of_observers_comes_back() -> None:
    x = treadle.arange(12.0).reshape(3, 4) - 5
    for factory in (
        q.MinMaxObserver,
        q.HistogramObserver,
        q.PerChannelMinMaxObserver,
        q.MovingAveragePerChannelMinMaxObserver,
    ):
        seen, new = factory(), factory()
        seen(x)
        new.load_state_dict(seen.state_dict())
        assert [t.tolist() for t in new.calculate_qparams()] == [
            t.tolist() for t in seen.calculate_qparams()
        ]
        copied = pickle.loads(pickle.dumps(seen))
        assert treadle.equal(copied.max_val, seen.max_val) and copied.qscheme is seen.qscheme


def test_older_names_of_buffers_are_read() -> None:
    new = q.PerChannelMinMaxObserver()
    state = new.state_dict()
    state["min_vals"], state["max_vals"] = treadle.tensor([-1.0]), treadle.tensor([2.0])
    del state["min_val"], state["max_val"]
    state._metadata[""]["version"] = 2
    new.load_state_dict(state)
    assert (new.min_val.tolist(), new.max_val.tolist()) == ([-1.0], [2.0])


def test_observers_that_look_at_nothing() -> None:
    x = treadle.tensor([1.0])
    for made in (q.NoopObserver(), q.PlaceholderObserver(), q.ReuseInputObserver()):
        assert made(x) is x
        with pytest.raises(RuntimeError) as error:
            made.calculate_qparams()
        name = type(made).__name__
        assert str(error.value) == f"{name}: it has no scale, as it observes nothing"
    recording = q.RecordingObserver()
    recording(x.requires_grad_() * 2)
    kept = recording.get_tensor_value()[0]
    assert kept.tolist() == [2.0] and not kept.requires_grad
    with pytest.warns(UserWarning) as caught:
        assert q.PlaceholderObserver(compute_dtype=treadle.quint8).is_dynamic
    assert str(caught[0].message) == (
        "PlaceholderObserver: pass is_dynamic=True instead of compute_dtype"
    )


def test_state_of_all_observers_of_a_model() -> None:
    model = treadle.nn.Sequential(q.QuantStub(), treadle.nn.Linear(2, 2))
    model.qconfig = q.default_qconfig
    one, other = q.prepare(model), q.prepare(model)
    one(treadle.tensor([[1.0, -2.0]]))
    state = q.get_observer_state_dict(one)
    assert all("activation_post_process" in key for key in state) and len(state) == 6
    q.load_observer_state_dict(other, state)
    ends = other[0].activation_post_process
    assert (ends.min_val.item(), ends.max_val.item()) == (-2.0, 1.0)
    del state["0.activation_post_process.min_val"]
    with pytest.raises(RuntimeError) as error:
        q.load_observer_state_dict(other, state)
    assert str(error.value) == (
        "load_observer_state_dict: expected the key 0.activation_post_process.min_val, got none"
    )


REFUSED = {
    "dtype": (
        lambda: q.MinMaxObserver(dtype=treadle.float16),
        AssertionError,
        "MinMaxObserver: expected dtype to be one of (treadle.qint8, treadle.quint8, "
        "treadle.quint4x2, treadle.qint32, treadle.int8, treadle.uint8, treadle.int16, "
        "treadle.int32, treadle.float8_e5m2, treadle.float8_e4m3fn, treadle.uint16), got "
        "treadle.float16",
    ),
    "scheme per channel": (
        lambda: q.MinMaxObserver(qscheme=treadle.per_channel_affine),
        NotImplementedError,
        "MinMaxObserver: expected qscheme to be one of (treadle.per_tensor_affine, "
        "treadle.per_tensor_symmetric), got treadle.per_channel_affine",
    ),
    "scheme per tensor": (
        lambda: q.PerChannelMinMaxObserver(qscheme=treadle.per_tensor_affine),
        NotImplementedError,
        "PerChannelMinMaxObserver: expected qscheme to be one of (treadle.per_channel_affine, "
        "treadle.per_channel_symmetric, treadle.per_channel_affine_float_qparams), got "
        "treadle.per_tensor_affine",
    ),
    "range without zero": (
        lambda: q.MinMaxObserver(quant_min=3, quant_max=9),
        AssertionError,
        "observer: expected quant_min < quant_max with 0 between them, got 3 and 9",
    ),
    "range turned round": (
        lambda: q.MinMaxObserver(quant_min=0, quant_max=0),
        AssertionError,
        "observer: expected quant_min < quant_max with 0 between them, got 0 and 0",
    ),
    "range too wide": (
        lambda: q.MinMaxObserver(dtype=treadle.qint8, quant_min=-200, quant_max=200),
        AssertionError,
        "observer: expected a range of at most 256 numbers for treadle.qint8, got -200 to 200",
    ),
    "range too wide for quint8": (
        lambda: q.MinMaxObserver(quant_min=0, quant_max=256),
        AssertionError,
        "observer: expected a range of at most 256 numbers for treadle.quint8, got 0 to 256",
    ),
    "reduced and symmetric": (
        lambda: q.MinMaxObserver(qscheme=treadle.per_tensor_symmetric, reduce_range=True),
        NotImplementedError,
        "MinMaxObserver: expected reduce_range=False for a symmetric scheme of treadle.quint8, got "
        "True",
    ),
    "dynamic averages": (
        lambda: q.MovingAverageMinMaxObserver(is_dynamic=True),
        NotImplementedError,
        "MovingAverageMinMaxObserver: expected is_dynamic=False, got True",
    ),
    "dynamic histogram": (
        lambda: q.HistogramObserver(is_dynamic=True),
        NotImplementedError,
        "HistogramObserver: expected is_dynamic=False, got True",
    ),
    "dynamic fixed": (
        lambda: q.FixedQParamsObserver(1.0, 0, is_dynamic=True),
        NotImplementedError,
        "FixedQParamsObserver: expected is_dynamic=False, got True",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_settings(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_ends_the_wrong_way_round_are_refused() -> None:
    observer = q.MinMaxObserver()
    observer.min_val.fill_(2.0)
    observer.max_val.fill_(1.0)
    with pytest.raises(AssertionError) as error:
        observer.calculate_qparams()
    assert str(error.value) == "observer: expected minima <= maxima, got 2.0 and 1.0"
