"""The namespaces that programs ask about devices, compilers and libraries: truthful where there is
nothing, and with PyTorch's names.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import hashlib
import pickle
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
import pytest

import treadle
from treadle import nn

# ---- Devices ----


def test_no_device_is_there() -> None:
    assert treadle.cuda.is_available() is treadle.mps.is_available() is False
    assert treadle.xpu.is_available() is treadle.accelerator.is_available() is False
    assert treadle.backends.mps.is_available() is treadle.backends.mps.is_built() is False
    assert treadle.backends.cuda.is_built() is treadle.cuda.is_bf16_supported() is False
    for namespace in (treadle.cuda, treadle.mps, treadle.xpu, treadle.accelerator):
        assert namespace.device_count() == 0
    assert treadle.accelerator.current_accelerator() is None
    assert treadle.cuda.is_initialized() is False and treadle.cuda.get_arch_list() == []


@pytest.mark.parametrize(
    "use",
    [
        "cuda.current_device()",
        "cuda.current_stream()",
        "cuda.device(0).__enter__()",
        "cuda.Event().record()",
        "cuda.get_device_capability(0)",
        "cuda.get_device_name(0)",
        "cuda.get_device_properties(0)",
        "cuda.get_rng_state()",
        "cuda.init()",
        "cuda.mem_get_info()",
        "cuda.set_device(0)",
        "cuda.set_device('cuda:1')",
        "cuda.Stream()",
        "cuda.stream(1).__enter__()",
        "cuda.synchronize()",
        "mps.empty_cache()",
        "mps.synchronize()",
        "xpu.current_device()",
        "xpu.get_device_name()",
        "xpu.Stream()",
        "xpu.synchronize()",
        "accelerator.current_device_index()",
        "accelerator.device_index(0).__enter__()",
        "accelerator.set_device_index(0)",
        "accelerator.synchronize()",
    ],
)
def test_what_needs_a_device_says_so(use: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        eval(f"treadle.{use}")
    name = use.split("(")[0]
    text = str(raised.value)
    assert text.startswith((f"{name}: expected", f"{name}.record: expected"))
    reason = "no backend for one is loaded"
    if name.startswith("cuda"):
        reason = "the package treadle-cuda is not installed"
    assert text.endswith(f"got none: {reason}")
    assert text.count("\n") == 0


def test_what_is_harmless_without_a_device() -> None:
    cuda = treadle.cuda
    assert cuda.memory_allocated() == cuda.max_memory_allocated(0) == cuda.memory_reserved() == 0
    assert cuda.max_memory_reserved() == cuda.memory_cached() == 0 and not cuda.memory_stats()
    state = treadle.get_rng_state()
    for namespace in (cuda, treadle.xpu):
        namespace.manual_seed(1)
        namespace.manual_seed_all(2)
        namespace.empty_cache()
        namespace.reset_peak_memory_stats()
    treadle.mps.manual_seed(3)
    assert treadle.equal(treadle.get_rng_state(), state)
    cuda.ipc_collect()
    cuda.set_device(-1)
    with cuda.device(None), cuda.device(-1), cuda.stream(None), cuda.device_of(treadle.zeros(1)):
        pass
    event = cuda.Event(enable_timing=True)
    event.synchronize()
    assert event.query() and cuda.get_rng_state_all() == []
    assert treadle.accelerator.memory_allocated() == 0
    with cuda.nvtx.range("step {}", 1):
        assert cuda.nvtx.range_push("inner") == 1
        assert cuda.nvtx.range_pop() == 1
    assert cuda.nvtx.range_pop() == -1 and cuda.nvtx.range_push("first") == 0
    assert cuda.nvtx.range_pop() == 0


def test_types_of_tensors_on_a_device() -> None:
    x = treadle.zeros(2)
    assert not isinstance(x, treadle.cuda.FloatTensor) and isinstance(x, treadle.FloatTensor)
    assert treadle.cuda.LongTensor.dtype == treadle.int64
    assert issubclass(treadle.cuda.OutOfMemoryError, RuntimeError)
    for make in (lambda: treadle.cuda.FloatTensor(2), lambda: x.type("torch.cuda.FloatTensor")):
        with pytest.raises(RuntimeError, match="got cuda, for which no backend is loaded"):
            make()


def test_a_device_is_asked_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend may be loaded at any time; what is available follows."""
    from treadle._device import registry

    monkeypatch.setattr(registry, "is_available", lambda place: place in ("cuda", "cuda:0"))
    assert treadle.cuda.is_available() and treadle.cuda.device_count() == 1
    assert treadle.accelerator.current_accelerator() == treadle.device("cuda")


