"""GraphModule: a module that runs the code of a graph.

Its class is made for it alone, since each has a forward() of its own. Copies and pickles keep the
code, and make the graph again by tracing it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Type, Union

from treadle import _names, nn
from treadle._C import Tensor
from treadle.fx import _targets
from treadle.fx._code import custom_builtins
from treadle.fx.graph import CodeGen, Graph, PythonCode, _PyTreeCodeGen

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"

_numbers = itertools.count()


def _exec_with_source(
    src: str,
    globals: Dict[str, Any],
    co_fields: Any = None,  # noqa: A002
) -> None:
    """Run code whose lines tracebacks then show."""
    name = f"<eval_with_key>.{next(_numbers)}"
    if co_fields and {"co_filename", "co_firstlineno"} <= set(co_fields):
        function = co_fields.get("co_name", "forward")
        name += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {function}"
    linecache.cache[name] = (len(src), None, src.splitlines(keepends=True), name)
    exec(compile(src, name, "exec"), globals)  # noqa: S102


def _forward_from_src(
    src: str,
    globals: Dict[str, Any],
    co_fields: Any = None,  # noqa: A002
) -> Callable:
    return _method_from_src("forward", src, globals, co_fields)


def _method_from_src(
    method_name: str,
    src: str,
    globals: Dict[str, Any],
    co_fields: Any = None,  # noqa: A002
) -> Callable:
    package = _names.package()
    space = {**globals, _names.PACKAGE: package, "torch": package}
    _exec_with_source(src, space, co_fields)
    return space[method_name]


def _format_import_statement(name: str, obj: Any) -> str:
    """The line that imports a global of the code."""
    builtins_of_code = custom_builtins()
    if name in builtins_of_code:
        return builtins_of_code[name].import_str
    if isinstance(obj, type(os)):
        return f"import {obj.__name__} as {name}"
    qualified = _targets._get_qualified_name(obj)
    module, _, attribute = qualified.rpartition(".")
    if not module:
        module, attribute = getattr(obj, "__module__", "builtins"), qualified
    if module == "typing" or getattr(obj, "__module__", None) == "typing":
        module, attribute = "typing", getattr(obj, "_name", None) or attribute
    return f"from {module} import {attribute} as {name}"


def _format_import_block(globals: Dict[str, Any], importer: Any = None) -> str:  # noqa: A002
    lines = {_format_import_statement(name, obj) for name, obj in globals.items()}
    return "\n".join(sorted(lines))


class _CodeOnlyModule(nn.Module):
    """The attributes of a GraphModule and its forward(), without the graph: what is traced to make
    the graph again."""

    def __init__(self, body: Dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: Dict[Any, Any], import_block: str) -> nn.Module:
    """A GraphModule of its attributes and its code."""
    code = body.get("_code") or body.get("code")
    forward = _forward_from_src(import_block + code, {})  # type: ignore[operator]
    return _deserialize_graph_module(forward, body)


def reduce_package_graph_module(
    importer: Callable, body: Dict[Any, Any], generated_module_name: str
) -> nn.Module:
    """A GraphModule of its attributes and a module that has its code."""
    return _deserialize_graph_module(importer(generated_module_name).forward, body)


def reduce_deploy_graph_module(
    importer: Callable, body: Dict[Any, Any], import_block: str
) -> nn.Module:
    """A GraphModule of its attributes and its code."""
    return reduce_graph_module(body, import_block)


def _deserialize_graph_module(
    forward: Callable, body: Dict[Any, Any], graph_module_cls: Optional[type] = None
) -> nn.Module:
    from treadle.fx._symbolic_trace import Tracer

    tracer_cls = body.get("_tracer_cls") or Tracer
    extras = body.pop("_tracer_extras", None) or {}
    name = body.get("_graphmodule_cls_name", "GraphModule")
    made_class = graph_module_cls or body.pop("_graphmodule_base", GraphModule)
    root = _CodeOnlyModule(body)
    root.__class__ = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})

    class KeepModules(tracer_cls):  # type: ignore[misc, valid-type]
        # Each module was a leaf when the code was made of a graph.
        def is_leaf_module(self, _: nn.Module, __: str) -> bool:
            return True

    graph = KeepModules().trace(root, **extras)
    graph._tracer_cls = tracer_cls
    codegen = body.get("_graph_codegen")
    if codegen is not None:
        graph._codegen = copy.deepcopy(codegen)
    made = made_class(root, graph, class_name=name)
    for key, value in body.items():
        if key not in made.__dict__ and key != "_graph_codegen":
            setattr(made, key, value)
    return made


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Give a module the attribute at a path of another; the modules on the way are made."""
    *path, name = target.split(".")
    for part in path:
        source, place = getattr(from_module, part), getattr(to_module, part, None)
        if source is place:
            return
        if place is None:
            place = nn.Module()
            setattr(to_module, part, place)
        from_module, to_module = source, place
    value = getattr(from_module, name)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        persistent = name not in getattr(from_module, "_non_persistent_buffers_set", ())
        to_module.register_buffer(name, value, persistent=persistent)
    else:
        setattr(to_module, name, value)


