"""The library that is generated: Treadle's own operators, or those of a library outside of it.

The two differ in nothing but names: the namespaces of the C++ code and the places of the files.

    TREE.call("aten", "add")               aten::add
    outside("my_ops", ...).namespace       my_ops
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterator, Mapping, Optional

from .model.entry import Model


@dataclass(frozen=True)
class Library:
    name: str  # of the operators: aten::add
    namespace: str  # of their C++ functions
    owner: str  # the namespace around what is written by hand: shape::, composite::, views::
    prefix: str  # of the functions' names in the namespace treadle
    symbol: str  # before names that the linker sees and that are in a namespace of Treadle's
    # Template -> place of the file; `{}` stands for the shard's number.
    sharded: Mapping[str, str] = field(repr=False)
    whole: Mapping[str, str] = field(repr=False)
    header: str  # place of the header of an operator
    again: str  # how what is generated is shown again
    # The model of Treadle's own operators, for a library outside; None in the tree.
    base: Optional[Model] = field(default=None, repr=False)

    @property
    def is_outside(self) -> bool:
        return self.base is not None

    @property
    def simd_namespace(self) -> str:
        """The namespace of the blocks of vector code in that of a target; "" for that itself."""
        return f"library_{self.name}" if self.is_outside else ""

    @property
    def simd(self) -> str:
        """Its prefix."""
        return f"{self.simd_namespace}::" if self.is_outside else ""

    def linked(self, part: str) -> str:
        """Prefix of functions written by hand, in the code of operators: `composite::`."""
        return f"::{self.owner}::{part}" if self.is_outside else part

    def is_own_rule(self, rule: str) -> bool:
        """Whether a shape rule is the library's own, rather than one of Treadle's."""
        return self.base is None or rule not in self.base.shape_rules

    def rule(self, name: str) -> str:
        """A shape rule, as the code of operators calls it."""
        if not self.is_outside:
            return f"shape::{name}"
        return f"::{self.owner if self.is_own_rule(name) else 'treadle'}::shape::{name}"

    @property
    def results(self) -> str:
        """Prefix of the types of results with named parts; Treadle's own have a module for them."""
        return f"{self.name}.return_types." if self.is_outside else ""

    def function(self, namespace: str, entry: str) -> tuple[str, str]:
        """The prefix and the header of an operator that formulas call, of the library or of
        Treadle's.
        """
        owner = self if namespace == self.name else TREE
        return owner.prefix, owner.header.format(entry)

    def helper_prefix(self, namespace: str) -> str:
        """The same of a helper."""
        return self.prefix if namespace == self.name else namespace

    def clone_headers(self, model: Model) -> Iterator[str]:
        """The header of Treadle's `clone`; none where the model has no such operator."""
        if "clone" in (self.base or model).headers:
            yield TREE.header.format("clone")


TREE = Library(
    name="aten",
    namespace="treadle::aten",
    owner="treadle",
    prefix="aten",
    symbol="",
    sharded={
        "ops.cc.j2": "aten/ops_{}.cc",
        "kernels_cpu.cc.j2": "aten/kernels_cpu_{}.cc",
        "variable_type.cc.j2": "autograd/variable_type_{}.cc",
        "bindings.cc.j2": "python_bindings/bindings_{}.cc",
    },
    whole={
        "shards.cc.j2": "aten/shards.cc",
        "functions.h.j2": "aten/functions.h",
        "tensor_methods.h.j2": "aten/tensor_methods.h",
        "elements-inl.h.j2": "aten/elements-inl.h",
        "binding_shards.cc.j2": "python_bindings/binding_shards.cc",
        "_operators.pyi.j2": "treadle/_operators.pyi",
    },
    header="aten/ops/{}.h",
    again="./dev show {}",
)


def outside(name: str, base: Model) -> Library:
    """A library outside: all its files are in a folder of its name, which is a Python package."""
    return Library(
        name=name,
        namespace=name,
        owner=name,
        prefix=f"::{name}",
        symbol=f"{name}_",
        sharded={
            "ops.cc.j2": f"{name}/ops_{{}}.cc",
            "kernels_cpu.cc.j2": f"{name}/kernels_cpu_{{}}.cc",
            "variable_type.cc.j2": f"{name}/variable_type_{{}}.cc",
            "bindings.cc.j2": f"{name}/bindings_{{}}.cc",
        },
        whole={
            "library.h.j2": f"{name}/library.h",
            "functions.h.j2": f"{name}/functions.h",
            "shards.cc.j2": f"{name}/shards.cc",
            "module.cc.j2": f"{name}/module.cc",
            "_operators.pyi.j2": f"{name}/_operators.pyi",
            "_operators.py.j2": f"{name}/_operators.py",
            "__init__.py.j2": f"{name}/__init__.py",
        },
        header=f"{name}/ops/{{}}.h",
        again="python -m treadle.codegen",
        base=base,
    )