# ---- Switches ----


def test_backends() -> None:
    backends = treadle.backends
    assert not backends.cudnn.is_available() and backends.cudnn.version() is None
    assert not backends.mkl.is_available() and not backends.opt_einsum.is_available()
    assert backends.openmp.is_available() and backends.mkldnn.is_available()
    assert backends.quantized.engine in backends.quantized.supported_engines


def test_switches_of_cudnn() -> None:
    cudnn = treadle.backends.cudnn
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, False, False)
    cudnn.benchmark = True
    try:
        with cudnn.flags(enabled=True, deterministic=True):
            assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, False, True)
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, True, False)
    finally:
        cudnn.benchmark = False


def test_devices_see_the_switches_of_their_libraries() -> None:
    from treadle import _C

    cudnn = treadle.backends.cudnn
    assert cudnn.allow_tf32 is True and not _C._math_switch("matmul_tf32")
    with cudnn.flags(benchmark=True, allow_tf32=False):
        assert _C._math_switch("convolution_benchmark")
        assert not _C._math_switch("convolution_tf32")
    assert not _C._math_switch("convolution_benchmark") and _C._math_switch("convolution_tf32")
    try:
        treadle.set_float32_matmul_precision("medium")
        assert _C._math_switch("matmul_tf32")
    finally:
        treadle.backends.cuda.matmul.allow_tf32 = False
    assert not _C._math_switch("matmul_tf32")
    with pytest.raises(ValueError, match="_math_switch: expected the name of a switch, got 'x'"):
        _C._set_math_switch("x", True)


def test_precision_of_matrix_products() -> None:
    matmul = treadle.backends.cuda.matmul
    assert treadle.get_float32_matmul_precision() == "highest" and matmul.allow_tf32 is False
    try:
        treadle.set_float32_matmul_precision("high")
        assert matmul.allow_tf32 is True
        matmul.allow_tf32 = False
        assert treadle.get_float32_matmul_precision() == "highest"
        with pytest.warns(UserWarning, match="low is not one of 'highest', 'high', or 'medium'"):
            treadle.set_float32_matmul_precision("low")
    finally:
        treadle.set_float32_matmul_precision("highest")
    for use in (lambda: matmul.no_such, lambda: setattr(matmul, "no_such", True)):
        with pytest.raises(AttributeError, match="Unknown attribute no_such"):
            use()


def test_deterministic_algorithms() -> None:
    assert not treadle.are_deterministic_algorithms_enabled()
    try:
        treadle.use_deterministic_algorithms(True, warn_only=True)
        assert treadle.are_deterministic_algorithms_enabled()
        assert treadle.is_deterministic_algorithms_warn_only_enabled()
        assert treadle.get_deterministic_debug_mode() == 1
        treadle.set_deterministic_debug_mode("error")
        assert treadle.get_deterministic_debug_mode() == 2
        assert not treadle.is_deterministic_algorithms_warn_only_enabled()
        treadle.use_deterministic_algorithms(False, warn_only=True)
        assert treadle.get_deterministic_debug_mode() == 0
        assert treadle.is_deterministic_algorithms_warn_only_enabled()
        with pytest.raises(RuntimeError, match="expected debug_mode to be 0, 1 or 2"):
            treadle.set_deterministic_debug_mode(7)
        with pytest.raises(TypeError, match="expected mode to be a bool, got int"):
            treadle.use_deterministic_algorithms(3)
    finally:
        treadle.use_deterministic_algorithms(False)
    assert treadle.get_deterministic_debug_mode() == 0


