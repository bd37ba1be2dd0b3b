"""Functions whose forward and backward are written in Python.

Example:

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

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterator

from treadle import _C
from treadle.autograd._parts import has_parts, taken_apart
from treadle.autograd.grad_mode import no_grad


class _InVmap(threading.local):
    depth = 0


in_vmap = _InVmap()


class FunctionCtx(_C._FunctionContext):
    """The object that forward and backward of one call share. Any attribute may be set."""

    output_grad_dtypes: Any = None
    saved_for_forward: Any = None

    _function: Any = None
    # Weak references: the node, which has this object, must not be kept by its own results.
    _dirty: Any = None
    _without_gradient: Any = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors for backward, where they are ctx.saved_tensors."""
        parts: Any = tensors
        if any(map(has_parts, tensors)):
            # Their parts are kept, and checked for writes.
            self._rebuild_saved, parts = taken_apart(tensors)
        super().save_for_backward(*parts)

    @property
    def to_save(self) -> Any:
        """The tensors given to save_for_backward(), after forward and as long as they are kept;
        None otherwise."""
        try:
            return super().saved_tensors or None
        except RuntimeError:
            return None

    @property
    def dirty_tensors(self) -> Any:
        """The tensors given to mark_dirty() that are still there; None where it was not called."""
        return _alive(self._dirty)

    @property
    def non_differentiable(self) -> Any:
        """The tensors given to mark_non_differentiable() that are still there; None where it was
        not called."""
        return _alive(self._without_gradient)

    @property
    def saved_tensors(self) -> tuple:
        """The tensors given to save_for_backward(); inside jvp, to save_for_forward(). RuntimeError
        for a second look where the function has clear_saved_tensors_on_access."""
        if _forward_mode.in_jvp:
            return self.saved_for_forward or ()
        if self._function is not None and self._function.clear_saved_tensors_on_access:
            if "_was_accessed" in self.__dict__:
                raise RuntimeError(
                    f"{self._function.__name__}: expected one access to saved_tensors, as "
                    "clear_saved_tensors_on_access says, got a second"
                )
            self._was_accessed = True
        saved = super().saved_tensors
        rebuild = self.__dict__.get("_rebuild_saved")
        return saved if rebuild is None else rebuild(saved)

    @property
    def saved_variables(self) -> tuple:
        """The older name of `saved_tensors`, with a warning."""
        warnings.warn(
            "ctx.saved_variables is deprecated; use ctx.saved_tensors",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for jvp, where they are ctx.saved_tensors."""
        self.saved_for_forward = tensors

    def maybe_clear_saved_tensors(self) -> None:
        """Does nothing: a pass that does not retain the graph frees what was saved behind it."""

    def mark_dirty(self, *args: Any) -> None:
        """Says that forward changed these arguments in place."""
        super().mark_dirty(*args)
        self._dirty = tuple(map(weakref.ref, args))

    def mark_non_differentiable(self, *args: Any) -> None:
        """Says that these outputs have no gradient."""
        super().mark_non_differentiable(*args)
        self._without_gradient = tuple(map(weakref.ref, args))

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing, and warns: which tensors share memory is known without it."""
        warnings.warn(
            "mark_shared_storage is deprecated: which tensors share memory is known",
            FutureWarning,
            stacklevel=2,
        )

    def set_output_grad_dtype(self, *dtypes: Any) -> None:
        """Says, once and for each output, in which dtype backward is given its gradient; None for
        the one that it has."""
        if self.output_grad_dtypes is not None:
            raise RuntimeError("set_output_grad_dtype: expected one call, got a second")
        for dtype in dtypes:
            if dtype is not None and not isinstance(dtype, _C.dtype):
                raise TypeError(
                    f"set_output_grad_dtype: expected dtypes or None, got {type(dtype).__name__}"
                )
        self.output_grad_dtypes = dtypes
        if self._function is not None and not hasattr(self._function.backward, "_casts"):
            self._function.backward = staticmethod(_in_dtypes(self._function.backward))

    def _set_materialize_grads(self, value: bool) -> None:
        self.set_materialize_grads(value)

    materialize_grads = property(None, _set_materialize_grads)

    def _set_materialize_non_diff_grads(self, value: bool) -> None:
        self.set_materialize_non_diff_grads(value)

    _materialize_non_diff_grads = property(None, _set_materialize_non_diff_grads)

    @property
    def input_grad_buffers(self) -> tuple:
        """For each argument of forward, None: the sum of its gradients so far is not handed out."""
        return (None,) * len(self.needs_input_grad)

    # ---- what is the node's: result.grad_fn has it, too ----

    @property
    def metadata(self) -> dict:
        """A dict for the program's own use."""
        return self.__dict__.setdefault("_metadata", {})

    @property
    def requires_grad(self) -> bool:
        """Whether an argument of forward requires grad."""
        return any(self.needs_input_grad)

    def name(self) -> str:
        """The name of the node: that of the class, with Backward behind it."""
        return self._function._node_name if self._function is not None else type(self).__name__

    def _refusal(self, asked: str) -> RuntimeError:
        return RuntimeError(
            f"ctx.{asked}: expected the node of the call, result.grad_fn, got the ctx of its "
            "forward, which is another object"
        )

    @property
    def next_functions(self) -> tuple:
        """RuntimeError: it is asked of the node, `result.grad_fn.next_functions`."""
        raise self._refusal("next_functions")

    def register_hook(self, hook: Callable) -> Any:
        """RuntimeError: it is asked of the node, `result.grad_fn.register_hook`."""
        raise self._refusal("register_hook")

    def register_prehook(self, hook: Callable) -> Any:
        """RuntimeError: it is asked of the node, `result.grad_fn.register_prehook`."""
        raise self._refusal("register_prehook")


def _alive(references: Any) -> Any:
    if references is None:
        return None
    return tuple(t for t in (reference() for reference in references) if t is not None)


def _in_dtypes(backward: Callable) -> Callable:
    """A backward whose gradients are in the dtypes that forward said."""

    @functools.wraps(backward)
    def cast(ctx: Any, *grads: Any) -> Any:
        wanted = ctx.output_grad_dtypes or (None,) * len(grads)
        if len(wanted) != len(grads):
            raise RuntimeError(
                f"set_output_grad_dtype: expected {len(grads)} dtypes, one for each output, got "
                f"{len(wanted)}"
            )
        pairs = zip(grads, wanted)
        return backward(ctx, *(g if g is None or d is None else g.to(d) for g, d in pairs))

    cast._casts = True  # type: ignore[attr-defined]
    return cast


def _boxed(backward: Callable) -> Callable:
    """A backward that is given all gradients in one list, so that it can let each go."""

    @functools.wraps(backward)
    def boxed(ctx: Any, *grads: Any) -> Any:
        return backward(ctx, list(grads))

    boxed._boxes = True  # type: ignore[attr-defined]
    return boxed


BackwardCFunction = FunctionCtx  # PyTorch's name for the class of what forward and backward share


def _refuse_both(name: str) -> Callable:
    def backward(*args: Any) -> Any:
        raise RuntimeError(
            f"{name}: expected one of backward and vjp, which are the same, got both"
        )

    return backward


# ---- forward mode --------------------------------------------------------------------------------
#
# It goes through backward twice (_derivatives.py): what backward makes of w, J^T w, is linear in w,
# and its derivative by w along u is J u. Where a class says itself what that is, in jvp, a gate
# takes the place of its backward: a node whose own backward is jvp. No value of J^T w is looked at.


class _ForwardMode(threading.local):
    on = False  # backward runs for forward mode
    in_jvp = False


_forward_mode = _ForwardMode()


@contextlib.contextmanager
def in_forward_mode() -> Iterator[None]:
    """In the block backward runs for forward mode: custom functions use their jvp."""
    before, _forward_mode.on = _forward_mode.on, True
    try:
        yield
    finally:
        _forward_mode.on = before


def _or_jvp(function: type, backward: Callable) -> Callable:
    """The backward of a class with a jvp."""

    @functools.wraps(backward)
    def chosen(ctx: Any, *grads: Any) -> Any:
        if not _forward_mode.on:
            return backward(ctx, *grads)
        return _gate().apply(function, ctx, *grads)

    return chosen


def _through_jvp(function: Any, ctx: Any, tangents: tuple) -> tuple:
    before = _forward_mode.on, _forward_mode.in_jvp
    _forward_mode.on, _forward_mode.in_jvp = False, True
    try:
        found = function.jvp(ctx, *tangents)
    finally:
        _forward_mode.on, _forward_mode.in_jvp = before
    return found if isinstance(found, tuple) else (found,)


@functools.lru_cache(maxsize=None)
def _gate() -> Any:
    class _Gate(Function):
        @staticmethod
        def forward(ctx: Any, function: Any, inner: Any, *grads: Any) -> tuple:
            ctx.function, ctx.inner = function, inner
            return tuple(
                None if like is None else _C.zeros(like[0], dtype=like[1], device=like[2])
                for like in inner._inputs_like
            )

        @staticmethod
        def backward(ctx: Any, *tangents: Any) -> tuple:
            return (None, None, *_through_jvp(ctx.function, ctx.inner, tangents))

    return _Gate


def _like(value: Any) -> Any:
    is_differentiable = isinstance(value, _C.Tensor) and (
        value.dtype.is_floating_point or value.dtype.is_complex
    )
    return (tuple(value.shape), value.dtype, value.device) if is_differentiable else None


class FunctionMeta(type):
    """Says for each class how its forward wants to be called, once."""

    if TYPE_CHECKING:  # of the classes
        setup_context: Any
        vjp: Any
        jvp: Any
        vmap: Any
        backward: Any
        boxed_grads_call: bool

    def __init__(cls, name: str, bases: tuple, attrs: dict) -> None:
        super().__init__(name, bases, attrs)
        cls._node_name = name + "Backward"
        derived = FunctionCtx not in bases
        cls._separate_setup = derived and cls.setup_context is not Function.setup_context
        if derived and cls.vjp is not Function.vjp:
            both = "backward" in attrs
            cls.backward = staticmethod(_refuse_both(name) if both else cls.vjp)
        cls._has_jvp = derived and cls.jvp is not Function.jvp
        if cls._has_jvp and ("backward" in attrs or "vjp" in attrs or "jvp" in attrs):
            cls.backward = staticmethod(_or_jvp(cls, cls.backward))
        cls._has_vmap = derived and cls.vmap is not Function.vmap
        if derived and cls.boxed_grads_call and not hasattr(cls.backward, "_boxes"):
            cls.backward = staticmethod(_boxed(cls.backward))
        # Not the class itself, whose attributes are not those of a call.
        cls._ctx_class = type(cls._node_name, (FunctionCtx,), {"_function": cls})


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of custom functions: define forward and backward as static methods, call `apply`."""

    generate_vmap_rule = False

    # Whether saved_tensors may be asked for once only.
    clear_saved_tensors_on_access = False

    # Whether backward is given the gradients of all outputs in one list.
    boxed_grads_call = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self).__name__}: expected a call of .apply(...), got one of the class; "
            "forward and backward are static methods",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: expected forward as a static method, called by .apply(...); "
            "functions that are objects are not supported"
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
        """The derivative of each output along a direction, given as one tangent for each argument
        of forward (None for one that is no tensor): what forward mode uses. Without it that is
        found from backward."""
        raise NotImplementedError("a custom function must define jvp for forward mode")

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """The function over a batch. It is not called: each sample is computed by forward, and the
        first of a class that has it warns."""
        raise NotImplementedError("a custom function must define vmap to be called on a batch")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the function."""
        if cls._separate_setup:
            # setup_context is given what forward takes by default, too.
            bound = inspect.signature(cls.forward).bind(*args)
            bound.apply_defaults()
            args = bound.args
        ctx = cls._ctx_class()
        if cls._has_jvp:
            ctx._inputs_like = [_like(arg) for arg in args]
        if cls._has_vmap and in_vmap.depth:
            cls._has_vmap = False
            warnings.warn(
                f"{cls.__name__}.vmap is not called: vmap computes each sample by forward (this is "
                "said once)",
                stacklevel=2,
            )
        return _C._apply_function(cls, ctx, cls._node_name, cls._separate_setup, args)


class InplaceFunction(Function):
    """A function that can be told to work in place; from the time of functions as objects."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """A function of nested containers of tensors, from the time of functions as objects. Calling
    one raises RuntimeError, as apply() takes tensors."""

    def forward_extended(self, *args: Any) -> Any:
        """The result, of a subclass."""
        raise NotImplementedError("a function of containers must define forward_extended")

    def backward_extended(self, *grad_output: Any) -> Any:
        """The gradients, of a subclass."""
        raise NotImplementedError("a function of containers must define backward_extended")

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: expected a function with static forward and backward, called "
            "by apply(...), got one that is an object"
        )


def once_differentiable(fn: Callable) -> Callable:
    """For a backward that is not differentiable itself: going through it twice is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *grads)
        recorded = _C.is_grad_enabled() and any(
            isinstance(g, _C.Tensor) and g.requires_grad for g in grads
        )
        if not recorded:
            return outputs
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        results = tuple(
            _C._undifferentiable(r, fn.__qualname__) if isinstance(r, _C.Tensor) else r
            for r in results
        )
        return results if isinstance(outputs, tuple) else results[0]

    return wrapper


__all__ = [
    "Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable",
]  # fmt: skip
