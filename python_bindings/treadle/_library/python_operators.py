"""Operators that are written in Python: nothing in the library calls them, and programs know them
by name, as the keys of a table of their own.

    treadle.ops.aten._pin_memory.default      # defined here when it is first asked for
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle._functions.older import native_dropout
from treadle._library.registration import Library
from treadle.profiler import _operators as ranges


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    return self.pin_memory()


def _is_pinned(self: Tensor, device: Any = None) -> bool:
    return self.is_pinned()


def _from_file(
    filename: str,
    shared: Optional[bool] = None,
    size: Optional[int] = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Optional[bool] = None,
) -> Tensor:
    from treadle.storage import from_file

    return from_file(
        filename, shared, size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory
    )


def _sparse_addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    return _C.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_mm_reduce_impl(self: Tensor, other: Tensor, reduce: str) -> Any:
    raise NotImplementedError(
        f"_sparse_mm_reduce_impl: expected a sum, which is mm(), got reduce = {reduce!r} of the "
        f"layout {self.layout}"
    )


def _convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Optional[List[int]],
    stride: List[int],
    padding: List[int],
    dilation: List[int],
    transposed: bool,
    output_padding: List[int],
    groups: int,
    output_mask: List[bool],
) -> Tuple[Tensor, Tensor, Tensor]:
    """The gradients of convolution() for its input, weight and bias; one that the mask leaves out
    is a tensor without elements."""
    from treadle._ops import ops

    count = grad_output.dim() - 2
    stride, padding, dilation = ((list(v) * count)[:count] for v in (stride, padding, dilation))
    left_out = grad_output.new_empty(0)
    grad_input = grad_weight = grad_bias = left_out
    if output_mask[0]:
        # Elements at the end of the input that strides step over have gradients, too.
        rest = [0] * count
        if not transposed:
            rest = [
                size - ((places - 1) * s - 2 * p + d * (kernel - 1) + 1)
                for size, places, kernel, s, p, d in zip(
                    input.shape[2:], grad_output.shape[2:], weight.shape[2:],
                    stride, padding, dilation,
                )
            ]  # fmt: skip
        grad_input = _C.convolution(
            grad_output, weight, None, stride, padding, dilation, not transposed, rest, groups
        )
    if output_mask[1]:
        moved, whole = (input, grad_output) if transposed else (grad_output, input)
        grad_weight = ops.aten._convolution_grad_weight(
            moved, whole, weight.shape, stride, padding, dilation, groups
        )
    if output_mask[2]:
        grad_bias = grad_output.sum([0, *range(2, 2 + count)])
    return grad_input, grad_weight, grad_bias


def _attention_backward_on_cpu(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Optional[Tensor] = None,
    scale: Optional[float] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """The gradients of _scaled_dot_product_flash_attention_for_cpu()."""
    from treadle._ops import ops

    if dropout_p:
        raise ValueError(
            "_scaled_dot_product_flash_attention_for_cpu_backward: expected dropout_p = 0, got "
            f"{dropout_p}"
        )
    if attn_mask is not None:
        attn_mask = attn_mask.expand(*query.shape[:-1], key.shape[-2])
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    return ops.aten._attention_backward(
        grad_out, query, key, value, attn_mask, out, logsumexp, 0.0, is_causal, scale, 0
    )


def _convolution(input: Tensor, weight: Tensor, bias: Any, *geometry: Any) -> Tensor:
    # The last four choose a kernel of PyTorch's.
    return _C.convolution(input, weight, bias, *geometry[:-4])


def _sum_out(
    self: Tensor, dim: Any, keepdim: bool = False, *, dtype: Any = None, out: Tensor
) -> Tensor:
    return _C.sum(self, dim, keepdim, dtype=dtype, out=out)


_WRITTEN: Dict[str, Tuple[str, Callable[..., Any]]] = {
    "aten::_convolution": (
        "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
        "bool transposed, int[] output_padding, int groups, bool benchmark, bool deterministic, "
        "bool cudnn_enabled, bool allow_tf32) -> Tensor",
        _convolution,
    ),
    "aten::_is_all_true": ("(Tensor self) -> Tensor", Tensor.all),
    "aten::_unsafe_view": ("(Tensor self, int[] size) -> Tensor", Tensor.reshape),
    "aten::from_file": (
        "(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        _from_file,
    ),
    "aten::is_pinned": ("(Tensor self, Device? device=None) -> bool", _is_pinned),
    "aten::native_dropout": (
        "(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
        lambda input, p, train: native_dropout(input, p, train),
    ),
    "aten::_pin_memory": ("(Tensor self, Device? device=None) -> Tensor", _pin_memory),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (
        "(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, "
        "float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> "
        "(Tensor grad_query, Tensor grad_key, Tensor grad_value)",
        _attention_backward_on_cpu,
    ),
    "aten::_sparse_addmm": (
        "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
        _sparse_addmm,
    ),
    "aten::_sparse_mm_reduce_impl": (
        "(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
        _sparse_mm_reduce_impl,
    ),
    "aten::convolution_backward": (
        "(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, "
        "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, "
        "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        _convolution_backward,
    ),
    # PyTorch's name of the form that the library has as sum.dim_IntList_out.
    "aten::sum.IntList_out": (
        "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, "
        "Tensor(a!) out) -> Tensor(a!)",
        _sum_out,
    ),
    "profiler::_record_function_enter": (
        "(str name, str? args=None) -> Tensor",
        ranges._record_function_enter,
    ),
    "profiler::_record_function_exit": ("(Tensor handle) -> ()", ranges._record_function_exit),
}
_libraries: Dict[str, Library] = {}


def define(qualified: str) -> bool:
    """Defines an operator that is written here, by its full name; whether there is one."""
    if qualified not in _WRITTEN:
        return False
    schema, function = _WRITTEN.pop(qualified)
    namespace, _, name = qualified.partition("::")
    if namespace not in _libraries:
        _libraries[namespace] = Library(namespace, "FRAGMENT")
    _libraries[namespace].define(name + schema)
    _libraries[namespace].impl(name, function, "CompositeImplicitAutograd")
    return True