def _assign_attr(from_obj: Any, to_module: nn.Module, target: str) -> None:
    """Put a value at a path of a module; the modules on the way are made."""
    *path, name = target.split(".")
    for part in path:
        place = getattr(to_module, part, None)
        if place is None:
            place = nn.Module()
            setattr(to_module, part, place)
        to_module = place
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, nn.Parameter):
        to_module.register_buffer(name, from_obj)
    else:
        setattr(to_module, name, from_obj)


def _get_attr(model: nn.Module, attr_name: str) -> Any:
    """The attribute at a path."""
    found: Any = model
    for part in attr_name.split("."):
        found = getattr(found, part)
    return found


def _has_attr(model: nn.Module, attr_name: str) -> bool:
    """Whether there is an attribute at a path."""
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _print_readable(module: nn.Module, name: str, **kwargs: Any) -> str:
    return GraphModule.print_readable(module, print_output=False, **kwargs)  # type: ignore[arg-type]


class GraphModule(nn.Module):
    """A module made of a graph. `graph` is its graph and `code` the code that it runs; after a
    change of the graph, recompile() makes the code anew."""

    def __new__(cls: Type["GraphModule"], *args: Any, **kwargs: Any) -> "GraphModule":
        for base in cls.__mro__:
            if base.__name__ != "GraphModuleImpl":
                cls = base
                break

        class GraphModuleImpl(cls):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(
        self,
        root: Union[nn.Module, Dict[str, Any]],
        graph: Graph,
        class_name: str = "GraphModule",
    ) -> None:
        """`root` is the module whose parameters and submodules the graph uses, or a dictionary of
        them by path. RuntimeError if a path of the graph is in neither."""
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, nn.Module):
            self._take_over(root, graph)
        elif isinstance(root, dict):
            self._take_values(root, graph)
        else:
            kind = type(root).__name__
            raise RuntimeError(f"GraphModule: expected a module or a dictionary, got {kind}")
        self.graph = graph
        self._tracer_cls: Optional[type] = None
        if graph._tracer_cls and "<locals>" not in graph._tracer_cls.__qualname__:
            self._tracer_cls = graph._tracer_cls
        self._tracer_extras = dict(graph._tracer_extras) if graph._tracer_extras else {}
        self.meta: Dict[str, Any] = {}
        self._replace_hooks: List[Callable] = []
        self._create_node_hooks: List[Callable] = []
        self._erase_node_hooks: List[Callable] = []
        self._deepcopy_hooks: List[Callable] = []

    def _take_over(self, root: nn.Module, graph: Graph) -> None:
        if hasattr(root, "training"):
            self.training = root.training
        preserved = getattr(root, "meta", None)
        if isinstance(preserved, dict):
            for name in preserved.get(_USER_PRESERVED_ATTRIBUTES_KEY, ()):
                setattr(self, name, preserved[_USER_PRESERVED_ATTRIBUTES_KEY][name])
        for target in _paths_of(graph):
            if not _has_attr(root, target):
                raise RuntimeError(
                    f"GraphModule: expected the module to have {target}, which the graph uses"
                )
            _copy_attr(root, self, target)

    def _take_values(self, root: Dict[str, Any], graph: Graph) -> None:
        wanted = _paths_of(graph)
        for target in wanted:
            if target not in root:
                raise RuntimeError(
                    f"GraphModule: expected the dictionary to have {target}, which the graph uses"
                )
        # Higher paths first, so that none replaces what lies below it.
        for target in sorted(wanted, key=lambda path: path.count(".")):
            _assign_attr(root[target], self, target)

    __jit_unused_properties__ = ["graph"]

    @property
    def graph(self) -> Graph:
        """The graph. Assigning another makes the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"GraphModule.graph: expected a Graph, got {type(g).__name__}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python code that the module runs."""
        if not hasattr(self, "_code"):
            raise RuntimeError("GraphModule.code: expected a module that was compiled")
        return self._code

    def recompile(self) -> PythonCode:
        """Make the code of the graph, and run it from here on. Needed after a change of it."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._out_spec = codegen.pytree_info.out_spec
            self._in_spec = _form_of_arguments(codegen)
        python_code = self._graph.python_code(root_module="self")
        self._code = python_code.src
        self._lineno_map = python_code._lineno_map
        cls = type(self)
        cls.forward = _forward_from_src(self._code, python_code.globals, self._graph._co_fields)
        return python_code

    # ---- submodules ----

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a path; the modules on the way are made. False if something that is no
        module is on the way."""
        *path, name = target.split(".")
        place: nn.Module = self
        for part in path:
            below = getattr(place, part, None)
            if below is None:
                below = nn.Module()
                setattr(place, part, below)
            if not isinstance(below, nn.Module):
                return False
            place = below
        place.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the module at a path away. False if there is none."""
        *path, name = target.split(".")
        place: Any = self
        for part in path:
            place = getattr(place, part, None)
            if not isinstance(place, nn.Module):
                return False
        if not isinstance(getattr(place, name, None), nn.Module):
            return False
        delattr(place, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the modules that no node calls or reads from."""
        used: Set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
            if node.op == "call_module":
                try:
                    below = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in below.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies ----

    def __reduce__(self) -> Tuple[Callable, Tuple[Any, ...]]:
        body = self.__dict__.copy()
        graph = body.pop("_graph")
        for name in (
            "_replace_hooks",
            "_create_node_hooks",
            "_erase_node_hooks",
            "_deepcopy_hooks",
            "_lineno_map",
        ):
            body.pop(name, None)
        body["_graphmodule_cls_name"] = type(self).__name__
        base = next(b for b in type(self).__mro__ if b.__qualname__.find("GraphModuleImpl") < 0)
        if base is not GraphModule:
            body["_graphmodule_base"] = base
        codegen = graph._codegen
        if type(codegen) is not CodeGen:
            body["_graph_codegen"] = codegen
        # Plain code is what can be traced again, whatever another writer makes of the graph.
        graph._codegen = CodeGen()
        try:
            python_code = graph.python_code(root_module="self")
        finally:
            graph._codegen = codegen
        body["_code"] = python_code.src
        return reduce_graph_module, (body, _format_import_block(python_code.globals))

    def _deepcopy_init(self) -> Callable:
        return GraphModule.__init__

    def __deepcopy__(self, memo: Dict[int, Any]) -> "GraphModule":
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        body = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        hooks = body.get("_deepcopy_hooks", [])
        copied = copy.deepcopy(body, memo)
        graph = copy.deepcopy(self._graph, memo)
        source = _CodeOnlyModule({**copied})
        self._deepcopy_init()(made, source, graph, type(self).__name__)
        for name, value in copied.items():
            if name not in ("_code", "_lineno_map", "_parameters", "_buffers", "_modules"):
                made.__dict__[name] = value
        for hook in hooks:
            hook(made)
        return made

    def __copy__(self) -> "GraphModule":
        made = GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)
        made.meta = getattr(self, "meta", {})
        return made

    # ---- text ----

    def to_folder(
        self, folder: Union[str, "os.PathLike[str]"], module_name: str = "FxModule"
    ) -> None:
        """Write a folder that is a Python package with a module of that name: its code, and the
        values of its parameters and submodules."""
        from treadle.serialization import save

        path = Path(folder)
        path.mkdir(exist_ok=True)
        package = _names.spoken()
        save(self.state_dict(), path / "state_dict.pt")
        lines = [
            _format_import_block(self._graph.python_code(root_module="self").globals),
            f"from {package} import nn",
            "",
            f"class {module_name}(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        for name, module in self.named_children():
            file = path / f"{name}.pt"
            save(module, file)
            shown = f"{str(file.resolve())!r}, weights_only=False"
            lines.append(f"        self.{name} = {package}.load({shown})  # {module._get_name()}")
        for name, value in self._buffers.items():
            if value is not None:
                shape, dtype = list(value.shape), _names.in_words_of_the_program(str(value.dtype))
                lines.append(
                    f"        self.register_buffer({name!r}, {package}.empty({shape}, "
                    f"dtype={dtype}))"
                )
        for name, value in self._parameters.items():
            if value is not None:
                shape, dtype = list(value.shape), _names.in_words_of_the_program(str(value.dtype))
                lines.append(
                    f"        self.{name} = nn.Parameter({package}.empty({shape}, dtype={dtype}))"
                )
        values = str((path / "state_dict.pt").resolve())
        lines.append(f"        self.load_state_dict({package}.load({values!r}))")
        body = "\n".join(f"    {line}" for line in self.code.split("\n"))
        (path / "module.py").write_text("\n".join(lines) + "\n" + body + "\n")
        (path / "__init__.py").write_text("from .module import *\n")

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: Any = None,
    ) -> str:
        """The code of the module and of the graph modules in it as classes, with comments that say
        where nodes come from. It is printed too, unless print_output=False."""
        code = self._graph.python_code(
            root_module="self",
            verbose=True,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
        ).src.lstrip("\n")
        title = f"class {type(self).__name__}(torch.nn.Module):".replace(
            "torch.", f"{_names.spoken()}."
        )
        parts = ["\n".join([title, *(f"    {line}" if line else "" for line in code.split("\n"))])]
        parts[0] = "\n".join(line.rstrip() for line in parts[0].split("\n"))
        for module in self.children():
            if isinstance(module, GraphModule):
                inner = module.print_readable(print_output=False, include_stride=include_stride)
                parts.append("\n".join(f"    {line}" if line else "" for line in inner.split("\n")))
        text = "\n".join(parts)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, hint])

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable) -> Any:
        """A block in which a function is told of each node whose use is replaced."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable) -> None:
        self._erase_node_hooks.remove(f)


def _paths_of(graph: Graph) -> List[str]:
    """The paths of the attributes and modules that a graph uses, each once."""
    paths = (node.target for node in graph.nodes if node.op in ("get_attr", "call_module"))
    return list(dict.fromkeys(paths))


def _form_of_arguments(codegen: _PyTreeCodeGen) -> Any:
    """The form of the arguments of forward() in a list, as its code takes them: without self."""
    from treadle.utils import _pytree as pytree

    info = codegen.pytree_info
    dummies = pytree.tree_unflatten([0] * info.in_spec.num_leaves, info.in_spec)
    values = list(dummies[1:] if info.orig_args[:1] == ["self"] else dummies)
    return pytree.tree_structure(values)


__all__ = ["GraphModule"]
