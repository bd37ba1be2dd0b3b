"""The text of the stubs.

Example:

    def add(input: Tensor, other: Tensor, *, alpha: Number = ...) -> Tensor: ...
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import keyword
from typing import Iterable

from ..shard import Shard
from .signatures import Binding, Signature, bindings, filled


def stub_bindings(shards: Iterable[Shard]) -> list[Binding]:
    found = [b for shard in shards for b in bindings(shard.entries)]
    return sorted(found, key=lambda b: (b.module, b.name))


def named_results(all_bindings: Iterable[Binding]) -> list[tuple[str, tuple[str, ...]]]:
    """Every result with named parts: (name, fields)."""
    found: dict[str, tuple[str, ...]] = {}
    for b in all_bindings:
        for s in b.signatures:
            if s.named_result:
                found.setdefault(s.entry.name, s.named_result)
    return sorted(found.items())


def stub_parameters(s: Signature, method: bool) -> str:
    """The parameter list of a stub: `self, other: Tensor, *, alpha: Number = ...`."""
    params = [p for i, p in enumerate(s.params) if not (method and i == s.self_index)]
    positional = [p for p in params if not p.keyword]
    keywords = [p for p in params if p.keyword]
    parts = ["self"] if method else []
    if len(positional) == 1 and positional[0].kind == "IntList":
        # The only one may be given as several: zeros(2, 3).
        parts.append(f"*{positional[0].name}: Any")
    else:
        optional = False  # a default makes all that follow optional
        for p in positional:
            optional = optional or bool(p.default_text)
            parts.append(f"{_name(p.python_name)}: {p.stub_type}" + (" = ..." if optional else ""))
        parts += ["*"] if keywords else []
    for p in keywords:
        default = " = ..." if p.default_text else ""
        parts.append(f"{_name(p.python_name)}: {p.stub_type}{default}")
    return ", ".join(parts)


def _name(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def stub_body(s: Signature, indent: int) -> str:
    """The body of a function in a stub: its entry's doc, which editors show."""
    if not s.entry.doc:
        return " ..."
    begin = "\n" + " " * indent
    text = filled(s.entry.doc).replace("\n", begin)
    return f'{begin}r"""{text}{" " if text.endswith(chr(34)) else ""}"""'
