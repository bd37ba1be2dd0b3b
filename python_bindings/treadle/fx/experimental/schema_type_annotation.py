"""AnnotateTypesWithSchema: nodes get the types that the functions and layers they call say."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from typing import Any, Optional

from treadle._C import Tensor
from treadle.fx.graph_module import GraphModule
from treadle.fx.interpreter import Transformer


class AnnotateTypesWithSchema(Transformer):
    """Makes a graph anew with types: of the results of functions, of those of layers of the
    package, and of what is read from the module, each as far as the settings say."""

    def __init__(
        self,
        module: GraphModule,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def _typed(self, proxy: Any, kind: Optional[Any]) -> Any:
        proxy.node.type = proxy.node.type if proxy.node.type else kind
        return proxy

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The call, with the type of the result of a function of layers."""
        kind = None
        if self.annotate_functionals and _is_of_layers(target):
            kind = _result_type(target)
        return self._typed(super().call_function(target, args, kwargs), kind)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The call, with the type that `forward` of a layer returns."""
        layer = self.fetch_attr(target)
        kind = None
        if self.annotate_modules and _is_of_layers(type(layer)):
            kind = _result_type(type(layer).forward)
        return self._typed(super().call_module(target, args, kwargs), kind)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The value, with its type."""
        proxy = super().get_attr(target, args, kwargs)
        value = self.fetch_attr(target)
        is_tensor = isinstance(value, Tensor)
        kind = Tensor if is_tensor else type(value)
        return self._typed(proxy, kind if self.annotate_get_attrs else None)


def _is_of_layers(value: Any) -> bool:
    from treadle import nn

    module = str(getattr(value, "__module__", None)).partition(".")[2]
    in_functions = getattr(nn.functional, getattr(value, "__name__", ""), None) is value
    return in_functions or module == "nn" or module.startswith("nn.")


def _result_type(function: Any) -> Optional[Any]:
    try:
        found = inspect.signature(function, eval_str=True).return_annotation
    except (TypeError, ValueError, NameError):
        return None
    return None if found is inspect.Signature.empty else found


__all__ = ["AnnotateTypesWithSchema"]
