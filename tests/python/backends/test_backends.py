"""Devices from outside as programs use them: several at once, each with its module, its streams,
its memory and its random numbers; saved here and loaded there; who answers what; and what is found
at `import treadle`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import plugins
import treadle
from doc_examples import run_examples
from plugins import alone
from source_tree import PYTHON

HERE = Path(__file__).parent
CLOSED = "expected all tensors on one device, got"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Backends by name: minimal; `other`, the same under that name, whose storages are no
    addresses; `streams`, which has everything that a backend may have and no kernels."""
    folder = tmp_path_factory.mktemp("backends")
    with ThreadPoolExecutor() as pool:
        made = {
            "minimal": pool.submit(plugins.build_minimal, folder / "minimal.so"),
            "other": pool.submit(
                plugins.build_minimal, folder / "other.so", name="other", handles=True
            ),
            "streams": pool.submit(
                plugins.build_file, folder / "streams.so", HERE / "backend_streams.c"
            ),
        }
    return {name: library.result() for name, library in made.items()}


@pytest.fixture
def minimal(built: dict[str, str]) -> str:
    return built["minimal"]


@pytest.fixture
def other(built: dict[str, str]) -> str:
    return built["other"]


@pytest.fixture
def streams(built: dict[str, str]) -> str:
    return built["streams"]


def refusal(call: object, error: type = RuntimeError) -> str:
    with pytest.raises(error) as caught:
        call()  # type: ignore[operator]
    return str(caught.value)


# ---- several at once -----------------------------------------------------------------------------


def load_opencl() -> list[str]:
    """Loads the OpenCL backend where the environment says that it was built, as
    test_examples_alone.py does; else nothing."""
    library = os.environ.get("TREADLE_OPENCL_BACKEND")
    return [*treadle.load_backend(library)] if library else []


@alone
def test_three_backends_at_once(minimal: str, other: str) -> None:
    names = [*treadle.load_backend(minimal), *treadle.load_backend(other)]
    assert treadle.load_backend(minimal) == ("minimal",)
    names += load_opencl()
    assert treadle._C._backends() == names
    assert [loaded.devices for loaded in treadle.backends.loaded()] == [(n,) for n in names]
    x = treadle.arange(6.0).reshape(2, 3)
    on = {name: x.to(name) for name in names}
    for name, y in on.items():
        assert (y.device, y.is_cpu) == (treadle.device(name, 0), False)
        assert getattr(y, f"is_{name}") and getattr(x, name)().device == y.device
        assert treadle.equal((y * 2 + treadle.tensor(1.0)).cpu(), x * 2 + 1)
        assert refusal(lambda: y + x) == f"add: {CLOSED} {name}:0 and cpu"
        # To every other device, of memory of any layout.
        for there in names:
            assert treadle.equal(y.t().to(there).cpu(), x.t())
    assert refusal(lambda: on["minimal"] @ on["other"].t()) == (
        f"mm: {CLOSED} self on minimal:0 and mat2 on other:0"
    )
    assert refusal(lambda: treadle.cat([on["other"], x])) == (
        f"cat: {CLOSED} tensors on other:0 and tensors on cpu"
    )
    assert treadle.accelerator.current_accelerator() is None
    assert "name one that has a backend" in refusal(treadle.Stream)


def _network() -> treadle.nn.Module:
    treadle.manual_seed(0)
    nn = treadle.nn
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))


