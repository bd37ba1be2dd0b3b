"""Names that say or set a state: generators, dtypes, storages, compilers, switches of autograd."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import platform

import pytest

import treadle
from treadle import nn
from treadle.autograd import graph, profiler, profiler_util

# ---- generators ----


def test_a_clone_of_a_generator_goes_on_alike():
    g = treadle.Generator().manual_seed(3)
    treadle.rand(5, generator=g)
    clone = g.clone_state()
    assert clone is not g and clone.get_offset() == g.get_offset() > 0
    drawn = treadle.rand(4, generator=g)
    assert treadle.equal(drawn, treadle.rand(4, generator=clone))


def test_a_generator_goes_back_to_a_place():
    g = treadle.Generator().manual_seed(3)
    first = treadle.rand(4, generator=g)
    assert g.initial_seed() == 3
    g.set_offset(0)
    assert treadle.equal(first, treadle.rand(4, generator=g))
    with pytest.raises(RuntimeError) as caught:
        g.set_offset(-1)
    assert str(caught.value) == "set_offset: expected an offset of 0 or more, got -1"


# ---- dtypes ----


@pytest.mark.parametrize(
    "name, short",
    [
        ("float32", "f32"), ("float16", "f16"), ("bfloat16", "bf16"), ("bool", "b8"),
        ("int64", "i64"), ("uint16", "u16"), ("complex64", "c64"), ("complex32", "c32"),
        ("bcomplex32", "bc32"), ("float8_e4m3fn", "f8e4m3fn"), ("float4_e2m1fn_x2", "f4e2m1fnx2"),
        ("quint8", "quint8"),
    ],
)  # fmt: skip
def test_dtypes_in_a_few_letters(name, short):
    assert getattr(treadle, name).abbr == short


def test_storages_of_eight_bit_numbers():
    storage = treadle.FloatStorage([1.0, -0.5])
    found = storage.float8_e5m2()
    assert found.dtype == treadle.float8_e5m2 and found.nbytes() == 2
    numbers = storage.untyped().float8_e4m3fn()
    assert numbers.dtype == treadle.float8_e4m3fn


def test_schemes_of_quantized_numbers_are_names():
    assert isinstance(treadle.per_tensor_affine, treadle.qscheme)
    assert repr(treadle.per_channel_symmetric) == "treadle.per_channel_symmetric"


# ---- tensors ----


def test_const_data_ptr_and_layouts():
    x = treadle.ones(2)
    assert x.const_data_ptr() == x.data_ptr()
    assert x.is_sparse_csr is False


def test_what_a_module_keeps_of_a_loaded_tensor():
    p = nn.Parameter(treadle.zeros(2))
    other = treadle.tensor([1.0, 2.0])
    with treadle.no_grad():
        kept = p.module_load(other)
    assert type(kept) is treadle.Tensor and not kept.requires_grad
    assert kept.data_ptr() == p.data_ptr() and p.tolist() == [1.0, 2.0]
    assert p.module_load(other, assign=True).data_ptr() == other.data_ptr()
    with pytest.raises(RuntimeError):
        p.module_load(other)


# ---- autograd ----


def test_the_class_of_functions_has_what_ctx_has():
    for name in ("save_for_backward", "saved_tensors", "mark_dirty", "needs_input_grad"):
        assert hasattr(treadle.autograd.Function, name)

    class Twice(treadle.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert isinstance(ctx, treadle.autograd.function.BackwardCFunction)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    assert type(Twice) is treadle.autograd.function.FunctionMeta
    x = treadle.ones(2, requires_grad=True)
    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_callback_comes_after_the_backward():
    seen = []
    x = treadle.ones(2, requires_grad=True)

    def hook(gradient):
        graph.queue_callback(lambda: seen.append(x.grad.tolist()))

    y = x * 3
    y.register_hook(hook)
    y.sum().backward()
    assert seen == [[3.0, 3.0]]
    with pytest.raises(RuntimeError):
        graph.queue_callback(lambda: None)


def test_a_budget_is_from_0_to_1():
    x = treadle.ones(2, requires_grad=True)
    with graph.region_activation_memory_budget(0.5):
        (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(ValueError) as caught, graph.region_activation_memory_budget(2):
        pass
    assert str(caught.value) == (
        "region_activation_memory_budget: expected a budget from 0 to 1, got 2"
    )


# ---- profiles ----


def test_steps_are_those_of_the_part_that_counts_most():
    tracker = profiler.KinetoStepTracker
    begin = tracker.current_step()
    tracker.init_step_count("a")
    tracker.init_step_count("b")
    counted = [tracker.increment_step(name) - begin for name in "abbb"]
    assert counted == [1, 1, 2, 3]
    assert tracker.erase_step_count("a") and not tracker.erase_step_count("a")
    assert tracker.erase_step_count("b") and tracker.current_step() == begin + 3


def test_records_of_memory_between_two_times():
    class Record:
        def __init__(self, ns):
            self.ns = ns

        def start_ns(self):
            return self.ns

    records = [(Record(ns), ns) for ns in (9000, 1000, 5000)]
    found = profiler_util.MemRecordsAcc(records).in_interval(1, 5)
    assert [ns for _, ns in found] == [1000, 5000]


def test_small_classes_of_profiles():
    table = profiler_util.StringTable()
    assert table["aten::add"] == "aten::add" and len(table) == 1
    kernel = profiler_util.Kernel("gemm", 0, 2.5)
    assert kernel.name == "gemm" and kernel.duration == 2.5
    with profiler.profile() as recorded:
        treadle.ones(2) + 1
    event = recorded.function_events[0]
    assert isinstance(event, profiler_util.FormattedTimesMixin)
    assert event.cpu_time_total_str.endswith("s")


# ---- compilers ----


def test_the_backend_that_is_used_where_none_is_given():
    called = []

    def backend(graph_module, inputs):
        called.append(len(inputs))
        return graph_module

    assert treadle.compiler.get_default_backend() == "inductor"
    treadle.compiler.set_default_backend(backend)
    try:
        assert treadle.compiler.get_default_backend() is backend
        assert treadle.compile(lambda x: x + 1)(treadle.ones(2)).tolist() == [2.0, 2.0]
    finally:
        treadle.compiler.set_default_backend(None)
    assert called == [1] and treadle.compiler.get_default_backend() == "inductor"
    with pytest.raises(RuntimeError):
        treadle.compiler.set_default_backend("no such")
    assert treadle.compiler.nested_compile_region(len) is len
    assert treadle.compiler.nested_compile_region(options={})(len) is len


# ---- autocast ----


@pytest.mark.parametrize("kind", ["ipu", "xla"])
def test_autocast_for_other_devices(kind):
    set_dtype = getattr(treadle, f"set_autocast_{kind}_dtype")
    get_dtype = getattr(treadle, f"get_autocast_{kind}_dtype")
    is_enabled = getattr(treadle, f"is_autocast_{kind}_enabled")
    before = get_dtype()
    try:
        set_dtype(treadle.bfloat16)
        assert get_dtype() == treadle.get_autocast_dtype(kind) == treadle.bfloat16
        getattr(treadle, f"set_autocast_{kind}_enabled")(True)
        assert is_enabled() and treadle.is_autocast_enabled(kind)
    finally:
        set_dtype(before)
        treadle.set_autocast_enabled(kind, False)
    assert not is_enabled()


# ---- the rest ----


def test_what_the_processor_can_do():
    found = treadle.cpu.get_capabilities()
    assert found["architecture"] == platform.machine() and found["num_logical_cores"] >= 1
    if platform.machine() == "x86_64":
        assert found["sse2"] is True and isinstance(found["avx512_vnni"], bool)
    with pytest.raises(TypeError):
        found["avx2"] = False


def test_overrides_that_say_minus_one():
    overrides = treadle.overrides.get_testing_overrides()
    assert overrides[treadle.add](1, 2) == -1
    assert overrides[treadle.Tensor.add](None, other=3) == -1
    assert set(overrides) >= set(treadle.overrides.get_overridable_functions()[treadle.Tensor])


def test_types_of_results():
    x = treadle.rand(5, 2)
    assert isinstance(treadle.histogramdd(x, bins=3), treadle.return_types.histogramdd)
    assert treadle.return_types.linalg_polar_out is treadle.return_types.linalg_polar
    treadle.return_types.pytree_register_structseq(treadle.return_types.sort)
    with pytest.raises(TypeError) as caught:
        treadle.return_types.pytree_register_structseq(int)
    assert str(caught.value) == (
        "pytree_register_structseq: expected a class of results with named parts, got int"
    )


def test_checks_of_sparse_tensors_are_a_switch():
    switch = treadle.sparse.check_sparse_tensor_invariants
    assert not switch.is_enabled()
    with switch():
        assert switch.is_enabled()
        with switch(enable=False):
            assert not switch.is_enabled()
    assert not switch.is_enabled()
    assert switch()(switch.is_enabled)() is True
    switch.enable()
    assert switch.is_enabled()
    switch.disable()
    once = switch()
    with once, pytest.raises(RuntimeError) as caught, once:
        pass
    assert str(caught.value) == (
        "check_sparse_tensor_invariants: expected to be entered once, got a block in it"
    )


def test_one_of_two_functions_by_an_argument():
    def pair(x, flag=False):
        return (x, x)

    def single(x, flag=False):
        return x

    chosen = nn.functional.boolean_dispatch("flag", 1, False, pair, single, "here", "chosen")
    assert chosen(1) == 1 and chosen(1, True) == (1, 1) and chosen(1, flag=True) == (1, 1)
    assert (chosen.__name__, chosen.__module__) == ("chosen", "here")
    assert nn.functional.grad is nn.grad


def test_hooks_that_are_lost():
    def lost(gradient):
        return gradient

    class Hooked:
        _backward_hooks = {0: lost}

    with pytest.warns(UserWarning, match="saving a tensor loses its hook 'lost'"):
        treadle.utils.hooks.warn_if_has_hooks(Hooked())
    assert treadle.utils.hooks.unserializable_hook(lost) is lost
    treadle.utils.hooks.warn_if_has_hooks(Hooked())
    kind, _ = treadle.ones(1).__dlpack_device__()
    assert treadle.utils.dlpack.DLDeviceType(kind).name == "kDLCPU"