def test_threads_between_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle._functions import settings as _settings

    monkeypatch.setattr(_settings, "_interop_threads", 0)
    assert treadle.get_num_interop_threads() >= 1
    with pytest.raises(RuntimeError, match="expected a number >= 1, got 0"):
        treadle.set_num_interop_threads(0)
    treadle.set_num_interop_threads(3)
    assert treadle.get_num_interop_threads() == 3
    with pytest.raises(RuntimeError, match="expected one call, got a second"):
        treadle.set_num_interop_threads(2)


def test_choice_of_attention() -> None:
    cuda = treadle.backends.cuda
    assert cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    before = nn.attention._cur_sdpa_kernel_backends()
    cuda.enable_flash_sdp(False)
    assert not cuda.flash_sdp_enabled() and cuda.mem_efficient_sdp_enabled()
    cuda.enable_flash_sdp(True)
    assert set(nn.attention._cur_sdpa_kernel_backends()) == set(before)
    with cuda.sdp_kernel(enable_flash=False, enable_mem_efficient=False, enable_cudnn=False):
        assert nn.attention._cur_sdpa_kernel_backends() == [nn.attention.SDPBackend.MATH]
    assert cuda.flash_sdp_enabled()


def test_text_about_the_build() -> None:
    assert f"which follows PyTorch {treadle.version.__version__.split('+')[0]}" in (
        treadle.__config__.show()
    )
    assert f"Threads of an operator: {treadle.get_num_threads()}\n" in (
        treadle.__config__.parallel_info()
    )


# ---- Compilers that are not there ----


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)

    def forward(self, x: treadle.Tensor, twice: bool = False) -> treadle.Tensor:
        return self.linear(x) * (2 if twice else 1)


def test_compile_of_a_module() -> None:
    net, x = Net(), treadle.randn(4, 2)
    compiled = treadle.compile(net, fullgraph=True, dynamic=False, mode="max-autotune")
    assert treadle.equal(compiled(x, twice=True), net(x, twice=True))
    assert list(compiled.state_dict()) == ["_orig_mod.linear.weight", "_orig_mod.linear.bias"]
    assert compiled._orig_mod is net and compiled.linear is net.linear
    assert isinstance(compiled, treadle._dynamo.OptimizedModule)
    assert isinstance(compiled, nn.Module) and not isinstance(compiled, Net)
    compiled.eval()
    assert compiled.training is net.training is net.linear.training is False
    compiled.scale = 3
    assert net.scale == 3
    del compiled.scale
    assert not hasattr(net, "scale") and "linear" in dir(compiled)
    compiled.load_state_dict({k: v + 1 for k, v in compiled.state_dict().items()})
    assert treadle.equal(compiled(x), net(x))
    assert treadle.compile(compiled) is compiled and treadle.compile(net, disable=True) is net
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(other) is type(compiled) and treadle.equal(other(x), net(x))
        assert other._orig_mod is not net
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Net(")
    net.compile(backend="eager")
    assert list(net.state_dict()) == ["linear.weight", "linear.bias"]


def test_compile_of_functions() -> None:
    @treadle.compile
    def plus(x: Any) -> Any:
        """Adds one."""
        return x + 1

    @treadle.compile(dynamic=True, options={"triton.cudagraphs": True})
    def minus(x: Any) -> Any:
        return x - 1

    assert (plus(1), minus(1)) == (2, 0)
    assert (plus.__name__, plus.__doc__) == ("plus", "Adds one.")
    assert plus._torchdynamo_orig_callable(1) == plus.__wrapped__(1) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backend": "no_such"}, "expected a backend that .* knows, got 'no_such'"),
        ({"mode": "fast"}, "expected mode to be one of default, .*, got fast"),
        ({"mode": "default", "options": {}}, "expected mode or options, got both"),
    ],
)
def test_compile_checks_its_arguments(arguments: dict, message: str) -> None:
    for use in (lambda: treadle.compile(Net(), **arguments), lambda: Net().compile(**arguments)):
        with pytest.raises(RuntimeError, match=message):
            use()
    with pytest.raises(AssertionError, match="expected a module or a function, got int"):
        treadle.compile(3)


