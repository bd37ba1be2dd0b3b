"""The profiler: what is recorded (nesting, threads, backward, shapes, memory, stacks), schedules,
and what is made of it (tables, traces, stacks)."""

# SPDX-License-Identifier: Apache-2.0

import gzip
import json
import os
import subprocess
import sys
import threading
import time
import warnings

import pytest

import treadle
from treadle import nn
from treadle.autograd import profiler as autograd_profiler
from treadle.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def recorded(function, **kwargs):
    """The events of a call."""
    with profile(**kwargs) as prof:
        function()
    return prof.events()


def names(events):
    return [event.name for event in events]


# ---- what is recorded ----------------------------------------------------------------------------


def test_operators_with_what_they_call():
    x, w = treadle.ones(2, 4), treadle.ones(3, 4)
    events = recorded(lambda: nn.functional.linear(x, w) + 1)
    assert names(events)[0] == "aten::linear" and "aten::mm" in names(events)
    linear, add = events[0], events[-1]
    assert names(linear.cpu_children)[0] == "aten::t" and add.cpu_children == []
    assert linear.cpu_children[0].cpu_parent is linear and linear.cpu_parent is None
    assert [event.id for event in events] == list(range(1, len(events) + 1))


def test_times_add_up():
    x = treadle.ones(50, 50)

    def work():
        with record_function("work"):
            for _ in range(5):
                x @ x
                time.sleep(0.002)

    events = recorded(work)
    (whole,) = [event for event in events if event.name == "work"]
    parts = whole.cpu_children
    assert names(parts) == ["aten::matmul"] * 5 and whole.is_user_annotation
    assert whole.cpu_time_total > 5 * 2000
    inside = sum(part.cpu_time_total for part in parts)
    assert whole.self_cpu_time_total == pytest.approx(whole.cpu_time_total - inside)
    for event in events:
        assert event.time_range.end >= event.time_range.start >= 0
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start
            assert child.time_range.end <= event.time_range.end
    assert events.self_cpu_time_total == pytest.approx(whole.cpu_time_total)


def test_nothing_is_recorded_outside():
    x = treadle.ones(2)
    with profile() as prof:
        x + x
    x * x
    with record_function("outside"):
        x - x
    assert names(prof.events()) == ["aten::add"]


def test_results_are_the_same():
    treadle.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2)
    )
    x = treadle.randn(3, 1, 4, 4)

    def gradients():
        net.zero_grad()
        loss = nn.functional.cross_entropy(net(x), treadle.tensor([0, 1, 0]))
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in net.parameters())]

    net.train()
    without = gradients()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
    with profile(record_shapes=True, with_stack=True, profile_memory=True):
        within = gradients()
    assert all(treadle.equal(a, b) for a, b in zip(without, within))


def test_backward():
    w = treadle.ones(3, requires_grad=True)
    loss = (w * 2).sum()
    events = recorded(loss.backward)
    outer = [e.name for e in events if e.cpu_parent is None]
    assert "autograd::engine::evaluate_function: MulBackward0" in outer
    assert "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad" in outer
    (node,) = [event for event in events if event.name == "MulBackward0"]
    assert node.cpu_parent.name == "autograd::engine::evaluate_function: MulBackward0"
    assert "aten::mul" in names(node.cpu_children)
    assert node.scope == 1 and not node.is_user_annotation


