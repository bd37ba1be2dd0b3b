"""Tracer: calls a program with stand-ins and keeps what they record as a graph.

A module of treadle.nn is a leaf: a call of it is one node. Other modules are traced through. While
a program is traced, nn.Module's reading of attributes and calls, and the functions that wrap()
names, are replaced by ones that record.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import math
from types import FunctionType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, Union

from treadle import _C, nn
from treadle._C import Tensor
from treadle.functional import _assert
from treadle.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Argument, map_aggregate
from treadle.fx.proxy import (
    ParameterProxy,
    Proxy,
    Scope,
    ScopeContextManager,
    TracerBase,
    _MutableScope,
)
from treadle.utils import _pytree as pytree

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_orig_module_call: Callable = nn.Module.__call__
_orig_module_getattr: Callable = nn.Module.__getattr__

_is_tracing = False

# Functions to record, as pairs: the globals of the module that calls one, and its name there.
_wrapped_fns_to_patch: Dict[Tuple[int, str], dict] = {}
_wrapped_methods_to_patch: List[Tuple[type, str]] = []

_proxyable_classes: Dict[type, None] = {}


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return _is_tracing


def is_fx_symbolic_tracing() -> bool:
    """Whether a program is being traced."""
    return _is_tracing


class PHBase:
    """The stand-in in `concrete_args` for a leaf that stays an argument of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """Such a leaf, with attributes that its node takes over."""

    def __init__(self, ph_key: Optional[str] = None) -> None:
        super().__init__()
        self.ph_key = ph_key