def test_backends_of_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle._dynamo import backends

    monkeypatch.setattr(backends, "_registered", {})
    assert "inductor" in treadle.compiler.list_backends()
    assert "eager" not in treadle.compiler.list_backends()
    assert "eager" in treadle._dynamo.list_backends(None)

    @treadle._dynamo.register_backend(name="mine")
    def called(graph: Any, inputs: Any) -> Any:
        return lambda x: (graph(x)[0] + 1,)

    assert "mine" in treadle.compiler.list_backends()
    x = treadle.ones(2)
    for backend in ("mine", called):
        assert treadle.compile(lambda x: x * 2, backend=backend)(x).tolist() == [3, 3]
    assert treadle.compile(lambda x: x * 2, backend="eager")(x).tolist() == [2, 2]


def test_marks_for_a_compiler() -> None:
    def function(x: int = 1) -> int:
        return x

    compiler, dynamo = treadle.compiler, treadle._dynamo
    for mark in (
        compiler.disable,
        compiler.disable(recursive=False),
        compiler.allow_in_graph,
        compiler.assume_constant_result,
        compiler.substitute_in_graph(len),
        dynamo.disallow_in_graph,
        dynamo.optimize("inductor"),
    ):
        assert mark(function)(3) == 3
    dynamo.reset()
    dynamo.graph_break()
    dynamo.mark_dynamic(treadle.zeros(2), 0)
    compiler.cudagraph_mark_step_begin()
    assert not (compiler.is_compiling() or compiler.is_dynamo_compiling() or dynamo.is_compiling())
    with compiler.set_stance("force_eager"):
        assert compiler.set_stance("default")(function)(2) == 2
    with pytest.raises(RuntimeError, match="set_stance: expected one of default"):
        compiler.set_stance("upright")
    assert dynamo.config.verbose is False
    with dynamo.config.patch(verbose=True):
        assert dynamo.config.verbose is True
    assert dynamo.config.verbose is False
    with pytest.raises(AttributeError, match="expected settings of this module, got 'no_such'"):
        dynamo.config.patch(no_such=1).__enter__()


def test_script_gives_back_what_it_is_given() -> None:
    jit, net = treadle.jit, Net()

    @jit.script
    def function(x: treadle.Tensor) -> treadle.Tensor:
        return x + 1 if not jit.is_scripting() else x

    class Old(jit.ScriptModule):
        @jit.script_method
        def forward(self, x: treadle.Tensor) -> treadle.Tensor:
            return self.helper(x)

        @jit.export
        def helper(self, x: treadle.Tensor) -> treadle.Tensor:
            return self.skipped(x) * 2

        @jit.ignore(drop=True)
        def skipped(self, x: treadle.Tensor) -> treadle.Tensor:
            return self.other(x) + 1

        @jit.unused
        def other(self, x: treadle.Tensor) -> treadle.Tensor:
            return x

        @jit._overload_method  # noqa: F811
        def forward(self, x: int) -> int:  # noqa: F811
            pass

        @jit.ignore
        def forward(self, x: treadle.Tensor) -> treadle.Tensor:  # noqa: F811
            return self.helper(x)

    assert function(1) == 2 and jit.script(net) is net
    assert Old()(3) == 8 and isinstance(Old(), nn.Module) and not isinstance(net, jit.ScriptModule)
    assert jit.annotate(List[int], [1]) == [1] and jit.Attribute(3, int).value == 3
    assert jit.script_if_tracing(function) is function
    with pytest.raises(RuntimeError, match="expected a module in evaluation mode"):
        jit.freeze(net)
    assert jit.freeze(net.eval()) is net and jit.optimize_for_inference(net) is net
    assert jit.wait(jit.fork(lambda x, y: x + y, 1, y=2)) == 3
    with pytest.raises(ZeroDivisionError):
        jit.fork(lambda: 1 / 0)


