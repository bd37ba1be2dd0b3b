"""The C++ of derivative formulas.

grad * other.conj()    grads[0] * aten::conj(other)
self.sizes()           self_sizes_, a member: the node keeps the sizes alone
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Mapping, Optional

from ..cpp import code
from ..cpp.expressions import Translator
from ..cpp.names import cpp_name, output_name
from ..model import expr
from ..model.entry import Entry, Formula, Kept

# Methods that Tensor has in C++; any other method of a tensor is the operator of that name.
_TENSOR_METHODS = frozenset(
    "sizes strides dim numel dtype device size stride defined is_complex is_floating_point".split()
)
_GRADS = code.Id("grads")


# The operators that formulas may call: C++ function -> (prefix, header).
Functions = Mapping[str, tuple[str, str]]


def variable(e: Entry, name: str) -> str:
    """An argument or a result in C++."""
    return cpp_name(name) if e.find_arg(name) else output_name(name)


def kept_member(e: Entry, name: str, what: Kept) -> str:
    """The member of the node that keeps it."""
    part = "" if what is Kept.VALUE else f"{what}_"
    return f"{variable(e, name)}_{part}"


class FormulaTranslator(Translator):
    def __init__(self, e: Entry, formula: Formula, functions: Functions):
        self._e, self._formula, self._functions = e, formula, functions
        self.headers: set[str] = set()  # of the operators that it calls
        flags = e.differentiable_outputs
        self._first = flags.index(True) if True in flags else 0

    def _is_incoming(self, node: expr.Expr, name: str) -> bool:
        """Whether it is the incoming gradient of that name, rather than an argument."""
        return node == expr.Name(name) and self._e.find_arg(name) is None

    def name(self, node: expr.Name) -> code.Expr:
        if self._is_incoming(node, "grad"):
            return code.Subscript(_GRADS, code.integer(self._first))
        if self._is_incoming(node, "grads"):
            return code.Call("as_list", (_GRADS,))
        if any(save.name == node.text for save in self._formula.saves):
            return code.Id(variable(self._e, node.text))
        return super().name(node)

    def index(self, node: expr.Index) -> code.Expr:
        if self._is_incoming(node.on, "grads"):
            return code.Subscript(_GRADS, self.visit(node.index))
        return super().index(node)

    def call(self, node: expr.Call) -> code.Expr:
        return self._called(node.function, self.each(node.arguments))

    def _called(self, function: str, arguments: tuple[code.Expr, ...]) -> code.Expr:
        prefix = "autograd"
        if function in self._functions:
            prefix, header = self._functions[function]
            self.headers.add(header)
        return code.Call(f"{prefix}::{function}", arguments)

    def method(self, node: expr.Method) -> code.Expr:
        arguments = self.each(node.arguments)
        if isinstance(node.on, expr.Name):
            kept = self._kept(node.on.text, node.name, arguments)
            if kept is not None:
                return kept
            a = self._e.find_arg(node.on.text)
            if a is not None and not a.type.holds_tensors:
                return super().method(node)  # of a Scalar or of a list
        on = self.visit(node.on)
        if node.name == "scalar_type":
            return code.MethodCall(on, "dtype")
        if node.name in _TENSOR_METHODS:
            return code.MethodCall(on, node.name, arguments)
        return self._called(node.name, (on, *arguments))

    def _kept(
        self, name: str, method: str, arguments: tuple[code.Expr, ...]
    ) -> Optional[code.Expr]:
        """A method of a value of which the node keeps less than the whole."""
        kept = {save.what for save in self._formula.saves if save.name == name}
        if not kept or Kept.VALUE in kept:
            return None
        if method == "size":
            sizes = code.Id(kept_member(self._e, name, Kept.SIZES))
            return code.Call("size_at", (sizes, *arguments))
        what = Kept.DTYPE if method == "scalar_type" else Kept(method)
        return code.Id(kept_member(self._e, name, what))
