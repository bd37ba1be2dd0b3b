"""How the arguments and results of an operator are called in C++."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval "
    "constexpr constinit continue decltype default delete do double dynamic_cast else enum "
    "explicit export extern false float for friend goto if inline int long mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires return short signed sizeof static static_assert static_cast struct "
    "switch template this thread_local throw true try typedef typeid typename union unsigned "
    "using virtual void volatile wchar_t while xor xor_eq".split()
)
# The types of arguments and results, which a parameter before them would hide.
SIGNATURE_TYPES = frozenset(
    "Device DoubleList Generator IntList Layout MemoryFormat OptionalIntList Scalar "
    "ScalarList ScalarType Tensor TensorList bool int64_t".split()
)
# The variables of the templates, and the functions and types that they use beside the arguments.
LOCALS = frozenset(
    "BoxedKernel Cast ExcludeLayers IntrusivePtr Layer LayerCall Node Output Policies Policy "
    "Signature UndifferentiableNode ZeroGradientNode active add_edges any_backend any_defined "
    "as_list as_view as_views before below boxed bump_versions call call_below call_kernel cast "
    "check_in_place common_device common_device_of_read copy_to_out copy_to_outs copy_to_self "
    "count count_decomposed device dispatch dispatch_below dtype_of fail grad_enabled grads "
    "guarded has_edge i inference_enabled input_grads kCPU kept_for_backward kernel "
    "kernel_or_boxed make_intrusive name names nested no_kernel none numbers object op or_zeros "
    "out parts pointwise pointwise_inplace pointwise_out put rebase_history "
    "rebase_undifferentiable recorded records reduce reduce_out reject_out require_mode "
    "require_outs_apart require_tensors requires_grad result results returned run set_history "
    "should_compute size_at spec views with_requires_grad wrap".split()
)


def plain_name(name: str) -> str:
    """The name of an argument in a declaration, where little is in its way."""
    return name + "_" if name in KEYWORDS or name in SIGNATURE_TYPES or name == "dispatch" else name


def cpp_name(name: str) -> str:
    """The name of an argument in the code of a function, among its variables."""
    numbered = name.startswith("out_") and name[4:].isdigit()  # the outputs of structured operators
    return name + "_" if name in LOCALS or numbered else plain_name(name)


def output_name(name: str) -> str:
    """The name of a result or of where it is written, of which the templates know `out`."""
    return name if name in ("out", "result") else cpp_name(name)
