"""Arguments that once had no effect: each does what it says, or is refused with the reason."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle import nn
from treadle.autograd import Function, forward_ad, gradcheck, gradgradcheck
from treadle.autograd.gradcheck import GradcheckError
from treadle.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled

CL = treadle.channels_last


def message_of(error: type, call: Callable, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(error) as raised:
        call(*args, **kwargs)
    return str(raised.value)


# ---- memory formats ----------------------------------------------------------------------------


def test_modules_take_memory_formats() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv3d(2, 5, 2), nn.Linear(2, 2))
    net[0](treadle.randn(1, 3, 5, 5)).sum().backward()
    before = {name: value.detach().clone() for name, value in net.state_dict().items()}
    assert net.to(memory_format=CL) is net
    assert net[0].weight.is_contiguous(memory_format=CL)
    assert net[0].weight.grad.is_contiguous(memory_format=CL)
    assert net[1].weight.is_contiguous() and net[2].weight.is_contiguous()
    net.to("cpu", treadle.float64, memory_format=treadle.channels_last_3d)
    assert net[1].weight.is_contiguous(memory_format=treadle.channels_last_3d)
    net.to(memory_format=treadle.contiguous_format)
    assert all(value.is_contiguous() for value in net.parameters())
    for name, value in net.state_dict().items():
        treadle.testing.assert_close(value.float(), before[name])
    assert message_of(TypeError, net.to, memory_format=3) == (
        "Module.to: expected a memory format, got int"
    )


@pytest.mark.parametrize(
    "name",
    "float double half bfloat16 int long short char byte bool cfloat cdouble cpu".split(),
)
def test_conversions_take_memory_formats(name: str) -> None:
    for source in (treadle.ones(2, 3, 4, 5), treadle.ones(2, 3, 4, 5, dtype=treadle.int16)):
        convert = getattr(source, name)
        assert convert(memory_format=CL).stride() == (60, 1, 15, 3)
        turned = getattr(source.to(memory_format=CL), name)
        assert turned().stride() == (60, 1, 15, 3)
        assert turned(memory_format=treadle.contiguous_format).stride() == (60, 20, 5, 1)


# ---- gradcheck ---------------------------------------------------------------------------------


class Square(Function):
    """x^2 y, whose jvp can be wrong."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any, n: int, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        return x * x * y, x + y

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        x, y = ctx.saved_tensors
        return 2 * x * y * first + second, None, x * x * first + second

    @staticmethod
    def jvp(ctx: Any, x_t: Any, n_t: Any, y_t: Any) -> Any:
        x, y = ctx.saved_tensors
        assert n_t is None
        return Square.factor * (2 * x * y * x_t + x * x * y_t), x_t + y_t

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise AssertionError("is not called")


def leaves(*sizes: int) -> tuple:
    generator = treadle.Generator().manual_seed(2)
    return tuple(
        treadle.randn(n, dtype=treadle.float64, generator=generator).requires_grad_() for n in sizes
    )


def square(x: Any, y: Any) -> Any:
    return Square.apply(x.sin(), 3, y.exp())


@pytest.fixture
def wrong_jvp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Square, "factor", 2.0)