def test_trace_runs_once_on_the_example() -> None:
    calls: List[Any] = []

    def function(*args: Any, **kwargs: Any) -> None:
        calls.append((args, kwargs, treadle.jit.is_tracing()))

    x = treadle.ones(1)
    assert treadle.jit.trace(function, x) is function
    treadle.jit.trace(function, (x, 2))
    treadle.jit.trace(function, example_kwarg_inputs={"x": x})
    expected = [((x,), {}, True), ((x, 2), {}, True), ((), {"x": x}, True)]
    assert calls == expected and not treadle.jit.is_tracing()
    net = Net()
    assert treadle.jit.trace_module(net, {"forward": treadle.ones(1, 2)}) is net
    with pytest.raises(RuntimeError, match="matmul|linear|addmm"):
        treadle.jit.trace(net, treadle.ones(1, 7))
    assert not treadle.jit.is_tracing()
    with pytest.raises(RuntimeError, match="expected example_inputs"):
        treadle.jit.trace(net)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, int, True),
        ([1, 2], List[int], True),
        ([1, "a"], List[int], False),
        ({"a": [1.0]}, Dict[str, List[float]], True),
        ({"a": [1]}, Dict[str, List[str]], False),
        ((1, "a"), Tuple[int, str], True),
        ((1, 2, 3), Tuple[int, str], False),
        ((1, 2, 3), Tuple[int, ...], True),
        (None, Optional[int], True),
        ("a", Optional[int], False),
        ([None, 1], List[Optional[int]], True),
        (2.5, Union[int, float], True),
        ([1], (str, List[int]), True),
        (treadle.ones(1), treadle.Tensor, True),
    ],
)
def test_jit_isinstance(value: Any, kind: Any, expected: bool) -> None:
    assert treadle.jit.isinstance(value, kind) is expected


def test_jit_isinstance_needs_the_types_of_elements() -> None:
    with pytest.raises(RuntimeError, match="the types of its elements"):
        treadle.jit.isinstance([1], List)


def test_jit_files(tmp_path: Path) -> None:
    net = Net()
    treadle.jit.save(treadle.jit.script(net), str(tmp_path / "net.pt"))
    loaded = treadle.jit.load(str(tmp_path / "net.pt"))
    x = treadle.randn(1, 2)
    assert type(loaded) is Net and treadle.equal(loaded(x), net(x))
    treadle.save({"a": x}, str(tmp_path / "dictionary.pt"))
    with pytest.raises(RuntimeError, match="expected a file with a module, got dict"):
        treadle.jit.load(str(tmp_path / "dictionary.pt"))


def test_onnx() -> None:
    assert not treadle.onnx.is_in_onnx_export()
    with pytest.raises(NotImplementedError, match="onnx.export: expected a graph"):
        treadle.onnx.export(Net(), (treadle.ones(1, 2),), "net.onnx")


# ---- Others ----


def test_products_by_sparse_names() -> None:
    a, b = treadle.randn(2, 3), treadle.randn(3, 4)
    for product in (treadle.sparse.mm, treadle.spmm):
        assert treadle.equal(product(a, b), a @ b)
    c = treadle.randn(2, 4)
    expected = treadle.addmm(c, a, b, beta=2, alpha=3)
    assert treadle.equal(treadle.sparse.addmm(c, a, b, beta=2, alpha=3), expected)
    assert not isinstance(a, treadle.sparse.FloatTensor)


