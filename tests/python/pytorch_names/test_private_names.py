"""Names beside the public ones that packages for PyTorch use when they are imported."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import os
import pickle
import sys
import typing
from pathlib import Path

import pytest

import treadle
import treadle._custom_ops
import treadle._dynamo.utils
import treadle.hub
import treadle.jit.annotations
import treadle.onnx.symbolic_helper
import treadle.utils.model_zoo

Key, KeySet = treadle._C.DispatchKey, treadle._C.DispatchKeySet


def test_sets_of_dispatch_keys() -> None:
    keys = KeySet(Key.CPU) | KeySet(Key.AutocastCPU)
    assert keys.has(Key.CPU) and not keys.has(Key.CUDA)
    assert keys - KeySet(Key.CPU) == KeySet(Key.AutocastCPU) == keys & KeySet(Key.AutocastCPU)
    assert keys.remove(Key.CPU).add(Key.Meta) == KeySet([Key.AutocastCPU, Key.Meta])
    assert len({keys, KeySet([Key.AutocastCPU, Key.CPU])}) == 1
    assert str(keys) == "DispatchKeySet(CPU, AutocastCPU)"
    assert KeySet([]).highestPriorityTypeId() is Key.Undefined
    assert issubclass(Key, enum.Enum) and str(Key.CPU) == "DispatchKey.CPU"


def test_kernels_for_devices_that_are_elsewhere_are_passed_over() -> None:
    with treadle.library._scoped_library("tpn", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        for key in ("AutocastXPU", "XPU", "SparseCUDA", "QuantizedCPU", "AutogradHPU", Key.XLA):
            library.impl("twice", lambda x: 1 / 0, key)
        library.impl("twice", lambda x: x * 2, Key.CPU)
        assert treadle.ops.tpn.twice(treadle.ones(1)).item() == 2.0
        with pytest.raises(RuntimeError, match="impl: expected a dispatch key or a device, one of"):
            library.impl("twice", lambda x: x, "Functionalize")


def test_guards_leave_out_a_layer() -> None:
    with treadle.library._scoped_library("tpn", "FRAGMENT") as library:
        library.define("which(Tensor x) -> Tensor")
        library.impl("which", lambda x: x * 0, "CPU")
        library.impl("which", lambda x: x * 0 + 1, "AutocastCPU")
        x = treadle.ones(1)
        with treadle.autocast("cpu"):
            assert treadle.ops.tpn.which(x).item() == 1.0
            with treadle._C._ExcludeDispatchKeyGuard(KeySet(Key.AutocastCPU)):
                assert treadle.ops.tpn.which(x).item() == 0.0
            assert treadle.ops.tpn.which(x).item() == 1.0


def test_what_is_said_to_the_extension_module() -> None:
    assert treadle._C._log_api_usage_once("mine") is None
    assert treadle._C._log_api_usage_metadata("mine", {}) is None
    with pytest.raises(TypeError, match="_log_api_usage_once: expected a str, got int"):
        treadle._C._log_api_usage_once(3)  # type: ignore[arg-type]
    states = []

    def traced(x: treadle.Tensor) -> treadle.Tensor:
        states.append(treadle._C._get_tracing_state())
        return x

    treadle.jit.trace(traced, treadle.ones(1))
    assert states[0] and treadle._C._get_tracing_state() is None
    with pytest.raises(AttributeError, match="no attribute '_no_such_name'"):
        treadle._C._no_such_name  # noqa: B018


def test_small_modules() -> None:
    assert treadle._custom_ops.get_ctx() is None
    assert not treadle._dynamo.utils.is_compile_supported("cpu")
    with treadle._dynamo.utils.disable_cache_limit():
        assert treadle.compile(treadle.neg)(treadle.ones(1)).item() == -1
    assert treadle.jit._script_if_tracing(len) is len
    pair = treadle.jit.annotations.BroadcastingList2[int]
    assert pair == typing.Union[int, typing.List[int]]
    assert treadle.jit.annotations.List is typing.List
    flags = Path("/proc/cpuinfo").read_text()
    expected = "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
    assert treadle.backends.cpu.get_cpu_capability() == expected


def test_onnx_takes_what_nothing_writes() -> None:
    @treadle.onnx.symbolic_helper.parse_args("v", "i")
    def symbolic(g: object, x: object) -> object:
        return x

    treadle.onnx.register_custom_op_symbolic("tpn::f", symbolic, 11)
    treadle.onnx.unregister_custom_op_symbolic("tpn::f", 11)
    message = "register_custom_op_symbolic: expected a name as 'my_ns::operator', got 'f'"
    with pytest.raises(ValueError, match=message):
        treadle.onnx.register_custom_op_symbolic("f", symbolic, 11)
    assert treadle.onnx.TrainingMode.EVAL == 0
    with pytest.raises(AttributeError):
        treadle.onnx.symbolic_opset11.squeeze  # noqa: B018


def test_where_the_hub_keeps_its_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert treadle.hub._get_torch_home() == str(tmp_path)
    assert treadle.hub.get_dir() == os.path.join(tmp_path, "hub")
    found = treadle.hub.HASH_REGEX.search("resnet18-f37072fd.pth")
    assert found is not None and found.group(1) == "f37072fd"
    assert treadle.utils.model_zoo.tqdm is treadle.hub.tqdm
    with treadle.hub.tqdm(total=3, disable=True) as bar:
        bar.update(2)
    assert list(treadle.hub.tqdm([1, 2], disable=True)) == [1, 2]


def test_checks() -> None:
    assert treadle._check(True) is None
    for check, error in (
        (treadle._check, RuntimeError),
        (treadle._check_index, IndexError),
        (treadle._check_value, ValueError),
        (treadle._check_type, TypeError),
        (treadle._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(error, match="^two$"):
            check(False, lambda: "two")
    with pytest.raises(RuntimeError, match="^_check: expected the condition to hold$"):
        treadle._check(False)
    with pytest.raises(TypeError, match="^_check: expected cond to be a bool, got int$"):
        treadle._check(1)
    treadle._check_is_size(3, max=3)
    with pytest.raises(RuntimeError, match="^_check_is_size: expected a size of 0 or more, got -1"):
        treadle._check_is_size(-1)
    with pytest.raises(RuntimeError, match="^_check_is_size: expected at most 2, got 3$"):
        treadle._check_is_size(3, max=2)
    treadle._check_tensor_all(treadle.ones(2, dtype=treadle.bool))
    with pytest.raises(RuntimeError, match="^no$"):
        treadle._check_tensor_all(treadle.zeros(2, dtype=treadle.bool), lambda: "no")
    with pytest.raises(TypeError, match="^_check_tensor_all: expected a tensor of bools, got int$"):
        treadle._check_tensor_all(1)


def test_names_of_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    from treadle import distributed
    from treadle.distributed import constants, distributed_c10d

    assert distributed.ReduceOp.RedOpType.SUM is distributed.ReduceOp.SUM
    assert constants.default_pg_timeout == distributed_c10d.default_pg_timeout
    assert distributed_c10d.all_reduce is distributed.all_reduce
    assert distributed_c10d.Reducer is distributed.Reducer
    assert not distributed_c10d._rank_not_in_group(None)
    assert distributed_c10d._rank_not_in_group(distributed.GroupMember.NON_GROUP_MEMBER)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        distributed_c10d._get_default_group()
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert distributed.get_debug_level() is distributed.DebugLevel.DETAIL
    distributed.set_debug_level(distributed.DebugLevel.INFO)
    assert distributed.get_debug_level() is distributed.DebugLevel.INFO
    distributed.set_debug_level_from_env()
    assert distributed.get_debug_level() is distributed.DebugLevel.DETAIL
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(ValueError) as error:
        distributed.set_debug_level_from_env()
    message = "TORCH_DISTRIBUTED_DEBUG: expected OFF, INFO or DETAIL, got loud"
    assert str(error.value) == message
    distributed.set_debug_level(distributed.DebugLevel.OFF)


def test_modules_below_the_accelerator_without_a_device() -> None:
    import treadle.accelerator.memory
    import treadle.accelerator.random

    if treadle.accelerator.is_available():
        return
    assert treadle.accelerator.memory.memory_allocated() == 0
    treadle.accelerator.memory.reset_accumulated_memory_stats()
    treadle.accelerator.memory.empty_host_cache()
    message = "^accelerator.seed: expected a device beside the CPU, got none"
    for call, name in (
        (treadle.accelerator.random.seed, "seed"),
        (treadle.accelerator.Graph, "Graph"),
        (treadle.accelerator.get_device_capability, "get_device_capability"),
    ):
        with pytest.raises(RuntimeError, match=message.replace("seed", name)):
            call()


def test_tensors_in_one_piece_of_memory() -> None:
    from treadle import _utils

    parts = [treadle.ones(2, 3), treadle.zeros(4), treadle.full((1, 1), 2.0)]
    flat = _utils._flatten_dense_tensors(parts)
    assert flat.tolist() == [1.0] * 6 + [0.0] * 4 + [2.0]
    again = _utils._unflatten_dense_tensors(flat, parts)
    assert [part.shape for part in again] == [part.shape for part in parts]
    again[1][0] = 5.0
    assert flat[6].item() == 5.0
    mixed = [treadle.ones(2), treadle.ones(2, dtype=treadle.int64), treadle.zeros(3)]
    groups = list(_utils._take_tensors(mixed, 8))
    assert [[part.shape[0] for part in group] for group in groups] == [[2], [2], [3]]
    ordered = _utils._reorder_tensors_as([part for group in groups for part in group], mixed)
    assert all(one is other for one, other in zip(ordered, mixed))


def test_numbers_of_devices() -> None:
    from treadle import _utils

    assert _utils._get_device_index(3) == _utils._get_device_index("cuda:3") == 3
    assert _utils._get_device_index("cpu", allow_cpu=True) == -1
    with pytest.raises(
        ValueError, match="^_get_device_index: expected a device that is not the CPU, got cpu$"
    ):
        _utils._get_device_index("cpu")
    with pytest.raises(
        ValueError, match=r"^_get_device_index: expected a device with an index, got None$"
    ):
        _utils._get_device_index(None)
    assert _utils._element_size(treadle.float64) == 8
    with pytest.raises(RuntimeError, match="^_element_size: expected a dtype, got int$"):
        _utils._element_size(3)
    assert _utils._import_dotted_name("treadle.nn.Linear") is treadle.nn.Linear


def test_operators_that_are_keys_of_tables() -> None:
    aten = treadle.ops.aten
    table = {aten._pin_memory.default: "pin", aten._sparse_addmm.default: "addmm"}
    assert table[aten._pin_memory.default] == "pin" and aten._pin_memory is aten._pin_memory
    x = treadle.eye(2)
    done = aten._sparse_addmm(treadle.ones(2, 2), x, treadle.full((2, 2), 3.0), beta=2)
    assert done.tolist() == [[5.0, 5.0], [5.0, 5.0]]
    with pytest.raises(NotImplementedError, match="^_sparse_mm_reduce_impl: expected a sum"):
        aten._sparse_mm_reduce_impl(x, treadle.ones(2, 2), "sum")
    assert not hasattr(aten, "_no_such_operator")


def test_classes_of_the_extension_module() -> None:
    assert treadle._C.Value is treadle.Value and treadle._C.Graph is treadle.Graph
    assert isinstance(treadle.Tensor, treadle._C._TensorMeta)
    assert issubclass(treadle.jit.TracerWarning, Warning)
    assert treadle._C._functorch.is_batchedtensor(treadle.ones(1)) is False
    assert treadle.Future is treadle.futures.Future


def test_numbers_that_seed_a_worker() -> None:
    from treadle.utils.data._utils.worker import _generate_state

    # As PyTorch 2.15 draws them.
    assert _generate_state(0, 0) == [2968811710, 3677149159, 745650761, 2884920346]
    expected = [2677634501, 810098766, 226270600, 4115140591]
    assert _generate_state(12345678901234, 3) == expected


def test_functions_of_distributions() -> None:
    from treadle.distributions.transforms import _clipped_sigmoid

    ends = _clipped_sigmoid(treadle.tensor([-1e3, 0.0, 1e3]))
    assert 0 < ends[0] and ends[1] == 0.5 and ends[2] < 1


def test_switches_of_a_compiler_keep_what_they_are_given() -> None:
    module = treadle._C
    for exchange in (module._jit_set_profiling_executor, module._jit_set_profiling_mode):
        assert [exchange(False), exchange(True)] == [True, False]
    for kind in ("cpu", "gpu"):
        can_fuse = getattr(module, f"_jit_can_fuse_on_{kind}")
        set_it = getattr(module, f"_jit_override_can_fuse_on_{kind}")
        assert [can_fuse(), set_it(True), can_fuse(), set_it(False)] == [False, None, True, None]
    assert module._jit_texpr_fuser_enabled() is False
    module._jit_set_texpr_fuser_enabled(False)
    assert module._jit_texpr_fuser_enabled() is False


def test_an_exception_that_travels() -> None:
    from treadle._utils import ExceptionWrapper

    try:
        {}["missing"]
    except KeyError:
        caught = pickle.loads(pickle.dumps(ExceptionWrapper(where="in thread 3")))
    assert caught.exc_type is KeyError and caught.where == "in thread 3"
    with pytest.raises(KeyError) as error:
        caught.reraise()
    first, second, *_, last = str(error.value).strip().split("\n")
    assert first == "Caught KeyError in thread 3."
    assert second == "Original Traceback (most recent call last):" and last == "KeyError: 'missing'"
    # A type that takes no message alone, and one that would quietly end a loop.
    for kind in (UnicodeDecodeError, StopIteration):
        arguments = ("utf-8", b"a", 0, 1, "why") if kind is UnicodeDecodeError else ()
        try:
            raise kind(*arguments)  # type: ignore[arg-type]
        except kind:
            caught = ExceptionWrapper(sys.exc_info())
        with pytest.raises(RuntimeError, match="^Caught .* in background."):
            caught.reraise()


def test_pinned_memory_by_its_inner_name() -> None:
    from treadle.utils.data._utils.pin_memory import pin_memory

    assert pin_memory({"x": ["a", b"b"]}) == {"x": ["a", b"b"]}
    with pytest.raises(RuntimeError, match="^pin_memory: expected a device that copies"):
        pin_memory([treadle.ones(1)], "meta")


def test_operators_by_names_of_the_inside() -> None:
    aten = treadle.ops.aten
    x, w = treadle.arange(8.0).reshape(1, 2, 4), treadle.ones(1, 2, 3)
    found = aten._convolution(x, w, None, [1], [0], [1], False, [0], 1, False, False, True, True)
    assert found.tolist() == [[[18.0, 24.0]]]
    assert aten._unsafe_view(x, [2, 4]).shape == (2, 4)
    assert aten._is_all_true(treadle.tensor([True, False])).item() is False
    same, mask = aten.native_dropout(x, 0.5, False)
    assert treadle.equal(same, x) and mask.all()


def test_arguments_of_attention() -> None:
    q = treadle.ones(1, 1, 2, 4)
    params = treadle.backends.cuda.SDPAParams(q, q, q, None, 0.0, False, False)
    assert params.query is q and params.attn_mask is None and params.dropout == 0.0
    assert not treadle.backends.cuda.can_use_flash_attention(params, False)


def test_how_the_arguments_of_to_are_read() -> None:
    parse = treadle._C._nn._parse_to
    device, none = treadle.device("cpu"), (None, None, False, None)
    assert parse() == none and parse("cpu") == (device, None, False, None)
    assert parse(treadle.ones(1, dtype=treadle.int64), True) == (device, treadle.int64, True, None)
    assert parse(dtype=treadle.float16, memory_format=treadle.channels_last) == (
        None,
        treadle.float16,
        False,
        treadle.channels_last,
    )
    assert not hasattr(treadle._C._nn, "no_such_function")


def test_contexts_that_decorate() -> None:
    from treadle.utils._contextlib import (
        _DecoratorContextManager,
        _NoParamDecoratorContextManager,
        context_decorator,
    )

    seen: list[str] = []

    class Named(_DecoratorContextManager):
        def __init__(self, name: str) -> None:
            self.name = name

        def clone(self) -> "Named":
            return Named(self.name)

        def __enter__(self) -> None:
            seen.append(f"into {self.name}")

        def __exit__(self, *_: object) -> None:
            seen.append(f"out of {self.name}")

    @Named("a")
    def add(x: int, y: int = 1) -> int:
        seen.append("adds")
        return x + y

    @Named("b")
    def count() -> typing.Iterator[int]:
        try:
            got = yield 1
            seen.append(f"got {got}")
            yield 2
        except ValueError:
            yield 3

    assert add(1, y=2) == 3 and seen == ["into a", "adds", "out of a"]
    seen.clear()
    steps = count()
    assert next(steps) == 1
    assert seen == ["into b", "out of b"]  # not inside while the caller computes
    assert steps.send("x") == 2 and seen[2:] == ["into b", "got x", "out of b"]
    assert steps.throw(ValueError()) == 3 and list(steps) == []

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self) -> None:
            seen.append("in")

        def __exit__(self, *_: object) -> None:
            pass

    seen.clear()
    assert Plain(lambda: 5)() == 5 and seen == ["in"] and isinstance(Plain(), Plain)
    with pytest.raises(RuntimeError) as error:
        context_decorator(Plain, Plain)
    assert str(error.value) == (
        "context_decorator: expected a function, got the class Plain; decorate its methods"
    )


def test_tensors_of_a_module_are_swapped() -> None:
    from treadle.nn.utils._named_member_accessor import swap_tensor

    layer = treadle.nn.Linear(2, 2)
    layer.tag = 3
    weight, other = layer.weight, treadle.zeros(2, 2)
    assert swap_tensor(layer, "weight", other) is weight
    assert layer.weight is other and layer(treadle.ones(1, 2)).shape == (1, 2)
    for name, tensor, kind, message in (
        ("a.b", other, KeyError, "\"swap_tensor: expected a name without a dot, got 'a.b'\""),
        ("none", other, AttributeError, "swap_tensor: Linear has no attribute 'none'"),
        ("weight", 3, TypeError, "swap_tensor: expected a Tensor, got int"),
        ("tag", other, TypeError, "swap_tensor: expected 'tag' to be a Tensor, got int"),
    ):
        with pytest.raises(kind) as error:
            swap_tensor(layer, name, tensor)
        assert str(error.value) == message


def test_rows_of_sparse_matrices() -> None:
    rows = treadle.tensor([0, 0, 2, 3])
    starts = treadle._convert_indices_from_coo_to_csr(rows, 5)
    assert starts.tolist() == [0, 2, 2, 3, 4, 4] and starts.dtype == treadle.int64
    short = treadle._convert_indices_from_coo_to_csr(rows, 5, out_int32=True)
    assert short.dtype == treadle.int32
    columns = treadle.tensor([1, 3, 0, 2])
    back = treadle._convert_indices_from_csr_to_coo(starts, columns)
    assert back.tolist() == [rows.tolist(), columns.tolist()]
    turned = treadle._convert_indices_from_csr_to_coo(starts, columns, transpose=True)
    assert turned.tolist() == [columns.tolist(), rows.tolist()]
    assert treadle._shape_as_tensor(treadle.ones(3, 2)).tolist() == [3, 2]


def test_layouts_that_no_tensor_has() -> None:
    import copy
    import pickle

    for name in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"):
        layout = getattr(treadle, name)
        assert isinstance(layout, treadle.layout) and str(layout) == f"treadle.{name}"
        assert layout != treadle.ones(1).layout and copy.copy(layout) is layout
        assert pickle.loads(pickle.dumps(layout)) is layout


def test_elements_that_must_be_true() -> None:
    treadle._assert_async(treadle.tensor(True))
    treadle._assert_async(treadle.tensor([2]), "never shown")
    with pytest.raises(RuntimeError, match="^_assert_async: it is false$"):
        treadle._assert_async(treadle.tensor(False), "it is false")
    with pytest.raises(RuntimeError, match="^_assert_async: expected the value to be true, got 0$"):
        treadle._assert_async(treadle.tensor(0))
    with pytest.raises(RuntimeError, match="^_assert_async: expected one element, got 2$"):
        treadle._assert_async(treadle.ones(2))


def test_parts_of_the_text_of_a_tensor() -> None:
    from treadle import _tensor_str as text

    assert text._tensor_str(treadle.tensor([1, 2]), 7) == "[1, 2]"
    assert text._tensor_str(treadle.ones(0), 7) == "[]"
    shown = text._add_suffixes("Index([1, 2]", ["dim_size=3"], 6, False)
    assert shown == "Index([1, 2], dim_size=3)"
    assert text._str_intern(treadle.tensor([1]), tensor_contents="(x)") == "tensor((x))"
    assert text._str_intern(treadle.tensor([1])) == "tensor([1])"
    assert text.PRINT_OPTS.threshold == 1000


def test_what_asks_for_a_compiler() -> None:
    from treadle.utils._triton import has_triton

    from treadle import _VF, _guards, _jit_internal, _tensor

    assert _guards.active_fake_mode() is None and has_triton() is False
    assert _tensor.Tensor is treadle.Tensor is treadle._C.TensorBase
    assert _jit_internal._copy_to_script_wrapper(len) is len
    assert _VF.relu is treadle.relu and not hasattr(_VF, "no_such_function")
    found = treadle.accelerator.current_accelerator()
    assert treadle._C._get_accelerator() == (found or treadle.device("cpu"))
    assert treadle._C._are_functorch_transforms_active() is False


def test_bases_of_layers_that_pad() -> None:
    from treadle.nn.modules import padding

    for kind in ("Reflection", "Replication", "Circular"):
        base = getattr(padding, f"_{kind}PadNd")
        for number in (1, 2, 3):
            assert issubclass(getattr(treadle.nn, f"{kind}Pad{number}d"), base)
    assert not isinstance(treadle.nn.ReflectionPad1d(1), padding._ReplicationPadNd)


def test_names_beside_vmap() -> None:
    import functools

    from treadle._functorch import vmap

    assert vmap._get_name(test_names_beside_vmap) == "test_names_beside_vmap"
    assert vmap._get_name(functools.partial(max, 1)) == "functools.partial(max, ...)"
    assert vmap.vmap is treadle.vmap and vmap.Tensor is treadle.Tensor
    with pytest.raises(NotImplementedError, match="vmap computes each sample by itself"):
        vmap._add_batch_dim(treadle.ones(1), 0, 1)


def test_functions_that_need_other_processes() -> None:
    from treadle.distributed.rpc import _require_initialized

    @_require_initialized
    def call() -> None:
        raise AssertionError("it is not reached")

    with pytest.raises(RuntimeError) as error:
        call()
    message = "rpc: expected a call of init_rpc(), which does not exist here"
    assert str(error.value) == message