class ProxyableClassMeta(type):
    """The type of classes whose objects may be made while a program is traced: making one with
    stand-ins among its arguments becomes a node."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        if not is_fx_tracing():
            cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
            return instance
        found: List[Proxy] = []

        def look(value: Any) -> Any:
            if isinstance(value, Proxy):
                found.append(value)
            return value

        map_aggregate(args, look)
        map_aggregate(kwargs, look)
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
        return instance


class Patcher:
    """Replaces attributes and entries until its block ends."""

    def __init__(self) -> None:
        self._undo: List[Callable[[], None]] = []
        self.visited: Set[int] = set()

    def patch(self, frame_dict: Dict[str, Any], name: str, new_fn: Callable) -> None:
        """Replace an entry of a dictionary of globals; a builtin is added."""
        if name in frame_dict:
            before = frame_dict[name]
            self._undo.append(lambda: frame_dict.__setitem__(name, before))
        else:
            self._undo.append(lambda: frame_dict.pop(name, None))
        frame_dict[name] = new_fn

    def patch_method(self, cls: Any, name: str, new_fn: Callable) -> None:
        """Replace an attribute of a class."""
        if name in vars(cls):
            before = vars(cls)[name]
            self._undo.append(lambda: setattr(cls, name, before))
        else:
            self._undo.append(lambda: delattr(cls, name))
        setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """True for a thing the first time only."""
        if id(thing) in self.visited:
            return False
        self.visited.add(id(thing))
        return True

    def __enter__(self) -> "Patcher":
        return self

    def __exit__(self, *_: Any) -> None:
        while self._undo:
            self._undo.pop()()
        self.visited.clear()


_Patcher = Patcher


class Tracer(TracerBase):
    """Makes graphs of programs. Subclasses choose what is a leaf: is_leaf_module(); how nodes are
    made: create_node(), create_arg(), call_module(), getattr(); what a stand-in does in a branch or
    a loop: to_bool(), iter().

    `autowrap_modules`: modules such as `math` whose functions become nodes when a stand-in is given
    to them; `autowrap_functions`: such functions; `param_shapes_constant`: shapes of parameters are
    read while the program is traced.
    """

    def __init__(
        self,
        autowrap_modules: Tuple[ModuleType, ...] = (math,),
        autowrap_functions: Tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids: Set[int] = {
            id(value)
            for name, value in _entries(autowrap_modules)
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(id(fn) for fn in autowrap_functions)
        self._autowrap_search: List[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: Optional[Dict[nn.Module, str]] = None
        self.root_module_name: str = ""
        self.scope = _MutableScope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: Dict[str, int] = {}
        self.node_name_to_scope = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that begins so and that the root module has no attribute of."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Argument:
        """As TracerBase's; parameters, buffers and other tensors of the module become nodes that
        read them, and a tensor that the program made becomes an attribute of the module."""
        if isinstance(a, nn.Parameter):
            for name, value in self.root.named_parameters():
                if value is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("fx: expected a parameter of the module that is traced")
        if isinstance(a, Tensor):
            for name, value in self.root.named_buffers():  # type: ignore[assignment]
                if value is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, nn.Module):
            for name, value in self.root.named_modules():  # type: ignore[assignment]
                if value is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            made = tuple(self.create_arg(value) for value in a)
            return self.create_node("call_function", type(a), made, {})
        if isinstance(a, Tensor):
            return self._attribute_of_root(a, "_tensor_constant")
        if type(a) in _proxyable_classes:
            return self._attribute_of_root(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _attribute_of_root(self, value: Any, prefix: str) -> Any:
        known = self.tensor_attrs.get(value)
        if known is None:
            known = self.get_fresh_qualname(prefix)
            self.tensor_attrs[value] = known
            setattr(self.root, known, value)
        return self.create_node("get_attr", known, (), {})

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of the module is one node: modules of treadle.nn and treadle.ao.nn are,
        Sequential is traced through."""
        home = f"{type(m).__module__}."
        of_library = home.startswith(("treadle.nn.", "treadle.ao.nn.", "torch.nn.", "torch.ao.nn."))
        return of_library and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The path of a submodule: "layers.0". NameError for one that the root does not have."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("fx: expected a module that is installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("fx: expected a module that is installed as a submodule")

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: Tuple, kwargs: Dict[str, Any]
    ) -> Any:
        """The record of a call of a submodule: one node for a leaf, else what forward() does."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            count = self.num_calls.get(path, 0)
            self.num_calls[path] = count + 1
            key = f"{path}@{count}" if count else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Dict[str, Any]) -> Any:
        """The value of a module's attribute in the trace: a stand-in for a parameter, and for a
        buffer if proxy_buffer_attributes is True."""
        return self._module_getattr(attr, attr_val, parameter_proxy_cache)

    def _module_getattr(
        self, attr: str, attr_val: Any, parameter_proxy_cache: Dict[str, Any]
    ) -> Any:
        if isinstance(attr_val, nn.Parameter):
            entries = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            entries = self.root.named_buffers()  # type: ignore[assignment]
        else:
            return attr_val
        for name, value in entries:
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    # Only where it is needed: subclasses override create_proxy() without it.
                    more: Dict[str, Any] = {}
                    if self.param_shapes_constant and isinstance(attr_val, nn.Parameter):
                        more["proxy_factory_fn"] = functools.partial(
                            _parameter_proxy, self, name, attr_val
                        )
                    parameter_proxy_cache[name] = self.create_proxy(
                        "get_attr", name, (), {}, **more
                    )
                return parameter_proxy_cache[name]
        return attr_val

    def create_args_for_root(
        self, root_fn: Callable, is_module: bool, concrete_args: Optional[Any] = None
    ) -> Tuple[Callable, List[Any]]:
        """The function to call and what to call it with: a stand-in for each parameter that
        `concrete_args` has no value for. Parameters by keyword become ones by position."""
        function = inspect.unwrap(root_fn)
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        original_names = list(code.co_varnames[:count])
        names = list(original_names)
        args: List[Any] = []
        skip = 0
        if is_module:
            if not names:
                raise RuntimeError("fx: expected forward to take self, got a function without it")
            skip = 1
            args.append(self.root)
        defaults = _defaults_of(function)
        if isinstance(concrete_args, tuple):
            if len(names) != len(concrete_args) + skip:
                raise RuntimeError(
                    f"fx: expected {len(names) - skip} values in concrete_args, got "
                    f"{len(concrete_args)}"
                )
            concrete_args = dict(zip(names[skip:], concrete_args))
        annotations = getattr(function, "__annotations__", {})
        hints = _hints(function, annotations)

        def make(name: str) -> Any:
            return self._argument_of_root(name, defaults, hints, concrete_args)

        args.extend(make(name) for name in names[skip:])
        has_stars = bool(code.co_flags & HAS_VARSTUFF)
        if code.co_kwonlyargcount or has_stars:
            position = count
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._placeholder("*" + code.co_varnames[position], {}, {}))
                position += 1
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._placeholder("**" + code.co_varnames[position], {}, {}))
            root_fn = _by_position(function, len(args))
        flat, form = pytree.tree_flatten(tuple(args))
        if not all(child.is_leaf() for child in form.children()):
            self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(original_names[:count], form, None))
            return self._flattened(root_fn, flat, form), flat
        return root_fn, args

    def _flattened(self, root_fn: Callable, flat: List[Any], form: Any) -> Callable:
        def flatten_fn(*leaves: Any) -> Any:
            values = pytree.tree_unflatten(list(leaves), form)
            out = root_fn(*values)
            out_leaves, out_form = pytree.tree_flatten(out)
            codegen = self.graph._codegen
            if isinstance(codegen, _PyTreeCodeGen):
                codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_form)
            return out_leaves

        return flatten_fn

    def _placeholder(self, name: str, defaults: Dict[str, Any], hints: Dict[str, Any]) -> Proxy:
        default = () if name not in defaults else (defaults[name],)
        return self.create_proxy("placeholder", name, default, {}, type_expr=hints.get(name))

    def _argument_of_root(
        self, name: str, defaults: Dict[str, Any], hints: Dict[str, Any], concrete: Any
    ) -> Any:
        if concrete is None or name not in concrete:
            return self._placeholder(name, defaults, hints)
        count = 0

        def leaf(value: Any) -> Any:
            nonlocal count
            count += 1
            # A name that a value by itself would not have, so that others stay as they are.
            default = () if name not in defaults else (defaults[name],)
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                if type(value) is not PHBase:
                    made.node.meta.update(value.__dict__)
                return made
            if type(value) is bool or isinstance(value, base_values):
                _assert(
                    made == value,  # type: ignore[comparison-overlap]
                    f"{name} has been specialized to have value {value} but got another value",
                )
            elif value is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (made, message), {})
            return value

        return pytree.tree_map(leaf, concrete[name])

    def trace(
        self, root: Union[nn.Module, Callable[..., Any]], concrete_args: Optional[Any] = None
    ) -> Graph:
        """The graph of a module or function. `concrete_args` gives values to parameters, which are
        then no longer arguments to vary: a dictionary by name, or a tuple."""
        global _is_tracing
        before, _is_tracing = _is_tracing, True
        try:
            return self._trace(root, concrete_args)
        finally:
            _is_tracing = before

    def _trace(self, root: Any, concrete_args: Optional[Any]) -> Graph:
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"fx: expected {type(root).__name__} to have {self.traced_func_name}()"
                )
            function = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root = nn.Module()
            function = root
            self.submodule_paths = None
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        if hasattr(function, "__code__"):
            code = function.__code__
            self.graph._co_fields = {
                "co_name": code.co_name,
                "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno,
            }
        self.tensor_attrs: Dict[Any, str] = {}
        self._collect_tensor_attributes(self.root, [])
        if not isinstance(function, FunctionType):
            raise AssertionError(f"fx: expected a function, got {type(function).__name__}")
        call, args = self.create_args_for_root(function, isinstance(root, nn.Module), concrete_args)
        with Patcher() as patcher:
            self._patch(patcher, inspect.unwrap(function).__globals__)
            result = call(*args)
            self.create_node(
                "output",
                "output",
                (self.create_arg(result),),
                {},
                type_expr=_hints(function, function.__annotations__).get("return"),
            )
        self.submodule_paths = None
        return self.graph

    def _collect_tensor_attributes(self, module: nn.Module, path: List[str]) -> None:
        for name, value in module.__dict__.items():
            if isinstance(value, Tensor):
                self.tensor_attrs[value] = ".".join([*path, name])
        for name, child in module.named_children():
            self._collect_tensor_attributes(child, [*path, name])

    def _patch(self, patcher: Patcher, globals_of_root: Dict[str, Any]) -> None:
        cache: Dict[str, Any] = {}

        @functools.wraps(_orig_module_getattr)
        def module_getattr_wrapper(mod: nn.Module, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        @functools.wraps(_orig_module_call)
        def module_call_wrapper(mod: nn.Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(mod, *args, **kwargs)

            _autowrap_check(
                patcher,
                getattr(getattr(mod, "forward", mod), "__globals__", {}),
                self._autowrap_function_ids,
            )
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(nn.Module, "__getattr__", module_getattr_wrapper)
        patcher.patch_method(nn.Module, "__call__", module_call_wrapper)
        for (_, name), space in _wrapped_fns_to_patch.items():
            known = space[name] if name in space else getattr(builtins, name, None)
            if known is not None:
                patcher.patch(space, name, _create_wrapped_func(known))
        for cls, name in _wrapped_methods_to_patch:
            patcher.patch_method(cls, name, _create_wrapped_method(cls, name))
        _autowrap_check(patcher, globals_of_root, self._autowrap_function_ids)
        for module in self._autowrap_search:
            _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Tracer":
        made = Tracer.__new__(type(self))
        for name, value in self.__dict__.items():
            keep = name in ("root", "graph", "_autowrap_search") or isinstance(value, ModuleType)
            made.__dict__[name] = value if keep else copy.deepcopy(value, memo)
        return made


base_values = (str, int, float, bool, complex, _C.dtype, _C.device)


def _parameter_proxy(tracer: Tracer, name: str, value: Any, node: Any) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, value)


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


def _entries(modules: Tuple[ModuleType, ...]) -> Iterator[Tuple[str, Any]]:
    for module in modules:
        yield from vars(module).items()


def _defaults_of(function: Callable) -> Dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def _hints(function: Callable, annotations: Dict[str, Any]) -> Dict[str, Any]:
    """The annotations of a function; what is written as text is looked up in its globals."""
    found = dict(annotations)
    for name, value in annotations.items():
        if isinstance(value, str):
            try:
                found[name] = eval(value, getattr(function, "__globals__", {}))  # noqa: S307
            except Exception:  # a name that is there for a checker of types only
                found.pop(name)
    return found


def _by_position(function: Callable, count: int) -> Callable:
    """The function, with all of its parameters by position: `*args` and `**kwargs` take one value
    each, as they are."""
    code = function.__code__.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=function.__code__.co_flags & ~HAS_VARSTUFF,
    )
    made = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = None
    return made


def _find_proxy(*objects_to_search: Any) -> Optional[Proxy]:
    """The first stand-in among values, also in tuples, lists and dictionaries."""
    found: Optional[Proxy] = None

    def look(value: Any) -> Any:
        nonlocal found
        if found is None and isinstance(value, Proxy):
            found = value
        return value

    map_aggregate(objects_to_search, look)
    return found


def _create_wrapped_func(orig_fn: Callable) -> Callable:
    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable:
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _autowrap_check(patcher: Patcher, frame_dict: Dict[str, Any], function_ids: Set[int]) -> None:
    """Let the functions that are to be recorded record, where a module has them as globals."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))


def wrap(fn_or_name: Union[str, Callable]) -> Union[str, Callable]:
    """Have calls of a function recorded as one node: its name, or the function itself, said at the
    outermost level of the module that calls it. Also a decorator of a function.

    RuntimeError for what is neither; NotImplementedError inside a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        kind = type(fn_or_name).__name__
        raise RuntimeError(f"fx.wrap: expected a function or its name, got {kind}")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("fx.wrap: expected a call at the outermost level of a module")
    _wrapped_fns_to_patch[(id(caller.f_globals), name)] = caller.f_globals
    return fn_or_name


def symbolic_trace(
    root: Union[nn.Module, Callable[..., Any]], concrete_args: Optional[Any] = None
) -> GraphModule:
    """A GraphModule that does what the module or function does: see Tracer.trace().

    TraceError where the program asks a traced value for what is not known before it runs.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


def _make_graph_module(root: Any, graph: Graph, name: str) -> GraphModule:
    return GraphModule(root, graph, name)


__all__ = [
    "PH",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]