def test_load_state_dict_from_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub, source, cache = treadle.hub, tmp_path / "source", tmp_path / "cache"
    source.mkdir()
    treadle.save({"weight": treadle.arange(3)}, str(source / "net.pth"))
    digest = hashlib.sha256((source / "net.pth").read_bytes()).hexdigest()
    named = source / f"net-{digest[:8]}.pth"
    named.write_bytes((source / "net.pth").read_bytes())
    monkeypatch.setenv("TORCH_HOME", str(cache))
    assert hub.get_dir() == str(cache / "hub")

    def load(path: Path, **kwargs: Any) -> list:
        return hub.load_state_dict_from_url(path.as_uri(), **kwargs)["weight"].tolist()

    assert load(named, check_hash=True, map_location="cpu", progress=False) == [0, 1, 2]
    kept = cache / "hub" / "checkpoints" / named.name
    assert kept.exists()
    named.unlink()
    assert load(named) == [0, 1, 2]  # from the folder
    wrong = source / "net-00000000.pth"
    wrong.write_bytes((source / "net.pth").read_bytes())
    with pytest.raises(RuntimeError, match="expected a file whose hash begins with '00000000'"):
        load(wrong, check_hash=True)
    assert sorted(p.name for p in kept.parent.iterdir()) == [named.name]
    assert load(source / "net.pth", model_dir=str(cache), file_name="other.pth") == [0, 1, 2]
    assert (cache / "other.pth").exists()
    with pytest.raises(OSError, match="No such file"):
        load(source / "missing.pth")
    monkeypatch.setattr(hub, "_folder", None)
    hub.set_dir(str(tmp_path / "chosen"))
    assert hub.get_dir() == str(tmp_path / "chosen")
    assert treadle.utils.model_zoo.load_url is hub.load_state_dict_from_url


def test_futures() -> None:
    futures = treadle.futures
    future: Any = futures.Future()
    doubled = future.then(lambda f: f.value() * 2)
    assert not future.done()
    with pytest.raises(RuntimeError, match="expected a future that is done"):
        future.value()
    future.set_result(3)
    assert (future.wait(), doubled.wait(), doubled.done()) == (3, 6, True)
    with pytest.raises(RuntimeError, match="expected one call, got a second"):
        future.set_result(4)
    failed: Any = futures.Future()
    failed.set_exception(ValueError("bad"))
    for waited in (failed, failed.then(lambda f: f.wait())):
        with pytest.raises(ValueError, match="bad"):
            waited.wait()
    assert futures.wait_all([future, doubled]) == [3, 6]
    assert futures.collect_all([]).wait() == []


@pytest.mark.parametrize(("shuffle", "drop_last"), [(True, False), (False, False), (False, True)])
def test_distributed_sampler(shuffle: bool, drop_last: bool) -> None:
    sampler = treadle.utils.data.distributed.DistributedSampler
    data = range(10)
    shares = [sampler(data, 3, rank, shuffle, 5, drop_last) for rank in range(3)]
    lists = [list(share) for share in shares]
    assert {len(share) for share in shares} == {len(x) for x in lists} == {3 if drop_last else 4}
    together = [i for row in zip(*lists) for i in row]
    if not shuffle:
        assert together == list(range(9)) if drop_last else [*range(10), 0, 1]
    else:
        generator = treadle.Generator().manual_seed(5)
        order = treadle.randperm(10, generator=generator).tolist()
        assert together == order + order[:2]
        shares[0].set_epoch(1)
        assert list(shares[0]) != lists[0]
        shares[0].set_epoch(0)
        assert list(shares[0]) == lists[0]
    with pytest.raises(ValueError, match=r"expected rank in \[0, 3\), got rank = 3"):
        sampler(data, 3, 3)


def test_more_replicas_than_data() -> None:
    sampler = treadle.utils.data.distributed.DistributedSampler
    assert [list(sampler([7], 3, rank, shuffle=False)) for rank in range(3)] == [[0], [0], [0]]


