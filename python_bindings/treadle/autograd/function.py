"""Functions whose forward and backward are written in Python.

class Exp(treadle.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result

y = Exp.apply(x)
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable

from treadle import _C
from treadle.autograd.grad_mode import no_grad


class FunctionCtx(_C._FunctionContext):
    """What forward and backward of one call share. Any attribute may be set."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward, where they are ctx.saved_tensors."""
        if any(isinstance(t, _C.Tensor) and not issubclass(type(t), _C.Tensor) for t in tensors):
            # Sparse tensors are not of the class that can be kept.
            from treadle.sparse import parts_of

            self._rebuild_saved, tensors = parts_of(tensors)
        super().save_for_backward(*tensors)

    @property
    def saved_tensors(self) -> tuple:
        """The tensors given to save_for_backward()."""
        saved = super().saved_tensors
        rebuild = self.__dict__.get("_rebuild_saved")
        return saved if rebuild is None else rebuild(saved)

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for forward-mode differentiation; they are the same as for backward here."""
        self.saved_for_forward = tensors


def _refuse_both(name: str) -> Callable:
    def backward(*args: Any) -> Any:
        raise RuntimeError(
            f"{name}: expected one of backward and vjp, which are the same, got both"
        )

    return backward


class _FunctionMeta(type):
    """Says for each class how its forward wants to be called, once."""

    def __init__(cls, name: str, bases: tuple, namespace: dict) -> None:
        super().__init__(name, bases, namespace)
        cls._node_name = name + "Backward"
        cls._separate_setup = bool(bases) and cls.setup_context is not Function.setup_context
        if bases and cls.vjp is not Function.vjp:
            both = "backward" in namespace
            cls.backward = staticmethod(_refuse_both(name) if both else cls.vjp)


class Function(metaclass=_FunctionMeta):
    """Base of custom functions: define forward and backward as static methods, call `apply`."""

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self).__name__}: expected a call of .apply(...), got one of the class; "
            "forward and backward are static methods",
            DeprecationWarning,
            stacklevel=2,
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The result: forward(ctx, *args), or forward(*args) where setup_context is defined."""
        raise NotImplementedError("a custom function must define forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """Keep in `ctx` what backward needs."""
        raise NotImplementedError("setup_context is not defined")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient, or None, for each argument of forward."""
        raise NotImplementedError(
            "a custom function must define backward (or vjp, its other name) to be differentiated"
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The derivative along a direction, for forward mode; here it is found from backward."""
        raise NotImplementedError("a custom function must define jvp for forward mode")

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """The function over a batch; here each sample is computed by forward."""
        raise NotImplementedError("a custom function must define vmap to be called on a batch")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the function."""
        return _C._apply_function(cls, FunctionCtx(), cls._node_name, cls._separate_setup, args)


class InplaceFunction(Function):
    """A function that can be told to work in place; from the time of functions as objects."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def once_differentiable(backward: Callable) -> Callable:
    """For a backward that is not differentiable itself: going through it twice is an error."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            outputs = backward(ctx, *grads)
        recorded = _C.is_grad_enabled() and any(
            isinstance(g, _C.Tensor) and g.requires_grad for g in grads
        )
        if not recorded:
            return outputs
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        results = tuple(
            _C._undifferentiable(r, backward.__qualname__) if isinstance(r, _C.Tensor) else r
            for r in results
        )
        return results if isinstance(outputs, tuple) else results[0]

    return wrapper


__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
