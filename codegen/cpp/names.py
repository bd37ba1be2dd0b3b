"""How the arguments and results of an operator are called in C++."""

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
# What the templates call their variables, and functions that they call beside the arguments.
LOCALS = frozenset(
    "add_edges any_defined any_backend as_list as_view as_views below boxed before bump_versions call "
    "call_below call_kernel cast check_in_place common_device copy_to_out copy_to_outs "
    "copy_to_self count_decomposed device dispatch dispatch_below dtype_of fail grads guarded "
    "has_edge input_grads kept_for_backward kernel kernel_or_boxed make_intrusive name names "
    "nested no_kernel none object op or_zeros out parts pointwise pointwise_inplace pointwise_out "
    "put rebase_history rebase_undifferentiable recorded records reduce reduce_out reject_out "
    "require_mode require_tensors result results returned run set_history should_compute size_at "
    "spec with_requires_grad wrap".split()
)


# The types of arguments, which a parameter before them would hide.
TYPES = frozenset(
    "Device DoubleList Generator IntList Layout MemoryFormat OptionalIntList Scalar ScalarList "
    "ScalarType Tensor TensorList bool int64_t".split()
)


def plain_name(name: str) -> str:
    """The name of an argument in a declaration, where little is in its way."""
    return name + "_" if name in KEYWORDS or name in TYPES or name == "dispatch" else name


def cpp_name(name: str) -> str:
    """The name of an argument in the code of a function, among its variables."""
    return name + "_" if name in LOCALS else plain_name(name)


def output_name(name: str) -> str:
    """The name of a result or of where it is written, of which the templates know `out`."""
    return name if name in ("out", "result") else cpp_name(name)
