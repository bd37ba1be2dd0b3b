"""AsyncCollectiveTensor: the result of a collective function that may still be under way. The first
operator that reads its elements waits; views of it do not.

    total = _functional_collectives.all_reduce(tensor, "sum", group)   # goes on beside the program
    rows = total.view(2, -1)                                           # does not wait
    print(rows.sum())                                                  # waits
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, Dict, List, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.autograd import Function
from treadle.distributed.work import Work
from treadle.utils._python_dispatch import return_and_correct_aliasing


class _Pending:
    """A call under way; its tensors, and views of them, share it."""

    def __init__(self, work: Optional[Work]) -> None:
        self._work = work
        self._lock = threading.Lock()

    def wait(self) -> None:
        with self._lock:
            if self._work is not None:
                self._work.wait()
                self._work = None

    @property
    def is_over(self) -> bool:
        return self._work is None


class AsyncCollectiveTensor(Tensor):
    """A tensor whose elements come when a collective function ends.

    `elem` is the tensor that the function fills. Operators get `elem`, when it is filled, and their
    results are usual tensors; views of this tensor are tensors of this class.
    """

    elem: Tensor
    _pending: _Pending

    @staticmethod
    def __new__(cls: Any, elem: Tensor, work: Any = None) -> AsyncCollectiveTensor:
        """`work` is the Work that fills `elem`; None where it is filled."""
        made = Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )
        made.elem = elem.detach() if elem.requires_grad else elem
        made._pending = work if isinstance(work, _Pending) else _Pending(work)
        return made

    @property
    def completed(self) -> bool:
        """Whether the program has waited for the elements."""
        return self._pending.is_over

    def trigger_wait(self) -> Tensor:
        """`elem`, when it is filled. Raises what went wrong in the call."""
        self._pending.wait()
        return self.elem

    def wait(self) -> Tensor:
        """The same as trigger_wait()."""
        return self.trigger_wait()

    def tolist(self) -> Any:
        return self.trigger_wait().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        return self.trigger_wait().numpy(force=force)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.trigger_wait().__array__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()})"

    def __tensor_flatten__(self) -> Tuple[List[str], Any]:
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner: Dict[str, Tensor], context: Any, size: Any, stride: Any) -> Any:
        if context is not None:
            raise ValueError(f"AsyncCollectiveTensor: expected no context, got {context!r}")
        return AsyncCollectiveTensor(inner["elem"])

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        kwargs = kwargs or {}
        first = args[0] if args else None
        if isinstance(first, AsyncCollectiveTensor) and _is_view(func):
            out = func(first.elem, *args[1:], **kwargs)
            return _wrapped(out, first._pending)
        out = func(*(_filled(a) for a in args), **{k: _filled(v) for k, v in kwargs.items()})
        return return_and_correct_aliasing(func, args, kwargs, out)


def _is_view(func: Any) -> bool:
    arguments = func._schema.arguments
    alias = arguments[0].alias_info if arguments else None
    return alias is not None and not alias.is_write


def _wrapped(out: Any, pending: _Pending) -> Any:
    if isinstance(out, Tensor):
        return AsyncCollectiveTensor(out, pending)
    return type(out)(_wrapped(each, pending) for each in out)


def _filled(value: Any) -> Any:
    """The value with the tensors that AsyncCollectiveTensors stand for."""
    if isinstance(value, AsyncCollectiveTensor):
        return value.trigger_wait()
    if isinstance(value, (list, tuple)):
        return type(value)(_filled(each) for each in value)
    return value


class _Wait(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return filled(tensor).detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad


def filled(tensor: Tensor) -> Tensor:
    """A usual tensor with the elements, without gradient where there was something to wait for."""
    return tensor.trigger_wait() if isinstance(tensor, AsyncCollectiveTensor) else tensor


def waited(tensor: Tensor) -> Tensor:
    """A usual tensor with the elements, whose gradient is that of `tensor`."""
    if not isinstance(tensor, AsyncCollectiveTensor):
        return tensor
    if tensor.requires_grad and _C.is_grad_enabled():
        return _Wait.apply(tensor)
    return tensor.trigger_wait()


__all__ = ["AsyncCollectiveTensor", "filled", "waited"]
