"""The profiler's report: what is counted (bytes moved, allocations, operations), the machine's
peak, and the text with its advice."""

# SPDX-License-Identifier: Apache-2.0

import json
import stat

import pytest

import treadle
from treadle import nn
from treadle.autograd import _profiler_report
from treadle.autograd.profiler_util import FunctionEvent
from treadle.profiler import Roofline, _roofline, profile, roofline

MB = 1 << 20


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, with a peak that is not measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_roofline, "_measured", lambda: [10e9, 100e9])
    return tmp_path


def recorded(function):
    with profile(record_shapes=True) as prof:
        function()
    return prof.events()


def event_named(events, name):
    (event,) = [event for event in events if event.name == name]
    return event


# ---- what is counted -----------------------------------------------------------------------------


def step(x, gradient):
    """A step of gradient descent by the operator itself: it may scale the gradient in place."""
    treadle._fused_sgd_(
        [x], [gradient], [], weight_decay=0, momentum=0, lr=1, dampening=0, nesterov=False,
        maximize=False, is_first_step=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "call, name, moved",
    [
        (lambda x, y: x + y, "aten::add", 3 * 400),
        (lambda x, y: x + 1, "aten::add", 2 * 400),
        (lambda x, y: x.add_(y), "aten::add_", 3 * 400),
        (lambda x, y: treadle.add(x, x, out=y), "aten::add", 3 * 400),
        (lambda x, y: x.copy_(y), "aten::copy_", 2 * 400),
        (lambda x, y: x.relu_(), "aten::relu_", 2 * 400),
        (lambda x, y: step(x, y), "aten::_fused_sgd_", 4 * 400),
        (lambda x, y: x.t(), "aten::t", 0),
        (lambda x, y: x.reshape(100), "aten::reshape", 0),
        (lambda x, y: x + y[:1].expand(10, 10), "aten::add", 2 * 400 + 40),
        (lambda x, y: treadle.cat([x, y]), "aten::_cat", 4 * 400),
        (lambda x, y: x.sum(), "aten::sum", 400 + 4),
        (lambda x, y: x.double(), "aten::copy_", 400 + 800),
        (lambda x, y: x.fill_(1), "aten::_fill_", 400),
    ],
)
def test_bytes_moved(call, name, moved):
    x, y = treadle.ones(10, 10), treadle.ones(10, 10)
    assert event_named(recorded(lambda: call(x, y)), name).bytes_moved == moved


def test_bytes_of_an_operator_made_of_others_are_theirs():
    x, w = treadle.ones(2, 4), treadle.ones(3, 4)
    events = recorded(lambda: nn.functional.linear(x, w))
    assert event_named(events, "aten::linear").bytes_moved == 0
    assert event_named(events, "aten::mm").bytes_moved == 4 * (8 + 12 + 6)


def test_bytes_need_shapes():
    x = treadle.ones(10)
    with profile() as prof:
        x + x
    assert [event.bytes_moved for event in prof.events()] == [0]


def test_allocations():
    x = treadle.ones(10, 10)
    events = recorded(lambda: (x + x, x.add_(x), nn.functional.linear(x, x)))
    by_name = {event.name: event for event in events}
    assert by_name["aten::add"].allocations == 1
    assert by_name["aten::add_"].allocations == 0
    assert by_name["aten::linear"].allocations >= 1
    assert by_name["aten::linear"].self_allocations == 0


# ---- the machine's peak --------------------------------------------------------------------------