def test_functions_of_the_program():
    class Double(treadle.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = treadle.ones(2, requires_grad=True)
    events = recorded(lambda: Double.apply(x).sum().backward())
    assert names(events)[0] == "aten::mul"
    assert "DoubleBackward" in names(events)


def test_shapes_types_and_numbers():
    x, y = treadle.ones(2, 3), treadle.ones(3)
    events = recorded(lambda: treadle.cat([x, x]) + y, record_shapes=True)
    cat, add = events[0], events[-1]
    assert cat.input_shapes == [[[2, 3], [2, 3]], []] and cat.concrete_inputs == ["", "0"]
    assert add.input_shapes == [[4, 3], [3], []]
    assert add.input_types == ["float32", "float32", "Scalar"]
    assert recorded(lambda: x + y)[0].input_shapes == []


def test_memory():
    x = treadle.ones(100)
    kept = []

    def work():
        with record_function("made"):
            kept.append(x + 1)
        with record_function("dropped"):
            x * 2

    events = {event.name: event for event in recorded(work, profile_memory=True)}
    assert events["aten::add"].cpu_memory_usage == 400
    assert events["made"].cpu_memory_usage == 400 and events["made"].self_cpu_memory_usage == 0
    assert events["aten::mul"].cpu_memory_usage == 400
    assert events["dropped"].cpu_memory_usage == 0
    assert events["dropped"].self_cpu_memory_usage == -400


def test_stacks():
    x = treadle.ones(2)

    def inner():
        return x + x  # the line that the stack begins with

    def outer():
        with record_function("part"):
            inner()

    events = recorded(outer, with_stack=True)
    add = next(event for event in events if event.name == "aten::add")
    line = inner.__code__.co_firstlineno + 1
    assert add.stack[0] == f"{__file__}({line}): inner"
    assert add.stack[1].endswith("): outer")
    part = next(event for event in events if event.name == "part")
    assert part.stack[0].endswith("): outer")
    assert recorded(outer)[0].stack == []


def test_flops():
    a, b, c = treadle.ones(2, 4), treadle.ones(4, 3), treadle.ones(3)
    events = recorded(lambda: (treadle.mm(a, b), treadle.addmm(c, a, b), c * c), with_flops=True)
    assert {e.name: e.flops for e in events if e.flops} == {
        "aten::mm": 48, "aten::addmm": 48, "aten::mul": 3
    }  # fmt: skip
    image, weight = treadle.ones(2, 3, 8, 8), treadle.ones(4, 3, 3, 3)
    events = recorded(
        lambda: nn.functional.conv2d(image, weight, padding=1, stride=2), with_flops=True
    )
    assert events[0].name == "aten::conv2d"
    assert events[0].flops == 2 * 2 * 4 * 4 * 4 * 3 * 3 * 3


def test_errors_end_their_events():
    x = treadle.ones(2, 3)

    def work():
        with pytest.raises(RuntimeError), record_function("fails"):
            x @ x
        x + x

    events = recorded(work)
    assert names(events)[0] == "fails" and names(events)[-1] == "aten::add"
    assert events[-1].cpu_parent is None


def test_threads_that_begin_meanwhile():
    x = treadle.ones(2, requires_grad=True)

    def work():
        with record_function("in a thread"):
            (x * 3).sum().backward()

    def run():
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        x + x

    events = recorded(run)
    by_thread = {}
    for event in events:
        by_thread.setdefault(event.thread, []).append(event)
    assert len(by_thread) == 4
    mine = [e for e in by_thread.values() if names(e) == ["aten::add"]]
    others = [e for e in by_thread.values() if names(e)[0] == "in a thread"]
    assert len(mine) == 1 and len(others) == 3
    for events in others:
        assert "MulBackward0" in names(events)
        assert all(e.cpu_parent is not None for e in events[1:])


def test_a_thread_that_outlives_the_recording():
    x, go, done = treadle.ones(2), threading.Event(), threading.Event()

    def work():
        for _ in range(50):
            x + x
        done.set()
        go.wait(5)
        x * x

    thread = threading.Thread(target=work)
    with profile() as prof:
        thread.start()
        done.wait(5)
    go.set()
    thread.join()
    assert names(prof.events()) == ["aten::add"] * 50
    assert names(recorded(lambda: x - x)) == ["aten::sub"]


def test_children_of_the_process_are_not_recorded():
    code = """
import os, treadle
x = treadle.ones(2)
with treadle.profiler.profile() as prof:
    x + x
    child = os.fork()
    if child == 0:
        x * x
        os._exit(1 if treadle._C._profiler_running() else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    x - x
assert [e.name for e in prof.events()] == ["aten::add", "aten::sub"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_record_function_as_a_decorator():
    @record_function("named")
    def work(x, *, y):
        """Text."""
        return x + y

    x = treadle.ones(1)
    with profile() as prof:
        work(x, y=1)
    assert names(prof.events()) == ["named", "aten::add"] and work.__doc__ == "Text."


def test_optimisers_and_loaders_have_their_names():
    data = treadle.utils.data.TensorDataset(treadle.ones(4, 2))
    net = nn.Linear(2, 1)
    optimizer = treadle.optim.SGD(net.parameters(), lr=0.1)

    def train():
        for (x,) in treadle.utils.data.DataLoader(data, batch_size=2):
            net(x).sum().backward()
            optimizer.step()

    ranges = [event.name for event in recorded(train) if event.is_user_annotation]
    batch = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert ranges == [batch, "Optimizer.step#SGD.step"] * 2 + [batch]


# ---- schedules -----------------------------------------------------------------------------------


def test_schedule():
    N, W, R, S = (ProfilerAction[n] for n in ("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"))
    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    assert [plan(step) for step in range(11)] == [N, N, W, R, S, N, W, R, S, N, N]
    plan = schedule(wait=2, warmup=1, active=1, skip_first_wait=1)
    assert [plan(step) for step in range(6)] == [W, S, N, N, W, S]
    with pytest.warns(UserWarning, match="warmup"):
        plan = schedule(wait=0, warmup=0, active=1)
    assert plan(7) is S
    for bad in ({"wait": -1}, {"active": 0}, {"warmup": -1}):
        with pytest.raises(AssertionError, match="Invalid profiler schedule"):
            schedule(**{"wait": 1, "warmup": 1, "active": 1, **bad})


def test_steps(tmp_path):
    x, seen = treadle.ones(2), []

    def ready(prof):
        seen.append((prof.step_num, names(prof.events())))

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(9):
            x + x
            prof.step()
    steps = [["ProfilerStep#2", "aten::add", "ProfilerStep#3", "aten::add"],
             ["ProfilerStep#6", "aten::add", "ProfilerStep#7", "aten::add"]]  # fmt: skip
    assert seen == [(4, steps[0]), (8, steps[1])]
    (average,) = [a for a in prof.key_averages() if a.key.startswith("Profiler")]
    assert average.key == "ProfilerStep*" and average.count == 2


def test_a_recording_that_is_cut_short():
    seen = []
    with profile(schedule=schedule(wait=0, warmup=1, active=5), on_trace_ready=seen.append) as prof:
        prof.step()
        treadle.ones(1) + 1
    assert seen == [prof] and "aten::add" in names(prof.events())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        actions = [ProfilerAction.RECORD, ProfilerAction.NONE]
        with profile(schedule=lambda step: actions[min(step, 1)]) as prof:
            prof.step()
    assert "RECORD followed by NONE" in str(told[0].message)


def test_recordings_added_up():
    plan = schedule(wait=0, warmup=1, active=1)
    with profile(schedule=plan, acc_events=True) as prof:
        for _ in range(4):
            treadle.ones(1) + 1
            prof.step()
    assert names(prof.events()).count("aten::add") == 2


def test_trace_handler(tmp_path):
    folder = tmp_path / "log"
    with profile(on_trace_ready=tensorboard_trace_handler(str(folder), "me")):
        treadle.ones(1) + 1
    with profile(on_trace_ready=tensorboard_trace_handler(str(folder), use_gzip=True)):
        treadle.ones(1) + 1
    files = sorted(os.listdir(folder))
    assert len(files) == 2 and sum(name.endswith(".pt.trace.json.gz") for name in files) == 1
    assert any(name.startswith("me.") and name.endswith(".pt.trace.json") for name in files)
    for name in files:
        opened = gzip.open if name.endswith(".gz") else open
        with opened(folder / name, "rt") as file:
            assert json.load(file)["traceEvents"]


def test_one_at_a_time():
    with profile():
        with pytest.raises(RuntimeError, match="got a recording that runs"):
            with profile():
                pass
    prof = profile()
    with pytest.raises(AssertionError, match="initialized"):
        prof.events()
    assert supported_activities() == {ProfilerActivity.CPU}
    assert not treadle.profiler.kineto_available()


# ---- what is made of it --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def training():
    """Two steps, recorded with everything."""
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True) as prof:
        for _ in range(2):
            with record_function("forward"):
                loss = net(treadle.ones(2, 4)).sum()
            loss.backward()
    prof.add_metadata("who", 'a "name"')
    prof.add_metadata_json("numbers", "[1, 2]")
    return prof


def test_averages(training):
    averages = {a.key: a for a in training.key_averages()}
    assert averages["forward"].count == 2 and averages["aten::linear"].count == 4
    events = [event for event in training.events() if event.name == "aten::linear"]
    linear = averages["aten::linear"]
    assert linear.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in events))
    assert linear.cpu_time == pytest.approx(linear.cpu_time_total / 4)
    assert linear.cpu_time_str.endswith(("us", "ms")) and linear.cuda_time_total == 0
    shapes = [
        a.input_shapes
        for a in training.key_averages(group_by_input_shape=True)
        if a.key == "aten::linear"
    ]
    assert sorted(shapes) == [[[2, 3], [1, 3], [1]], [[2, 4], [3, 4], [3]]]
    total = training.key_averages().total_average()
    assert total.key == "Total" and total.count == len(training.events())
    assert total.self_cpu_time_total == pytest.approx(training.events().self_cpu_time_total)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        linear.nothing


def test_table(training):
    table = training.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    lines = table.splitlines()
    head = lines[1].split("  ")
    assert [name.strip() for name in head if name.strip()][:9] == [
        "Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "CPU Mem",
        "Self CPU Mem", "# of Calls",
    ]  # fmt: skip
    assert "Total FLOPs" in training.key_averages().table()
    assert lines[0] == lines[2] == lines[6] and set(lines[0]) == {"-", " "}
    assert all(len(line) == len(lines[0]) for line in lines[:6])
    assert lines[-1].startswith("Self CPU time total: ")
    averages = sorted(training.key_averages(), key=lambda a: -a.self_cpu_time_total)
    assert [line.split("  ")[0] for line in map(str.strip, lines[3:6])] == [
        a.key if len(a.key) < 52 else a.key[:52] + "..." for a in averages[:3]
    ]


def test_table_with_shapes_and_stacks(training):
    table = training.key_averages(group_by_input_shape=True).table(row_limit=-1)
    assert "Input Shapes" in table and "[[2, 4], [3, 4], [3]]" in table
    table = training.key_averages(group_by_stack_n=2).table(sort_by="count", time_unit="ms")
    assert "Source Location" in table and "test_profiler.py(" in table
    table = training.key_averages().table(
        header="Head", top_level_events_only=True, max_name_column_width=12
    )
    assert "Head" in table and "only display top-level" in table and "autograd:..." in table
    assert str(training.events()) == training.events().table()


def test_chrome_trace(training, tmp_path):
    path = tmp_path / "trace.json"
    training.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    assert trace["record_shapes"] == 1 and trace["who"] == 'a "name"' and trace["numbers"] == [1, 2]
    events = [entry for entry in trace["traceEvents"] if entry["ph"] == "X"]
    assert len(events) == len(training.events())
    for entry, event in zip(events, training.events()):
        assert entry["name"] == event.name and entry["dur"] == pytest.approx(event.cpu_time_total)
        assert entry["pid"] == os.getpid() and entry["tid"] == event.thread
    linear = next(entry for entry in events if entry["name"] == "aten::linear")
    assert linear["cat"] == "cpu_op" and linear["args"]["Input Dims"] == [[2, 4], [3, 4], [3]]
    assert next(e for e in events if e["name"] == "forward")["cat"] == "user_annotation"
    assert {"process_name", "thread_name"} == {
        entry["name"] for entry in trace["traceEvents"] if entry["ph"] == "M"
    }


def test_exported_stacks(training, tmp_path):
    path = tmp_path / "stacks.txt"
    training.export_stacks(str(path), "self_cpu_time_total")
    lines = path.read_text().splitlines()
    assert lines
    for line in lines:
        stack, value = line.rsplit(" ", 1)
        assert int(value) > 0 and " " not in stack and "test_profiler.py(" in stack
    with pytest.raises(ValueError, match="metric should be one of"):
        training.export_stacks(str(path), "count")
    with profile() as prof:
        treadle.ones(1) + 1
    with pytest.raises(AssertionError, match="with_stack=True"):
        prof.export_stacks(str(path))


# ---- treadle.autograd.profiler -------------------------------------------------------------------


def test_the_older_profiler():
    x = treadle.ones(2)
    with autograd_profiler.profile(record_shapes=True, use_cuda=False) as prof:
        x + x
    assert names(prof.function_events) == ["aten::add"]
    assert "aten::add" in str(prof) and "aten::add" in prof.table(sort_by="cpu_time_total")
    assert prof.total_average().count == 1 and prof.self_cpu_time_total > 0
    with autograd_profiler.profile(enabled=False) as nothing:
        x + x
    assert nothing is None
    prof = autograd_profiler.profile()
    assert str(prof) == "<unfinished torch.autograd.profile>"
    with pytest.raises(RuntimeError, match="didn't finish"):
        prof.function_events


@pytest.mark.parametrize("name, tool", [("emit_nvtx", "NVTX"), ("emit_itt", "ITT")])
def test_tools_that_are_not_there(name, tool):
    mark = getattr(autograd_profiler, name)
    with mark(enabled=False):
        pass
    with pytest.raises(RuntimeError, match=f"a build with {tool}"):
        with mark():
            pass


# ---- ranges as operators -------------------------------------------------------------------------
def test_operators_begin_and_end_a_range():
    def program():
        handle = treadle.ops.profiler._record_function_enter("foo")
        treadle.ones(2).add(1)
        assert treadle.ops.profiler._record_function_exit(handle) is None
        treadle.ones(2).mul(2)

    events = recorded(program)
    (foo,) = [event for event in events if event.name == "foo"]
    inside = [event.name for event in events if event.cpu_parent is foo]
    assert "aten::add" in inside
    assert "aten::mul" not in inside


def test_the_operator_that_ends_a_range_wants_its_handle():
    with pytest.raises(RuntimeError) as error:
        treadle.ops.profiler._record_function_exit(treadle.ones(2))
    assert str(error.value) == (
        "_record_function_exit: expected what _record_function_enter() returned, got a tensor of "
        "the shape (2,) and treadle.float32"
    )


def test_ranges_stay_in_a_graph_that_loses_its_dead_code():
    from treadle import fx

    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    handle = graph.call_function(treadle.ops.profiler._record_function_enter, ("foo",))
    y = x.relu()
    graph.call_function(treadle.ops.profiler._record_function_exit, (handle,))
    graph.output(y.node)
    graph.eliminate_dead_code()
    module = fx.GraphModule(nn.Module(), graph)
    events = recorded(lambda: module(treadle.ones(2)))
    (foo,) = [event for event in events if event.name == "foo"]
    assert [event.name for event in events if event.cpu_parent is foo] == ["aten::relu"]
