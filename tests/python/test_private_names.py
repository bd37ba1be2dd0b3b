"""Names beside the public ones that packages for PyTorch use when they are imported."""

from __future__ import annotations

import enum
import os
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
    with pytest.raises(NotImplementedError, match="^_sparse_mm_reduce_impl: expected a matrix by"):
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


def test_arguments_of_attention() -> None:
    q = treadle.ones(1, 1, 2, 4)
    params = treadle.backends.cuda.SDPAParams(q, q, q, None, 0.0, False, False)
    assert params.query is q and params.attn_mask is None and params.dropout == 0.0
    assert not treadle.backends.cuda.can_use_flash_attention(params, False)