def test_peak_is_measured_once(cache, monkeypatch):
    threads = treadle.get_num_threads()
    assert roofline() == Roofline(threads, 10e9, 100e9)
    monkeypatch.setattr(_roofline, "_measured", lambda: [20e9, 200e9])
    assert roofline() == Roofline(threads, 10e9, 100e9)
    assert roofline(measure=True) == Roofline(threads, 20e9, 200e9)
    assert roofline() == Roofline(threads, 20e9, 200e9)
    (kept,) = json.loads((cache / "treadle" / "roofline.json").read_text()).values()
    assert kept == [20e9, 200e9]
    assert [file.name for file in (cache / "treadle").iterdir()] == ["roofline.json"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', "\0"])
def test_damaged_file_is_written_again(cache, text):
    (cache / "treadle").mkdir()
    file = cache / "treadle" / "roofline.json"
    file.write_text(text)
    assert roofline()[1:] == (10e9, 100e9)
    assert [10e9, 100e9] in json.loads(file.read_text()).values()


@pytest.mark.parametrize("rates", [None, [], [1.0], [0.0, 1.0], ["a", "b"], "ab"])
def test_damaged_entry_is_measured_again(cache, rates):
    roofline()
    file = cache / "treadle" / "roofline.json"
    file.write_text(json.dumps(dict.fromkeys(json.loads(file.read_text()), rates)))
    assert roofline()[1:] == (10e9, 100e9)


def test_cache_that_cannot_be_written(cache):
    (cache / "treadle").write_text("a file where the folder would be")
    assert roofline()[1:] == (10e9, 100e9)
    assert stat.S_ISREG((cache / "treadle").stat().st_mode)


def test_measuring(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(_roofline, "_ELEMENTS", 1 << 16)
    monkeypatch.setattr(_roofline, "_SIDE", 64)
    memory, arithmetic = _roofline._measured()
    assert 1e7 < memory < 1e13 and 1e7 < arithmetic < 1e13


# ---- the text ------------------------------------------------------------------------------------


def made(number, name, start, end, parent=None, **facts):
    event = FunctionEvent(number, name, 1, start, end, **facts)
    if parent is not None:
        event.set_cpu_parent(parent)
        parent.append_cpu_child(event)
    return event


def test_text_of_a_report(monkeypatch):
    monkeypatch.setattr(_profiler_report.os, "sched_getaffinity", lambda pid: {0})
    square = {
        "input_shapes": [[1000, 1000], [1000, 1000]],
        "input_types": ["float32", "float32"],
        "concrete_inputs": ["", ""],
    }
    block = made(1, "forward", 0, 60000, is_user_annotation=True)
    outer = made(2, "aten::linear", 0, 25000, block, allocations=1)
    events = [
        block,
        outer,
        made(3, "aten::mm", 0, 25000, outer, allocations=1, bytes_moved=12 * 10**6, **square),
        made(4, "aten::add", 25000, 35000, block, allocations=1, bytes_moved=80 * 10**6),
        made(5, "aten::gather", 35000, 45000, block, bytes_moved=10**6),
        *(made(6 + i, "aten::neg", 45000 + i, 45001 + i, block) for i in range(9000)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_roofline, "roofline", lambda: Roofline(1, 10e9, 100e9))
        text = _profiler_report.report(events, 80000.0, 4)
    assert text == (
        "Recorded: 80.000ms; in operators: 54.000ms (68 %), outside them: 26.000ms (32 %).\n"
        "Peak of this machine, threads: 1: 10 GB/s of memory, 100 GFLOP/s of float32.\n"
        "Allocations in operators: 2.\n"
        "\n"
        "Operator      Calls  Self time  Share  GB/s  of peak  GFLOP/s  of peak  Allocations\n"
        "aten::mm          1   25.000ms   31 %  0.48      5 %       80     80 %            1\n"
        "aten::add         1   10.000ms   12 %     8     80 %                              1\n"
        "aten::gather      1   10.000ms   12 %   0.1      1 %                              0\n"
        "aten::neg      9000    9.000ms   11 %                                             0\n"
        "... and 1 more\n"
        "\n"
        "What would make it faster:\n"
        "* 32 % of the time is outside operators: in Python, in loading data, in waiting. Recording"
        " with_stack=True shows the lines of the program.\n"
        "* aten::mm (31 %): near the peak of arithmetic: only less work takes less time.\n"
        "* aten::add (12 %): limited by memory: in-place forms, out=, smaller elements or one "
        "operator in place of several move fewer bytes.\n"
        "* aten::gather (12 %): far from both peaks: contiguous arguments, more elements in a call "
        "or another operator for the same result may be faster.\n"
        "* aten::neg (11 %): many calls of a few microseconds: fewer calls on more elements cost "
        "less.\n"
    )


def test_report_says_when_the_peak_is_too_low(monkeypatch):
    square = {
        "input_shapes": [[1000, 1000], [1000, 1000]],
        "input_types": ["float32", "float32"],
        "concrete_inputs": ["", ""],
    }
    monkeypatch.setattr(_roofline, "roofline", lambda: Roofline(1, 10e9, 60e9))
    text = _profiler_report.report([made(1, "aten::mm", 0, 25000, **square)], 25000.0, 4)
    assert (
        "* An operator was faster than this machine's peak: other programs ran when that was "
        "measured. treadle.profiler.roofline(measure=True) measures it again.\n" in text
    )


def test_report_names_cores_that_are_idle(monkeypatch):
    monkeypatch.setattr(_profiler_report.os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(_roofline, "roofline", lambda: Roofline(1, 10e9, 100e9))
    events = [made(1, "aten::gather", 0, 600), made(2, "aten::take", 600, 1000)]
    text = _profiler_report.report(events, 1000.0, 10)
    assert text.splitlines()[-1] == (
        "* aten::gather (60 %), aten::take (40 %): below the peak with 1 of 4 cores: "
        "treadle.set_num_threads(4) uses all."
    )


def test_report_of_training():
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
    )
    x, y = treadle.randn(3, 1, 4, 4), treadle.tensor([0, 1, 0])
    with profile(record_shapes=True) as prof:
        nn.functional.cross_entropy(net(x), y).backward()
    lines = prof.report(-1).splitlines()
    (head,) = [line for line in lines if line.startswith("Operator")]
    for name in ("aten::convolution", "aten::mm", "aten::_convolution_grad_weight"):
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert line[head.index("GFLOP/s") - 4 : head.index("GFLOP/s") + 7].strip(), line
    # Neither the nodes of a backward pass nor blocks of the program are operators.
    assert not any("Backward0" in line for line in lines)


def test_report_of_nothing():
    with profile(record_shapes=True) as prof:
        pass
    assert "in operators: 0.000us (0 %)" in prof.report()


def test_report_needs_shapes():
    with profile() as prof:
        treadle.ones(2)
    with pytest.raises(RuntimeError) as caught:
        prof.report()
    assert str(caught.value) == (
        "report: expected a recording with record_shapes=True, got one without: rates need the "
        "shapes of arguments"
    )
