"""symbolic_trace with examples on the meta device: sizes and dtypes are known while a program is
traced, so that branches and loops over them go one way.

    traced = symbolic_trace(module, meta_args={"x": treadle.ones(2, 3, device="meta")})

The graph holds for the sizes of the examples.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from treadle import _C, _names, fx, nn
from treadle._C import Tensor
from treadle.fx._symbolic_trace import Tracer, _orig_module_call, _orig_module_getattr
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, map_aggregate
from treadle.fx.proxy import Proxy

# ---- what has another form on the meta device ----


def embedding_override(self: nn.Module, input: Tensor) -> Tensor:
    """The shape of an Embedding's result."""
    return _C.empty(*input.shape, self.weight.shape[-1], device="meta")


def nn_layernorm_override(self: nn.Module, input: Tensor) -> Tensor:
    """The shape of a LayerNorm's result: that of the input."""
    return input


def torch_relu_override(x: Tensor) -> Tensor:
    """The shape of relu: that of the input."""
    return x


def torch_nn_relu_override(self: nn.Module, x: Tensor) -> Tensor:
    """The shape of a ReLU's result: that of the input."""
    return x


def functional_relu_override(x: Tensor, inplace: bool = False) -> Tensor:
    """The shape of relu: that of the input. AssertionError where it is written in place."""
    if inplace:
        raise AssertionError("relu: expected inplace=False, got True: it writes a traced value")
    return x