def test_data_parallel_without_devices() -> None:
    net, x = Net(), treadle.randn(4, 2)
    model = nn.DataParallel(net)
    assert treadle.equal(model(x, twice=True), net(x, twice=True))
    assert list(model.state_dict()) == ["module.linear.weight", "module.linear.bias"]
    assert model.module is net and model.device_ids == []
    assert treadle.equal(nn.parallel.data_parallel(net, x), net(x))
    assert nn.DataParallel is nn.parallel.DataParallel


def test_data_parallel_on_devices() -> None:
    """The CPU, twice, as two devices: split, copied, put together; gradients reach the module."""
    net, x = Net(), treadle.randn(5, 2)
    devices = ["cpu", "cpu"]
    result = nn.parallel.data_parallel(net, x, devices, module_kwargs={"twice": True})
    expected = net(x, twice=True)
    treadle.testing.assert_close(result, expected)
    result.sum().backward()
    found = [p.grad for p in net.parameters()]
    net.zero_grad()
    expected.sum().backward()
    for grad, parameter in zip(found, net.parameters()):
        treadle.testing.assert_close(grad, parameter.grad)
    first, second = nn.parallel.replicate(net, devices, detach=True)
    assert first is not second and first.linear is not net.linear
    assert not first(x).requires_grad and treadle.equal(second(x), net(x))


def test_scatter_and_gather() -> None:
    x = treadle.arange(5)
    pieces = nn.parallel.scatter({"x": [x, 7], "n": None}, ["cpu", "cpu"])
    assert [p["x"][0].tolist() for p in pieces] == [[0, 1, 2], [3, 4]]
    assert [(p["x"][1], p["n"]) for p in pieces] == [(7, None), (7, None)]
    together = nn.parallel.gather([{"x": p["x"][0], "s": p["x"][0].sum()} for p in pieces], "cpu")
    assert treadle.equal(together["x"], x) and together["s"].tolist() == [3, 7]
    with pytest.raises(ValueError, match="expected dictionaries with the same keys"):
        nn.parallel.gather([{"a": x}, {"b": x}], "cpu")


def test_amp_by_its_older_name() -> None:
    cuda = treadle.cuda.amp
    assert issubclass(cuda.autocast, treadle.amp.autocast)
    assert issubclass(cuda.GradScaler, treadle.amp.GradScaler)
    assert cuda.amp_definitely_not_available()
    x = treadle.ones(2, 2)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        scaler = cuda.GradScaler(init_scale=4.0)
        with cuda.autocast():
            assert (x @ x).dtype == treadle.float32  # there is no device that it is for

        @cuda.custom_fwd(cast_inputs=treadle.float16)
        def forward(ctx: Any, value: treadle.Tensor) -> treadle.Tensor:
            return value

        ctx = types.SimpleNamespace()
        assert forward(ctx, x).dtype == treadle.float32
        assert cuda.custom_bwd(lambda ctx, value: value)(ctx, 3) == 3
    assert not scaler.is_enabled()
    deprecated = [str(w.message) for w in given if w.category is FutureWarning]
    assert deprecated[:2] == [
        "`treadle.cuda.amp.GradScaler(args...)` is deprecated. Please use "
        "`treadle.amp.GradScaler('cuda', args...)` instead.",
        "`treadle.cuda.amp.autocast(args...)` is deprecated. Please use "
        "`treadle.amp.autocast('cuda', args...)` instead.",
    ]


def test_arguments_of_layers() -> None:
    from treadle.nn.modules import utils

    assert utils._pair(3) == (3, 3) and utils._triple([1, 2]) == (1, 2)
    assert utils._ntuple(4)("ab") == ("a", "b") and utils._single(0.5) == (0.5,)
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert utils._list_with_default([None, 7], [2, 3, 4]) == [3, 7]
    with pytest.raises(ValueError, match="at least 2"):
        utils._list_with_default([None], [1])
    state = Net().state_dict(prefix="module.")
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == list(Net().state_dict())
    assert list(state._metadata) == list(Net().state_dict()._metadata)