def test_forward_mode_is_checked() -> None:
    options = {"check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(square, leaves(2, 2), check_forward_ad=True, **options)
    assert gradgradcheck(square, leaves(2, 2), check_fwd_over_rev=True, check_batched_grad=True)
    numbers = treadle.randn(2, dtype=treadle.complex128, requires_grad=True)
    assert gradcheck(lambda c: (c * c.conj() * c, c.abs()), numbers, check_forward_ad=True)
    assert gradcheck(lambda x: x[:0].exp(), leaves(2)[0], check_forward_ad=True)


def test_a_wrong_jvp_is_found(wrong_jvp: None) -> None:
    inputs = leaves(2, 2)
    assert gradcheck(square, inputs)
    assert "Jacobian mismatch in forward mode for output 0 with respect to input 0" in message_of(
        GradcheckError, gradcheck, square, inputs, check_forward_ad=True
    )
    options = {"check_forward_ad": True, "raise_exception": False}
    assert gradcheck(square, inputs, check_backward_ad=False, **options) is False


class OnesWithoutAGradient(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return treadle.ones(2, dtype=treadle.float64) if grad is None else 2 * grad


def test_a_gradient_out_of_none_is_found() -> None:
    assert gradcheck(OnesWithoutAGradient.apply, leaves(2), check_undefined_grad=False)
    assert message_of(GradcheckError, gradcheck, OnesWithoutAGradient.apply, leaves(2)) == (
        "Expected undefined gradients to be treated as zeros, but the gradient of input 0 is "
        "another where no output is given one"
    )


class WrongBackward(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * grad

    @staticmethod
    def jvp(ctx: Any, x_t: Any) -> Any:
        return 2 * x_t


def test_backward_is_checked_where_that_is_asked_for() -> None:
    (x,) = leaves(2)
    assert gradcheck(WrongBackward.apply, x, check_backward_ad=False, check_forward_ad=True)
    assert not gradcheck(WrongBackward.apply, x, raise_exception=False)


class BatchDependent(Function):
    """Its backward gives other numbers each time, but for those of the two Jacobians and the call
    without a gradient."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        BatchDependent.calls += 1
        return 2 * grad + (BatchDependent.calls if BatchDependent.calls > 5 else 0)


def test_batches_of_gradients_are_checked() -> None:
    (x,) = leaves(2)
    assert gradcheck(BatchDependent.apply, x)
    BatchDependent.calls = 0
    assert "a batch gives other derivatives of output 0 with respect to input 0" in message_of(
        GradcheckError, gradcheck, BatchDependent.apply, x, check_batched_grad=True
    )


def test_options_that_leave_nothing_to_check() -> None:
    (x,) = leaves(2)
    for options, message in (
        (
            {"check_backward_ad": False},
            "gradcheck: expected check_forward_ad or check_backward_ad to be True, got False",
        ),
        (
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            "gradcheck: expected check_backward_ad beside check_batched_grad to be True, got False",
        ),
        (
            {"check_batched_forward_grad": True},
            "gradcheck: expected check_forward_ad beside check_batched_forward_grad to be True, "
            "got False",
        ),
    ):
        assert message_of(AssertionError, gradcheck, treadle.exp, x, **options) == message


# ---- custom functions and transforms -----------------------------------------------------------


def test_forward_mode_calls_jvp(wrong_jvp: None) -> None:
    x, y = leaves(3, 3)
    with forward_ad.dual_level():
        out, other = Square.apply(forward_ad.make_dual(x, treadle.ones_like(x)), 1, y)
        tangents = [forward_ad.unpack_dual(t).tangent for t in (out, other)]
    treadle.testing.assert_close(tangents[0], 4 * x * y)
    treadle.testing.assert_close(tangents[1], treadle.ones_like(x))
    jacobian = treadle.func.jacfwd(lambda x: Square.apply(x, 1, y)[0])(x)
    treadle.testing.assert_close(jacobian, treadle.diag(4 * x * y))


def test_vmap_says_once_that_a_rule_is_not_called() -> None:
    class Own(Square):
        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            raise AssertionError("is not called")

    x, y = leaves(3, 3)
    with pytest.warns(UserWarning) as warned:
        for _ in range(2):
            found = treadle.vmap(lambda x, y: Own.apply(x, 1, y)[0])(x, y)
    treadle.testing.assert_close(found, x * x * y)
    assert [str(w.message) for w in warned] == [
        "Own.vmap is not called: vmap computes each sample by forward (this is said once)"
    ]


def test_randomness_of_jacfwd() -> None:
    def noisy(x: Any) -> Any:
        return x * treadle.rand(())

    x = treadle.ones(2)
    assert message_of(RuntimeError, treadle.func.jacfwd(noisy), x) == (
        "jacfwd: called random operation while in randomness error mode; use another randomness, "
        "or draw the numbers outside of jacfwd"
    )
    found = treadle.func.jacfwd(noisy, randomness="same")(x)
    assert found[0, 0] == found[1, 1] and found[0, 1] == 0
    assert message_of(NotImplementedError, treadle.func.jacfwd, noisy, randomness="different") == (
        "jacfwd: expected randomness to be 'error' or 'same', got 'different': the function is "
        "called once for all directions"
    )


def test_levels_of_forward_mode() -> None:
    x = treadle.ones(2)
    with forward_ad.dual_level() as level:
        dual = forward_ad.make_dual(x, x, level=level)
        assert forward_ad.unpack_dual(dual, level=level).tangent is x
        for call, name in (
            (lambda: forward_ad.make_dual(x, x, level=1), "make_dual"),
            (lambda: forward_ad.unpack_dual(x, level=1), "unpack_dual"),
            (lambda: forward_ad.exit_dual_level(level=1), "exit_dual_level"),
        ):
            expected = f"{name}: expected level 0, the only one, or None, got 1"
            assert message_of(ValueError, call) == expected


# ---- checkpoints, profiles, files --------------------------------------------------------------


def test_debugging_of_checkpoints_is_refused() -> None:
    x = treadle.ones(2, requires_grad=True)
    assert message_of(
        NotImplementedError, checkpoint, treadle.exp, x, use_reentrant=False, debug=True
    ) == (
        "checkpoint: expected debug=False, got True: the operators of the two runs are not "
        "recorded; errors name the tensors that differ"
    )
    with set_checkpoint_debug_enabled(False), set_checkpoint_debug_enabled(None):
        pass
    assert message_of(
        NotImplementedError, lambda: set_checkpoint_debug_enabled(True).__enter__()
    ) == (
        "set_checkpoint_debug_enabled: expected False or None, got True: the operators of the two "
        "runs are not recorded"
    )


@pytest.mark.parametrize(
    "name", ["experimental_config", "execution_trace_observer", "custom_trace_id_callback"]
)
def test_parts_of_a_profile_that_are_not_recorded(name: str) -> None:
    assert message_of(NotImplementedError, treadle.profiler.profile, **{name: {}}) == (
        f"profile: expected {name} = None, got dict: what it asks for is not recorded"
    )


def test_groups_of_a_profile_by_overload() -> None:
    with treadle.profiler.profile() as prof:
        treadle.ones(2)
    assert message_of(NotImplementedError, prof.key_averages, group_by_overload_name=True) == (
        "key_averages: expected group_by_overload_name=False, got True: events have the names of "
        "operators without their overloads"
    )


def test_ways_to_open_a_file(tmp_path: Any) -> None:
    from treadle.utils import safetensors

    path = tmp_path / "x.safetensors"
    safetensors.save_file({"x": treadle.ones(2)}, path)
    with safetensors.safe_open(path, "pt", backend="mmap") as file:
        assert file.get_tensor("x").tolist() == [1, 1]
    assert (
        message_of(safetensors.SafetensorError, safetensors.safe_open, path, "pt", backend="gds")
        == "safe_open: expected backend = 'mmap', got 'gds'"
    )


# ---- memory ------------------------------------------------------------------------------------


def test_pinned_memory_needs_a_device() -> None:
    expected = "pin_memory: expected a device that copies from the memory of the CPU, got none"
    assert message_of(RuntimeError, treadle.ones(2).pin_memory) == expected
    assert message_of(RuntimeError, treadle.tensor, [1.0], pin_memory=True) == expected
    assert message_of(RuntimeError, treadle.ones(2).pin_memory, "cuda") == (
        "pin_memory: expected a device that copies from the memory of the CPU, got cuda"
    )
    assert treadle.tensor([1.0], pin_memory=False).tolist() == [1]


MANY_FILES = """
import resource, warnings
resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))
import treadle.multiprocessing as mp, treadle
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    mp.set_sharing_strategy("file_system")
assert mp.get_sharing_strategy() == "file_system"
print(*(w.message for w in warned))
kept = [treadle.ones(1).share_memory_() for _ in range({count})]
"""


def test_a_sharing_strategy_for_many_tensors() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    def run(hard: int, count: int) -> str:
        program = MANY_FILES.format(hard=hard, count=count)
        command = [sys.executable, "-c", program]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert run(hard, 200) == ""
    assert run(100, 3) == (
        "set_sharing_strategy: each shared tensor is an open file here, and this process may have "
        "100 of them; raise the limit with `ulimit -Hn`"
    )


# ---- compilers ---------------------------------------------------------------------------------

SAYINGS = {
    "treadle.compile(f)": "compile: {}",
    "treadle.compile(f, fullgraph=True)": "compile: {}; fullgraph=True finds no breaks",
    "treadle.jit.script(f)": "jit.script: {}, and what comes back is what was given, without "
    "save(), code and graph",
    "treadle.jit.trace(f, treadle.ones(1))": "jit.trace: {}, and what comes back is what was "
    "given, without save(), code and graph; both ways of an `if` stay",
    "treadle.compile(f, disable=True)": None,
}


@pytest.mark.parametrize("call", SAYINGS)
def test_compilers_say_once_that_programs_run_as_written(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treadle import _as_written

    monkeypatch.setattr(_as_written, "_said", False)
    names = {"treadle": treadle, "f": lambda x: x + 1, "mine": lambda graph, inputs: graph}
    exec("def mine(graph, inputs): return graph", names)
    import warnings

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(2):
            eval(call, names)
    body = "there is no compiler here, so that the program runs as it is written"
    expected = SAYINGS[call]
    assert [str(w.message) for w in warned] == (
        [] if expected is None else [expected.format(body) + " (this is said once)"]
    )


@pytest.mark.filterwarnings("ignore:jit.script")
@pytest.mark.parametrize("name", ["save", "code", "graph"])
def test_what_a_scripted_module_lacks(name: str) -> None:
    net = treadle.jit.script(nn.Linear(2, 2))
    assert message_of(AttributeError, getattr, net, name) == (
        f"'Linear' object has no attribute '{name}': jit.script and jit.trace give the module "
        "itself, which has no compiled form; jit.save(module, path) saves it"
    )
    assert message_of(AttributeError, getattr, nn.Linear(2, 2), name) == (
        f"'Linear' object has no attribute '{name}'"
    )


def test_a_script_module_saves_itself() -> None:
    file = io.BytesIO()

    treadle.jit.ScriptModule().save(file)
    assert file.getvalue()


# ---- exchange ----------------------------------------------------------------------------------


def test_from_dlpack() -> None:
    array = np.arange(3.0)
    shared = treadle.from_dlpack(array, device="cpu", copy=False)
    own = treadle.utils.dlpack.from_dlpack(array, copy=True)
    array[0] = 7
    assert shared[0] == 7 and own[0] == 0
    assert treadle.from_dlpack(array, device="meta").is_meta
    assert message_of(BufferError, treadle.from_dlpack, array, device="meta", copy=False) == (
        "from_dlpack: expected device cpu without a copy, got meta"
    )


# ---- names of arguments ------------------------------------------------------------------------


def test_names_of_split() -> None:
    x = treadle.arange(6)
    parts = treadle.split(tensor=x, split_size_or_sections=4, dim=0)
    assert [p.tolist() for p in parts] == [[0, 1, 2, 3], [4, 5]] and parts[0]._base is x
    assert [len(p) for p in treadle.split(x, split_size_or_sections=[1, 5])] == [1, 5]


def test_reversed() -> None:
    x = treadle.arange(6).reshape(3, 2)
    assert isinstance(reversed(x), treadle.Tensor) and reversed(x).tolist() == x.tolist()[::-1]
    number = treadle.tensor(3)
    assert reversed(number) is number


def test_dim_order_may_refuse_what_is_ambiguous() -> None:
    x = treadle.ones(2, 3, 4, 5)
    assert x.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    assert x.to(memory_format=CL).dim_order(ambiguity_check=True) == (0, 2, 3, 1)
    one = treadle.ones(2, 1, 4, 5)
    assert one.dim_order() == (0, 1, 2, 3)
    for check in (True, [treadle.contiguous_format, CL]):
        assert message_of(RuntimeError, one.dim_order, ambiguity_check=check) == (
            "The tensor does not have unique dim order, or cannot map to exact one of the given "
            "memory formats."
        )
    assert one.dim_order(ambiguity_check=[CL]) == (0, 1, 2, 3)
    for check in (3, ["channels_last"]):
        assert message_of(TypeError, one.dim_order, ambiguity_check=check) == (
            "The ambiguity_check argument must be a bool or a list of memory formats."
        )


# ---- sparse tensors ----------------------------------------------------------------------------


def test_arguments_of_sparse_tensors() -> None:
    x = treadle.eye(2)
    assert message_of(RuntimeError, x.to_sparse, blocksize=(1, 1)) == (
        "to_sparse: expected no blocksize for a tensor without blocks, got one"
    )
    assert (
        message_of(
            NotImplementedError, treadle.sparse_coo_tensor, [[0]], [1.0], (2,), pin_memory=True
        )
        == "sparse_coo_tensor: expected pin_memory=False, got True"
    )
    sparse = x.to_sparse().requires_grad_()
    assert message_of(NotImplementedError, sparse.to_dense, masked_grad=False) == (
        "to_dense: expected masked_grad=True, got False: gradients flow to entries alone"
    )


def test_outputs_that_change_their_form_with_the_inputs() -> None:
    (x,) = leaves(1)
    x.data.fill_(1)

    def longer(x: treadle.Tensor) -> treadle.Tensor:
        return treadle.cat((x, x)) if (x >= 1).all() else x

    def narrower(x: treadle.Tensor) -> treadle.Tensor:
        return x.to(treadle.float32) if (x >= 1).all() else x

    start = "gradcheck: expected a function whose output 0 has "
    for raises in (True, False):
        assert message_of(AssertionError, gradcheck, longer, x, raise_exception=raises) == (
            start + "shape (2,) when an input is changed a little, too, got (1,)"
        )
        assert message_of(AssertionError, gradcheck, narrower, x, raise_exception=raises) == (
            start + f"dtype {treadle.float32} when an input is changed a little, too, got "
            f"{treadle.float64}"
        )
