"""The C++ of derivative formulas.

Example:

    grad * other.conj()    grads[0] * aten::conj(other)
    self.sizes()           self_sizes_, a member: the node keeps the sizes alone
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from ..cpp import code
from ..cpp.expressions import Translator
from ..cpp.names import cpp_name, output_name
from ..library import Library
from ..model import expr
from ..model.entry import Entry, Formula
from ..model.kept import Kept

_GRADS = code.Id("grads")


def variable(e: Entry, name: str) -> str:
    """An argument or a result in C++."""
    return cpp_name(name) if e.find_arg(name) else output_name(name)


def kept_member(e: Entry, name: str, what: Kept) -> str:
    """The member of the node that keeps it."""
    part = "" if what is Kept.VALUE else f"{what}_"
    return f"{variable(e, name)}_{part}"


class FormulaTranslator(Translator):
    def __init__(self, e: Entry, formula: Formula, library: Library):
        self._e, self._formula, self._library = e, formula, library
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
        return self._called(node, self.each(node.arguments))

    def _called(self, node: expr.Call | expr.Method, arguments: tuple[code.Expr, ...]) -> code.Expr:
        """The call of an operator or a helper."""
        callee = node.callee
        assert callee is not None, "schemac knows every function of a formula"
        if callee.entry:
            prefix, header = self._library.function(callee.namespace, callee.entry)
            self.headers.add(header)
        else:
            prefix = self._library.helper_prefix(callee.namespace)
        return code.Call(f"{prefix}::{callee.function}", arguments)

    def method(self, node: expr.Method) -> code.Expr:
        arguments = self.each(node.arguments)
        if isinstance(node.on, expr.Name):
            kept = self._kept(node.on.text, node.name, arguments)
            if kept is not None:
                return kept
        on = self.visit(node.on)
        if node.callee is not None and node.callee.kind is expr.CalleeKind.METHOD:
            return code.MethodCall(on, node.callee.function, arguments)
        return self._called(node, (on, *arguments))

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