def _losses(device: str, steps: int = 8) -> tuple[list[float], treadle.nn.Module]:
    net = _network().to(device)
    x = treadle.linspace(-1, 1, 24).reshape(6, 4).to(device)
    target = treadle.tensor([0, 1, 2, 0, 1, 2], device=device)
    optimizer = treadle.optim.AdamW(net.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = treadle.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, net


@alone
def test_switches_are_found_beside_a_backend(minimal: str) -> None:
    treadle.load_backend(minimal)
    with treadle.backends.cudnn.flags(enabled=False, benchmark_limit=3):
        assert not treadle.backends.cudnn.enabled and treadle.backends.cudnn.benchmark_limit == 3
    assert treadle.backends.cudnn.enabled and treadle.backends.mkldnn.is_available()
    with pytest.raises(AttributeError):
        treadle.backends.nothing


@alone
def test_training_on_two_in_one_process(minimal: str, other: str) -> None:
    treadle.load_backend(minimal), treadle.load_backend(other)
    wanted, _ = _losses("cpu")
    assert wanted[-1] < wanted[0] / 1.3
    nets = {}
    for device in ("minimal:1", "other", *load_opencl()):
        losses, nets[device] = _losses(device)
        assert losses == pytest.approx(wanted, rel=1e-4)
        assert {str(p.device) for p in nets[device].parameters()} == {
            str(treadle.zeros(0, device=device).device)
        }
    # Mixed precision, with a scaler: the same network, the losses near.
    net = _network().to("minimal")
    scaler = treadle.amp.GradScaler("minimal", init_scale=8.0)
    optimizer = treadle.optim.SGD(net.parameters(), lr=0.1)
    x = treadle.linspace(-1, 1, 24).reshape(6, 4).minimal()
    with treadle.autocast("minimal"):
        out = net(x)
        # Autocast is for the device that it names.
        assert (treadle.ones(2, 2) @ treadle.ones(2, 2)).dtype == treadle.float32
    assert out.dtype == treadle.bfloat16
    scaler.scale(out.float().sum()).backward()
    before = net[0].weight.detach().clone()
    scaler.step(optimizer), scaler.update()
    assert not treadle.equal(before, net[0].weight)
    copied = copy.deepcopy(net)
    assert treadle.equal(copied[0].weight, net[0].weight) and copied[0].weight.is_minimal


@alone
def test_sixteen_backends(tmp_path: str) -> None:
    names = [f"kind{i}" for i in range(16)]
    register = "".join(
        f'{{ treadle_backend b = backend_named("{name}"); treadle_device_type type; '
        "treadle_status s = api->register_backend(&b, &type); if (s) return s; }\n"
        for name in names
    )
    source = plugins.c_plugin("many", register + "return TREADLE_OK;", before=plugins.C_BACKEND)
    path = plugins.build(Path(tmp_path), "many", source)
    assert treadle.load_backend(path) == tuple(names)
    tensors = [treadle.full((2,), float(i)).to(name) for i, name in enumerate(names)]
    # From each to the next, and on.
    moved = [t.to(names[(i + 1) % 16]) + 1 for i, t in enumerate(tensors)]
    assert [t.tolist() for t in moved] == [[i + 1.0] * 2 for i in range(16)]
    assert [t.device.type for t in moved] == [*names[1:], names[0]]
    assert treadle.kind7.is_available() and treadle.kind7.device_count() == 1


@alone
def test_calls_that_do_not_fit_come_to_an_end(other: str) -> None:
    """The operators' own tests ask a backend's reduction for no more than it gets through."""
    import faulthandler

    from treadle_testing import device, hostile
    from treadle_testing.catalogue import by_id

    faulthandler.dump_traceback_later(120, exit=True)
    treadle.load_backend(other)
    device.use("other")
    for name in ("sum", "amax", "mm", "add.Tensor"):
        problems = {c.label: hostile.problem_of(c) for c in hostile.calls_of(by_id()[name])}
        assert len(problems) > 20 and not {k: v for k, v in problems.items() if v}
    device.use("cpu")
    faulthandler.cancel_dump_traceback_later()


# ---- tensors -------------------------------------------------------------------------------------


@alone
def test_tensors_on_a_device(minimal: str) -> None:
    treadle.load_backend(minimal)
    x = treadle.arange(6.0, device="minimal").reshape(2, 3)
    assert repr(x) == ("tensor([[0., 1., 2.],\n        [3., 4., 5.]], device='minimal:0')")
    assert repr(treadle.empty(0, 2, device="minimal:1")) == (
        "tensor([], device='minimal:1', size=(0, 2))"
    )
    assert (x.tolist(), x[1, 2].item(), float(x.sum()), f"{x.sum():.1f}") == (
        [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 5.0, 15.0, "15.0",
    )  # fmt: skip
    assert x.type() == "treadle.minimal.FloatTensor" and isinstance(x, treadle.minimal.FloatTensor)
    for said in (lambda: x.numpy(), lambda: np.asarray(x)):
        assert refusal(said, TypeError) == (
            "numpy: expected a tensor on the cpu, got one on minimal:0; use tensor.cpu() first"
        )
    assert refusal(x.__dlpack__, BufferError) == (
        "__dlpack__: expected a tensor on the cpu, got one on minimal:0"
    )
    assert refusal(x.pin_memory) == "pin_memory: expected a tensor on the cpu, got one on minimal:0"
    assert refusal(x.share_memory_) == (
        "share_memory_: expected a tensor on the cpu, got one on minimal:0, whose memory other "
        "processes cannot share; use tensor.cpu() first"
    )
    # Indices and values may come from the CPU, wherever the tensor is.
    y = x.clone()
    assert x[:, 1:].tolist() == [[1, 2], [4, 5]] and x[x > 3].tolist() == [4, 5]
    assert x[[1, 0], [0, 2]].tolist() == [3, 2]
    assert x[treadle.tensor([True, False])].tolist() == [[0, 1, 2]]
    y[0] = 7
    y[1, treadle.tensor([0, 2])] = treadle.tensor(-1.0)
    y[y > 6] += 1
    assert y.tolist() == [[8, 8, 8], [-1, 4, -1]]
    for same in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert same.device == x.device and treadle.equal(same, x)
        assert same.data_ptr() != x.data_ptr()
    assert refusal(lambda: treadle.zeros(1, device="minimal:2")) == (
        "zeros: expected a device of minimal that exists, of 2 devices, got minimal:2"
    )
    assert refusal(lambda: treadle.ones(1).minimal("cpu")) == (
        "minimal: expected a device of minimal, got cpu"
    )


@alone
def test_where_new_tensors_are_made(minimal: str) -> None:
    treadle.load_backend(minimal)
    first, second = treadle.device("minimal:0"), treadle.device("minimal", 1)
    assert treadle.tensor([1, 2], device="minimal").device == first
    assert treadle.as_tensor([1.0], device=1).device == second, "a number is the only backend's"
    with treadle.device("minimal"):
        assert treadle.rand(2).device == first and treadle.ones(2, device="cpu").is_cpu
        assert treadle.nn.Linear(2, 2).weight.device == first
    with treadle.minimal.device(1):
        assert treadle.zeros(1, device="minimal").device == second
        assert treadle.minimal.current_device() == 1
    with treadle.minimal.device_of(treadle.zeros(1, device="minimal:1")):
        assert treadle.accelerator.current_device_index() == 1
    with treadle.accelerator.device_index(1):
        assert treadle.minimal.current_device() == 1
    assert treadle.minimal.current_device() == 0
    treadle.set_default_device("minimal:1")
    assert treadle.randn(1).device == treadle.tensor(1.0).device == second
    treadle.set_default_device(None)
    treadle.minimal.set_device("minimal:1")
    assert treadle.nn.Linear(1, 1).minimal().weight.device == second
    assert refusal(lambda: treadle.minimal.set_device("cpu"), ValueError) == (
        "expected a device of minimal, got cpu"
    )


# ---- saving --------------------------------------------------------------------------------------


@alone
def test_saved_on_one_and_loaded_on_another(minimal: str, streams: str, tmp_path: str) -> None:
    treadle.load_backend(minimal), treadle.load_backend(streams)
    also = [(f"{name}:0", f"{name}:0") for name in load_opencl()]
    x = treadle.arange(4.0, device="minimal:1")
    path = Path(tmp_path) / "x.pt"
    for form in (True, False):
        treadle.save({"x": x, "tail": x[2:]}, path, _use_new_zipfile_serialization=form)
        for where, device in [
            (None, "minimal:1"),
            ("cpu", "cpu"),
            ("streams", "streams:0"),
            ({"minimal:1": "streams:1"}, "streams:1"),
            (lambda storage, place: storage.to("minimal:0"), "minimal:0"),
            *also,
        ]:
            loaded = treadle.load(path, map_location=where)
            assert str(loaded["x"].device) == device and loaded["tail"].tolist() == [2, 3]
            assert loaded["x"].untyped_storage() == loaded["tail"].untyped_storage()
    # By its storage tag, which is what another program knows the device by.
    treadle.save(x.to("streams:1"), path)
    assert b"tag_of_streams:1" in path.read_bytes()
    assert str(treadle.load(path).device) == "streams:1"
    plugins.run_program(
        """
        import sys, treadle
        try:
            treadle.load(sys.argv[1])
        except RuntimeError as error:
            assert str(error) == (
                "load: expected the device 'tag_of_streams:1' of the checkpoint, which is not "
                "there; give map_location='cpu' to load its tensors on the CPU"
            ), error
        else:
            raise AssertionError("expected an error")
        assert treadle.load(sys.argv[1], map_location="cpu").tolist() == [0, 1, 2, 3]
        """,
        str(path),
    )


@alone
def test_queues_refuse_memory_of_a_device_where_it_is_put(minimal: str) -> None:
    """A thread of the queue would find out too late, and its reader would wait for ever."""
    treadle.load_backend(minimal)
    x = treadle.ones(2, device="minimal")
    for kind in ("Queue", "JoinableQueue", "SimpleQueue"):
        queue = getattr(treadle.multiprocessing, kind)()
        for item in (x, [{"x": x}]):
            assert refusal(lambda: queue.put(item)) == (
                "expected a tensor on the cpu to send to another process, got one on minimal:0, "
                "whose memory other processes cannot share; send tensor.cpu() instead"
            )
        queue.put(x.cpu())
        assert queue.get().tolist() == [1, 1]
        if kind != "SimpleQueue":
            queue.close()
            queue.join_thread()


# ---- the module of a device ----------------------------------------------------------------------


@alone
def test_the_module_of_a_device(streams: str) -> None:
    import treadle.nn  # so that layers are there before the device is

    treadle.load_backend(streams)
    import treadle.streams as module
    from treadle.streams import amp

    assert module is treadle.streams is treadle.get_device_module("streams:1")
    assert treadle.get_device_module() is module
    assert treadle.accelerator.current_accelerator() == treadle.device("streams")
    assert module.is_available() and module.is_initialized() and module.device_count() == 2
    assert module.get_device_name() == "streams"
    properties = module.get_device_properties(1)
    assert (properties.total_memory, properties.plugin_version) == (1000, "1.0")
    assert amp is module.amp and module.get_amp_supported_dtype() == [treadle.float16]
    assert issubclass(amp.autocast, treadle.autocast) and amp.GradScaler()._device == "streams"
    assert refusal(lambda: module.nonsense, AttributeError) == (
        "module 'treadle.streams' has no attribute 'nonsense'"
    )
    with amp.autocast():
        x = treadle.ones(2, 2).streams()
        assert (x @ x).dtype == treadle.float16
    with pytest.warns(UserWarning, match="In STREAMS autocast, but the target dtype is not"):
        treadle.autocast("streams", dtype=treadle.bfloat16)
    message = "expected a dtype that tensors on streams may have, got float64"
    double = {"dtype": treadle.float64, "device": "streams"}
    assert refusal(lambda: treadle.zeros(1, **double), TypeError) == f"zeros: {message}"
    assert message in refusal(lambda: treadle.zeros(1, device="streams").double(), TypeError)
    # The calls that programs for PyTorch make first.
    treadle.utils.rename_privateuse1_backend("streams")
    treadle.utils.generate_methods_for_privateuse1_backend()
    assert refusal(lambda: treadle.utils.rename_privateuse1_backend("npu")) == (
        "rename_privateuse1_backend: expected a device with a backend, got 'npu', for which none "
        "is loaded; see treadle.load_backend"
    )
    # Under the other name of the package.
    from treadle import run

    run.install()
    import torch
    import torch.streams

    assert torch.streams is module and torch.zeros(1, device="streams").is_streams
    run.uninstall()


@alone
def test_memory(streams: str) -> None:
    treadle.load_backend(streams)
    module = treadle.streams
    x = treadle.empty(1000, device="streams")
    assert module.memory_allocated() >= 4000 and module.memory_allocated(1) == 0
    del x
    # It is kept for the next one.
    assert module.memory_allocated() == 0 and module.memory_reserved() >= 4000
    before = module.memory_stats()
    x = treadle.empty(990, device="streams")
    after = treadle.accelerator.memory_stats()
    assert after["num_device_alloc"] == before["num_device_alloc"]
    assert after["allocation.all.allocated"] == before["allocation.all.allocated"] + 1
    assert module.max_memory_allocated() >= 4000
    del x
    module.empty_cache(), module.reset_peak_memory_stats()
    assert module.memory_reserved() == 0 == module.max_memory_allocated()
    # Memory of the CPU that the backend pins.
    pinned = treadle.arange(3.0).pin_memory()
    assert pinned.is_pinned() and pinned.pin_memory() is pinned and pinned.tolist() == [0, 1, 2]
    assert module.mem_get_info() == (999, 1000)
    del pinned
    assert module.mem_get_info() == (1000, 1000) and not treadle.ones(1).is_pinned()
    loader = treadle.utils.data.DataLoader(
        [{"x": treadle.ones(2), "n": i} for i in range(3)], batch_size=2, pin_memory=True
    )
    for batch in loader:
        assert batch["x"].is_pinned() and batch["n"].is_pinned()
        assert batch["x"].to("streams", non_blocking=True).is_streams


@alone
def test_streams_and_events(streams: str) -> None:
    treadle.load_backend(streams)
    module = treadle.streams
    default = module.current_stream()
    assert default == module.default_stream() and default.stream_id == 0
    one, elsewhere = module.Stream(), treadle.Stream("streams:1")
    assert isinstance(one, treadle.Stream) and one != default and one.query()
    with one:
        assert module.current_stream() == one and treadle.accelerator.current_stream() == one
        with module.stream(elsewhere), module.stream(None):
            assert module.current_device() == 1 and module.current_stream() == elsewhere
        assert module.current_device() == 0
    assert module.current_stream() == default
    module.set_stream(one)
    number = one.stream_id
    del one  # what is set lives on
    assert module.current_stream().stream_id == number
    module.set_stream(default)
    start, end = module.Event(enable_timing=True), treadle.Event("streams", enable_timing=True)
    assert start.query() and refusal(lambda: start.elapsed_time(end), ValueError) == (
        "Event.elapsed_time: expected two events that were recorded"
    )
    start.record(), end.record(elsewhere)
    elsewhere.wait_event(start), default.wait_stream(elsewhere), end.synchronize()
    assert start.elapsed_time(end) == 1.0
    assert refusal(lambda: end.record(default)) == (
        "Event.record: expected a stream of streams:1, got one of streams:0"
    )
    module.synchronize()


@alone
def test_random_numbers(minimal: str) -> None:
    treadle.load_backend(minimal)
    module, draw = treadle.minimal, lambda **k: treadle.rand(4, device="minimal", **k).tolist()
    treadle.manual_seed(3)
    first = draw()
    treadle.manual_seed(3)
    assert treadle.rand(4).tolist() == first, "the same stream on every device"
    module.manual_seed(3)
    assert draw() == first and module.initial_seed() == 3
    generator = treadle.Generator(device="minimal").manual_seed(3)
    assert generator.device == treadle.device("minimal:0") and draw(generator=generator) == first
    state = module.get_rng_state()
    ahead = draw()
    module.set_rng_state(state)
    with treadle.random.fork_rng():
        assert draw() == ahead
    assert draw() == ahead
    assert len(module.get_rng_state_all()) == len(module.default_generators) == 2
    assert refusal(lambda: draw(generator=treadle.Generator())) == (
        "uniform_: expected a generator on minimal:0, got one on cpu"
    )
    # Dropout runs again as it did.
    from treadle.utils.checkpoint import checkpoint

    x = treadle.ones(64, device="minimal", requires_grad=True)
    dropped = lambda t: treadle.nn.functional.dropout(t * t, 0.5)  # noqa: E731
    y = checkpoint(dropped, x, use_reentrant=False)
    y.sum().backward()
    assert treadle.equal(x.grad, 2 * y.detach())
    # The elements that attention drops follow from the device's generator, too.
    attention = treadle.nn.functional.scaled_dot_product_attention
    results = []
    for device in ("cpu", "minimal"):
        treadle.manual_seed(5)
        x = treadle.ones(1, 2, 6, 4, device=device)
        results.append(attention(x, x, x, dropout_p=0.5).cpu())
    assert treadle.allclose(*results) and (results[0] != 1).any()


# ---- who answers ---------------------------------------------------------------------------------


@alone
def test_a_table_of_coverage_stays_as_it_was(minimal: str) -> None:
    """It is of the calls before it was made; reset() empties it and counts anew."""
    treadle.load_backend(minimal)
    x = treadle.rand(3, 3, device="minimal")
    x @ x
    first = treadle.backends.coverage("minimal")
    text = str(first)
    x @ x
    assert first["native"]["mm"] == 1 and str(first) == text
    assert treadle.backends.coverage("minimal")["native"]["mm"] == 2
    treadle.backends.coverage("minimal").reset()
    assert first["native"]["mm"] == 1 and treadle.backends.coverage("minimal").total() == 0
    first.reset()
    assert first.total() == 0


@alone
def test_coverage(minimal: str) -> None:
    treadle.load_backend(minimal)
    x = treadle.rand(3, 3, device="minimal")
    coverage = treadle.backends.coverage("minimal")
    coverage.reset()
    assert coverage.total() == 0
    x @ x, x @ x, x + x, x.sum(), x.sort(), treadle.addcdiv(x, x, x)
    coverage = treadle.backends.coverage("minimal")
    answers = coverage.as_dict()
    assert answers == dict(coverage) and set(answers) == set(coverage)
    assert answers["native"] == {"mm": 2} and answers["fallback"] == {"sort": 1}
    assert answers["generated"]["add.Tensor"] == 1 == answers["generated"]["sum"]
    assert coverage["decomposed"]["matmul"] == 2
    lines = str(coverage).splitlines()
    assert lines[0].split() == ["operator", "native", "generated", "decomposed", "fallback"]
    assert lines[1].split() == ["mm", "2", "0", "0", "0"]
    assert lines[-2].split() == ["sort", "0", "0", "0", "1"]
    assert lines[-1].split()[:3] == [str(len(lines) - 2), "operators", "2"]
    text = (
        "sort: expected a kernel of the device minimal, got none, and falling back to the cpu is "
        "switched off for it"
    )
    with treadle.backends.allow_fallback("minimal", False):
        assert refusal(x.sort, NotImplementedError) == text
        assert (x * x).sum().item() > 0
    x.sort()
    treadle.backends.allow_fallback("minimal", False)
    assert refusal(x.sort, NotImplementedError) == text
    assert refusal(lambda: treadle.backends.coverage("cpu")) == (
        "expected the name of a device with a backend, got 'cpu'"
    )


@alone
def test_the_page_for_users(minimal: str, tmp_path: str) -> None:
    os.chdir(tmp_path)
    os.symlink(minimal, "minimal.so")
    run_examples(plugins.ROOT / "docs" / "backends.md")


# ---- at import treadle ---------------------------------------------------------------------------


def imported(tmp_path: Path, **environment: str) -> tuple[list[str], list[str]]:
    """The devices there are after `import treadle`, and the warnings that it gave."""
    program = """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import treadle
        print(treadle._C._backends())
        for warning in caught:
            assert warning.category is RuntimeWarning
            print(str(warning.message).replace("\\n", " "))
        print(treadle.ones(2).sum().item())
        """
    shown = plugins.run_program(program, search=[str(tmp_path)], environment=environment)
    lines = shown.splitlines()
    assert lines[-1] == "2.0"
    return eval(lines[0]), lines[1:-1]


def install(folder: Path, name: str, target: str, module: str = "") -> None:
    """A package with an entry point, as installers leave it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[console_scripts]\nx = y:z\n\n[treadle.backends]\n{name} = {target}\n"
    )
    if module:
        (folder / f"{target.split(':')[0]}.py").write_text(module)


def test_backends_are_found_at_import(
    tmp_path: Path, minimal: str, other: str, streams: str
) -> None:
    install(tmp_path, "one", "package_one:library", f"def library(): return {minimal!r}")
    install(tmp_path, "two", "package_two", f"import treadle\nLIBRARY = {streams!r}")
    names, warnings = imported(tmp_path, TREADLE_BACKENDS=other)
    assert sorted(names) == ["minimal", "other", "streams"] and not warnings
    assert imported(tmp_path, TREADLE_BACKENDS=other, TREADLE_AUTOLOAD_BACKENDS="0") == ([], [])


def test_what_cannot_be_loaded_is_left_out(tmp_path: Path, minimal: str) -> None:
    (broken := tmp_path / "broken.so").write_text("no library")
    old = plugins.build(tmp_path, "old", plugins.c_plugin("old", "return TREADLE_OK;", version=99))
    install(tmp_path, "gone", "package_gone:library")
    install(tmp_path, "wrong", "package_wrong:library", "def library(): return 7")
    install(tmp_path, "fails", "package_fails:library", "raise OSError('no driver')")
    paths = os.pathsep.join([str(broken), str(tmp_path / "none.so"), old, minimal])
    names, warnings = imported(tmp_path, TREADLE_BACKENDS=paths)
    assert names == ["minimal"]
    beginnings = [
        "backend 'fails' (entry point package_fails:library) was left out: OSError: no driver",
        "backend 'gone' (entry point package_gone:library) was left out: ModuleNotFoundError: ",
        "backend 'wrong' (entry point package_wrong:library) was left out: TypeError: expected "
        "package_wrong:library to be a function that returns the path of a library, or a module "
        "with one as LIBRARY, got int",
        f"backend {broken} (of TREADLE_BACKENDS) was left out: RuntimeError: {broken}: expected a "
        "shared library that can be loaded, got: ",
        f"backend {tmp_path}/none.so (of TREADLE_BACKENDS) was left out: RuntimeError: ",
        f"backend {old} (of TREADLE_BACKENDS) was left out: RuntimeError: plug-in 'old' ({old}): "
        "expected one built for version 1 of the plug-in interface, which Treadle ",
    ]
    assert len(warnings) == len(beginnings), warnings
    for warning, beginning in zip(sorted(warnings), beginnings):
        assert warning.startswith("import treadle: " + beginning)


# ---- every operator ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_every_operator_on_a_device(other: str, part: int) -> None:
    """The operators' own tests, on a device whose storages are no addresses."""
    values = "test_reference or forms_agree or layouts_agree or meta_agrees or mixed"
    tests = {
        0: ["operators/test_operators.py", "-k", values],
        1: ["autograd/test_gradients.py", "-k", "test_gradcheck"],
        2: ["tensors/test_views.py", "contract/test_output_rules.py"],
    }[part]
    files = [str(PYTHON / t) if t.endswith(".py") else t for t in tests]
    options = ["-q", "-p", "no:cacheprovider", "--tb=line", "--device", "other", "--backend", other]
    command = [sys.executable, "-m", "pytest", *options, *files]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