def torch_where_override(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The shape of where: that of its arguments after broadcasting."""
    return condition.to("meta") + x.to("meta") + y.to("meta")


def torch_abs_override(input: Tensor, *, out: Optional[Tensor] = None) -> Tensor:
    """The shape of abs: that of the input. AssertionError for an `out`."""
    if out is not None:
        raise AssertionError("abs: expected no out, got one: it writes a traced value")
    return input


manual_meta_overrides: Dict[Any, Callable[..., Any]] = {
    nn.Embedding: embedding_override,
    nn.LayerNorm: nn_layernorm_override,
    _C.relu: torch_relu_override,
    nn.functional.relu: functional_relu_override,
    nn.ReLU: torch_nn_relu_override,
    _C.where: torch_where_override,
    _C.abs: torch_abs_override,
}


def gen_constructor_wrapper(target: Callable[..., Any]) -> Tuple[Callable[..., Any], Callable]:
    """A function that records a call of `target` where an argument is a stand-in, and calls it
    otherwise; and `target`."""

    @functools.wraps(target)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found = []
        map_aggregate((args, kwargs), lambda v: found.append(v) if isinstance(v, Proxy) else v)
        if not found:
            return target(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", target, args, kwargs)

    return wrapper, target


# ---- stand-ins with an example ----

_UNKNOWN = object()


class MetaProxy(Proxy):
    """A stand-in that may have an example on the meta device, whose sizes and dtype it gives."""

    def install_tensor_meta(self, tensor_meta: Any) -> None:
        """Set the example."""
        self.__dict__["_tensor_meta"] = tensor_meta

    def _known(self) -> Optional[Tensor]:
        found = self.__dict__.get("_tensor_meta")
        return found if isinstance(found, Tensor) else None

    def size(self, dim: Optional[int] = None) -> Any:
        """The sizes, or one of them."""
        known, wanted = self._known(), () if dim is None else (dim,)
        if known is not None:
            return known.size(*wanted)
        return self.tracer.create_proxy("call_method", "size", (self, *wanted), {})

    def dim(self) -> Any:
        """The number of dimensions."""
        known = self._known()
        if known is not None:
            return known.dim()
        return self.tracer.create_proxy("call_method", "dim", (self,), {})

    @property
    def shape(self) -> Any:
        """The sizes."""
        return self.size()

    @property
    def dtype(self) -> Any:
        """The dtype."""
        known = self._known()
        return MetaAttribute(self, "dtype") if known is None else known.dtype

    @property
    def device(self) -> Any:
        """A stand-in for the device, as that of the example is another."""
        return MetaDeviceAttribute(self, "device")

    def __getattr__(self, k: str) -> Any:
        return MetaAttribute(self, k)


class MetaAttribute(MetaProxy):
    """A stand-in for an attribute, which becomes a node when something asks for it."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr = root, attr
        self.tracer = root.tracer
        self._node: Optional[Node] = None

    @property
    def node(self) -> Node:
        """The node that reads the attribute."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class MetaDeviceAttribute(MetaAttribute):
    """A stand-in for the device of a value."""


def proxys_to_metas(v: Any) -> Any:
    """The example of a stand-in; another value as it is."""
    if isinstance(v, MetaDeviceAttribute):
        return "meta"
    if isinstance(v, Proxy):
        found = v.__dict__.get("_tensor_meta", _UNKNOWN)
        if found is _UNKNOWN:
            raise LookupError(f"expected an example for {v}, got none")
        return found
    return v


def _without_memory(value: Any) -> Any:
    is_tensor = isinstance(value, Tensor)
    return value.detach().to("meta") if is_tensor else value


@contextmanager
def _plain_modules() -> Iterator[None]:
    """A block in which modules run, rather than being recorded."""
    patched = nn.Module.__call__, nn.Module.__getattr__
    nn.Module.__call__, nn.Module.__getattr__ = (
        _orig_module_call,
        _orig_module_getattr,
    )
    try:
        yield
    finally:
        nn.Module.__call__, nn.Module.__getattr__ = patched


class MetaTracer(Tracer):
    """A tracer whose stand-ins have examples on the meta device, found by running each call on
    those of its arguments."""

    _TORCH_METHODS_TO_PATCH = ("arange", "zeros", "ones", "full_like", "eye", "empty", "full")

    meta_args: Dict[str, Any]

    def proxy(self, node: Node) -> MetaProxy:
        """The stand-in of a node."""
        return MetaProxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Tuple[Any, ...],
        kwargs: Dict[str, Any],
        name: Optional[str] = None,
        type_expr: Any = None,
        proxy_factory_fn: Optional[Callable[[Node], Proxy]] = None,
    ) -> Proxy:
        """The stand-in of a new node, with its example if those of its arguments are known."""
        made = super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)
        if kind == "placeholder":
            if target in self.meta_args:
                made.__dict__["_tensor_meta"] = _without_memory(self.meta_args[target])
            return made
        try:
            metas = map_aggregate((args, dict(kwargs)), proxys_to_metas)
        except LookupError:
            return made
        try:
            with _plain_modules():
                made.__dict__["_tensor_meta"] = self._example(kind, target, *metas)
        except Exception as error:  # noqa: BLE001  of whatever the program calls
            warnings.warn(f"fx: no example of {kind} {target}: {error}", stacklevel=2)
        return made

    def _example(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        from treadle import func

        if kind == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        if kind == "get_attr":
            value = self.root
            for part in str(target).split("."):
                value = getattr(value, part)
            return _without_memory(value)
        if kind == "call_module":
            layer = self.root.get_submodule(str(target))
            rule = manual_meta_overrides.get(type(layer))
            if rule is not None:
                return rule(layer, *args, **kwargs)
            state = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
            metas = {path: _without_memory(value) for path, value in state.items()}
            return func.functional_call(layer, metas, args, kwargs)
        if target in self._constructors and "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        return manual_meta_overrides.get(target, target)(*args, **kwargs)

    def trace(
        self,
        root: Any,
        meta_args: Optional[Dict[str, Any]] = None,
        concrete_args: Optional[Dict[str, Any]] = None,
    ) -> Graph:
        """The graph of a module or function, with examples of its arguments by name."""
        self.meta_args = dict(meta_args or {})
        package = _names.package()
        originals = {name: getattr(package, name) for name in self._TORCH_METHODS_TO_PATCH}
        self._constructors = set(originals.values())
        try:
            for name, function in originals.items():
                setattr(package, name, gen_constructor_wrapper(function)[0])
            return super().trace(root, concrete_args)
        finally:
            for name, function in originals.items():
                setattr(package, name, function)


def symbolic_trace(
    root: Any,
    meta_args: Optional[Dict[str, Any]] = None,
    concrete_args: Optional[Dict[str, Any]] = None,
) -> GraphModule:
    """A GraphModule of a module or function. `meta_args` are examples of its arguments, by name,
    `concrete_args` values that they always have."""
    graph = MetaTracer().trace(root, meta_args, concrete_args)
    is_module = isinstance(root, nn.Module)
    name = type(root).__name__ if is_module else root.__name__
    return fx.GraphModule(root if is_module else nn.Module(), graph, name)