def test_dlpack_by_its_older_name() -> None:
    from treadle.utils import dlpack

    x = treadle.arange(3.0)
    y = dlpack.from_dlpack(dlpack.to_dlpack(x))
    y[0] = 7
    assert x.tolist() == [7, 1, 2]


# ---- The default device ----


def test_default_device() -> None:
    x = treadle.zeros(2)
    assert treadle.get_default_device() == treadle.device("cpu")
    treadle.set_default_device("meta")
    try:
        assert treadle.get_default_device() == treadle.device("meta")
        for made in (
            treadle.zeros(2),
            treadle.arange(3),
            treadle.randn(2),
            treadle.tensor([1.0]),
            treadle.as_tensor([1.0]),
            treadle.asarray([1.0]),
            treadle.hann_window(4),
            treadle.fft.fftfreq(4),
            nn.Linear(2, 2).weight,
        ):
            assert made.device.type == "meta"
        # Where there is a tensor, a device or memory to go by, that decides.
        for made in (
            treadle.zeros_like(x),
            x.new_ones(3),
            x.softmax(0),
            treadle.zeros(2, device="cpu"),
            treadle.from_numpy(np.zeros(2)),
            treadle.Tensor(2),
        ):
            assert made.device.type == "cpu"
    finally:
        treadle.set_default_device(None)
    assert treadle.zeros(2).device.type == "cpu"
    with pytest.raises(TypeError, match="expected a device or None, got float"):
        treadle.set_default_device(0.5)


def test_a_device_as_context_and_decorator() -> None:
    with treadle.device("meta") as meta:
        assert meta == treadle.get_default_device() == treadle.device("meta")
        with treadle.device("cpu"):
            assert treadle.ones(1).item() == 1
        assert treadle.ones(1).is_meta
        with pytest.raises(ZeroDivisionError), treadle.device("cpu"):
            1 / 0  # noqa: B018
        assert treadle.ones(1).is_meta
    assert not treadle.ones(1).is_meta

    @treadle.device("meta")
    def make(size: int) -> treadle.Tensor:
        """Makes one."""
        return treadle.ones(size)

    assert make(2).is_meta and not treadle.ones(2).is_meta and make.__doc__ == "Makes one."


def test_the_default_device_is_of_the_thread() -> None:
    found = []
    with treadle.device("meta"):
        thread = threading.Thread(target=lambda: found.append(treadle.ones(1).device.type))
        thread.start()
        thread.join()
    assert found == ["cpu"]


def test_histogramdd() -> None:
    points = treadle.randn(100, 2, dtype=treadle.float64)
    weight = treadle.rand(100, dtype=treadle.float64)
    for bins, ranges in (([3, 4], None), (3, [-1.0, 1.0, -2.0, 2.0])):
        pairs = None if ranges is None else [ranges[:2], ranges[2:]]
        expected, edges = np.histogramdd(points.numpy(), bins, pairs, True, weight.numpy())
        found = treadle.histogramdd(points, bins, range=ranges, weight=weight, density=True)
        np.testing.assert_allclose(found.hist.numpy(), expected)
        for one, other in zip(found.bin_edges, edges):
            np.testing.assert_allclose(one.numpy(), other)
        again = treadle.histogramdd(points, found.bin_edges, weight=weight, density=True)
        np.testing.assert_allclose(again.hist.numpy(), expected)


@pytest.mark.parametrize("first", ["gradcheck", "gradgradcheck"])
def test_a_function_is_found_where_a_submodule_has_its_name(first: str) -> None:
    program = (
        f"import treadle.autograd as autograd; autograd.{first}\n"
        "assert callable(autograd.gradcheck) and callable(autograd.gradgradcheck)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
