"""FxGraphDrawer: a graph as a picture, by the package pydot.

    FxGraphDrawer(traced, "net").get_dot_graph().write_svg("net.svg")

Shapes and dtypes are in it where ShapeProp has been run.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import zlib
from typing import Any, Dict, Iterator, List, Optional

from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, _get_qualified_name
from treadle.fx.operator_schemas import normalize_function
from treadle.fx.passes.shape_prop import TensorMetadata

_COLOURS = {
    "placeholder": "AliceBlue",
    "call_module": "LemonChiffon1",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_OF_TARGETS = ("Wheat1", "Thistle1", "MistyRose2", "LavenderBlush1", "Honeydew2", "Lavender")


def _escaped(text: str) -> str:
    """The text as a part of a record, in which braces and angles mean something."""
    for sign in "{}<>|":
        text = text.replace(sign, f"\\{sign}")
    return text


class FxGraphDrawer:
    """The pictures of a traced module and of the traced modules that it calls.

    ignore_getattr: leaves reads of attributes out; ignore_parameters_and_buffers: leaves those of
    layers out; skip_node_names_in_args: leaves arguments out that edges show; parse_stack_trace:
    shows where in the program a node is from; dot_graph_shape: the shape of nodes, record if not
    given; normalize_args: shows arguments of functions by name. RuntimeError without pydot."""

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: Optional[str] = None,
        normalize_args: bool = False,
    ) -> None:
        try:
            self._pydot: Any = importlib.import_module("pydot")
        except ImportError:
            raise RuntimeError(
                "FxGraphDrawer: expected the package pydot, got none: pip install pydot"
            ) from None
        self._name = name
        self._ignore_getattr = ignore_getattr
        self._ignore_parameters = ignore_parameters_and_buffers
        self._skip_names = skip_node_names_in_args
        self._with_stack = parse_stack_trace
        self.dot_graph_shape = "record" if dot_graph_shape is None else dot_graph_shape
        self.normalize_args = normalize_args
        self._dot_graphs: Dict[str, Any] = {name: self._drawn(graph_module, name)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module":
                layer = graph_module.get_submodule(str(node.target))
                if isinstance(layer, GraphModule):
                    self._dot_graphs[f"{name}_{node.target}"] = self._drawn(
                        layer, f"{name}_{node.target}"
                    )

    def get_dot_graph(self, submod_name: Optional[str] = None) -> Any:
        """The picture, a `pydot.Dot`, of the module, or of one that it calls. KeyError for a name
        of none."""
        if submod_name is None:
            return self.get_main_dot_graph()
        return self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """The picture of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The picture of a traced module that the module calls."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> Dict[str, Any]:
        """All pictures, by their names."""
        return self._dot_graphs

    def _is_shown(self, node: Node) -> bool:
        return not (self._ignore_getattr and node.op == "get_attr")

    def _drawn(self, module: GraphModule, name: str) -> Any:
        picture = self._pydot.Dot(name, rankdir="TB")
        nodes = [node for node in module.graph.nodes if self._is_shown(node)]
        for node in nodes:
            text = "{" + "|".join(self._lines(module, node)) + "}"
            self._add(picture, node.name, text, self._colour(node))
            if node.op == "call_module" and not self._ignore_parameters:
                self._add_parameters(picture, module, node)
        for node in nodes:
            for user in node.users:
                picture.add_edge(self._pydot.Edge(node.name, user.name))
        return picture

    def _add(self, picture: Any, name: str, text: str, colour: str) -> None:
        made = self._pydot.Node(
            name,
            label=text,
            shape=self.dot_graph_shape,
            fillcolor=colour,
            style='"filled,rounded"',
            fontcolor="#000000",
        )
        picture.add_node(made)

    def _add_parameters(self, picture: Any, module: GraphModule, node: Node) -> None:
        layer = module.get_submodule(str(node.target))
        for kind, values in (
            ("parameter", layer.named_parameters()),
            ("buffer", layer.named_buffers()),
        ):
            for path, value in values:
                name = f"{node.target}.{path}"
                text = f"{{{name}|op_code=get_{kind}|{value.dtype}{list(value.shape)}}}"
                self._add(picture, name, text, "Salmon")
                picture.add_edge(self._pydot.Edge(name, node.name))

    @staticmethod
    def _colour(node: Node) -> str:
        if node.op in _COLOURS:
            return _COLOURS[node.op]
        text = node.target if isinstance(node.target, str) else _get_qualified_name(node.target)
        return _OF_TARGETS[zlib.crc32(text.encode()) % len(_OF_TARGETS)]

    def _lines(self, module: GraphModule, node: Node) -> Iterator[str]:
        yield f"name=%{node.name}"
        yield f"op_code={node.op}"
        if node.op == "call_module":
            layer = module.get_submodule(str(node.target))
            yield f"{type(layer).__module__}.{type(layer).__qualname__}"
            extra = layer.extra_repr()
            if extra:
                yield _escaped(extra)
        else:
            is_name = isinstance(node.target, str)
            target = node.target if is_name else _get_qualified_name(node.target)
            yield f"target={_escaped(str(target))}"
        yield from self._arguments(module, node)
        yield f"num_users={len(node.users)}"
        if self._with_stack and node.stack_trace:
            yield _escaped(node.stack_trace.strip().splitlines()[-1])
        found: List[TensorMetadata] = []
        _find(node.meta.get("tensor_meta"), found)
        for meta in found:
            yield f"dtype={meta.dtype}"
            yield f"shape={tuple(meta.shape)}"
            yield f"requires_grad={meta.requires_grad}"
            yield f"stride={tuple(meta.stride)}"

    def _arguments(self, module: GraphModule, node: Node) -> Iterator[str]:
        args, kwargs = node.args, dict(node.kwargs)
        if self.normalize_args and node.op == "call_function" and callable(node.target):
            known = normalize_function(node.target, args, kwargs, normalize_to_only_use_kwargs=True)
            if known is not None:
                args, kwargs = known.args, dict(known.kwargs)
        shown = [a for a in args if not (self._skip_names and isinstance(a, Node))]
        named = {
            key: value
            for key, value in kwargs.items()
            if not (self._skip_names and isinstance(value, Node))
        }
        if node.op != "output" and shown:
            yield f"args={_escaped(str(tuple(shown)))}"
        if named:
            yield f"kwargs={_escaped(str(named))}"


def _find(meta: Any, found: List[TensorMetadata]) -> None:
    if isinstance(meta, TensorMetadata):
        found.append(meta)
    elif isinstance(meta, (tuple, list)):
        for part in meta:
            _find(part, found)
    elif isinstance(meta, dict):
        for part in meta.values():
            _find(part, found)


__all__ = ["FxGraphDrawer"]
