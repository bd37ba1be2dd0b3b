"""rearrange: permute, split and join dimensions by a pattern of their names.

Example:

    rearrange(images, "b c h w -> b h w c")
    rearrange(images, "b c (h p) w -> (b h) (p w) c", p=2)
    rearrange([x, y], "... -> ... 1")
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import re
from typing import Any, Dict, List, Sequence, Union

from treadle import _C
from treadle._C import Tensor

_TOKENS = re.compile(r"\s*(\.\.\.|\(|\)|[A-Za-z_][A-Za-z0-9_]*|\d+)")


_JOINED = "(..."  # the ellipsis as a part of one dimension


def _names(groups: List[List[str]]) -> List[str]:
    """All names, the ellipsis as one."""
    return ["..." if name == _JOINED else name for group in groups for name in group]


def _groups(side: str, pattern: str) -> List[List[str]]:
    """The dimensions of one side, each a list of names."""
    groups: List[List[str]] = []
    inside: Any = None  # the names of the parentheses that we are in
    at = 0
    while side[at:].strip():
        found = _TOKENS.match(side, at)
        token = found.group(1) if found else side[at:].strip()[0]
        at = found.end() if found else at
        if found is None or (token.isdigit() and token != "1"):
            raise ValueError(
                f"rearrange: expected names, ( ), 1 and ... , got {token!r} in {pattern!r}"
            )
        if token == "(" and inside is None:
            inside = []
        elif token == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif token in "()":
            raise ValueError(f"rearrange: expected pairs of parentheses, got {pattern!r}")
        else:
            names = [] if token == "1" else [token]
            if inside is None:
                groups.append(names)
            else:
                inside += [_JOINED] if token == "..." else names
    if inside is not None:
        raise ValueError(f"rearrange: expected pairs of parentheses, got {pattern!r}")
    names = _names(groups)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"rearrange: expected each name once, got {twice[0]!r} twice in {pattern!r}"
        )
    return groups


def _spread(groups: List[List[str]], many: List[str]) -> List[List[str]]:
    """The groups with names in place of the ellipsis."""
    result: List[List[str]] = []
    for group in groups:
        if group == ["..."]:
            result += [[name] for name in many]
        else:
            result.append([n for name in group for n in (many if name == _JOINED else [name])])
    return result


def _sizes(
    shape: Sequence[int], groups: List[List[str]], given: Dict[str, int], pattern: str
) -> Dict[str, int]:
    sizes = dict(given)
    for size, group in zip(shape, groups):
        unknown = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        fits = size == known if not unknown else known > 0 and size % known == 0
        if len(unknown) > 1 or not fits:
            raise ValueError(
                f"rearrange: expected the sizes of ({' '.join(group)}) to make {size}, got "
                f"{ {name: sizes.get(name) for name in group} } for {pattern!r}"
            )
        if unknown:
            sizes[unknown[0]] = size // known
    return sizes


def rearrange(
    tensor: Union[Tensor, List[Tensor], Sequence[Tensor]], pattern: str, **axes_lengths: int
) -> Tensor:
    """The tensor with its dimensions as the right side of the pattern says, whose left side names
    those that it has. Names in parentheses are one dimension, the last of them the fastest; `1` is
    one of size 1, `...` any number of them. The sizes that a pattern leaves open are given by name.
    A list of tensors is stacked first.

    ValueError for a pattern that is not one, and for sizes that do not fit it.
    """
    if not isinstance(tensor, Tensor):
        tensor = _C.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: expected a pattern with one ->, got {pattern!r}")
    left, right = (_groups(side, pattern) for side in sides)
    if sorted(_names(left)) != sorted(_names(right)):
        raise ValueError(f"rearrange: expected the same names on both sides, got {pattern!r}")
    if any(_JOINED in group for group in left):
        raise ValueError(f"rearrange: expected ... alone on the left side, got {pattern!r}")
    count = tensor.dim() - sum(group != ["..."] for group in left)
    has_many = ["..."] in left
    if count < 0 or (count and not has_many):
        raise ValueError(
            f"rearrange: expected a tensor of {len(left) - has_many} dimensions"
            f"{' or more' if has_many else ''} for {pattern!r}, got {tensor.dim()}"
        )
    many = [f".{i}" for i in range(count)]
    left = _spread(left, many)
    right = _spread(right, many)
    unknown = sorted(set(axes_lengths) - {n for g in left for n in g})
    if unknown:
        raise ValueError(f"rearrange: expected sizes of names in {pattern!r}, got {unknown[0]!r}")
    sizes = _sizes(tensor.shape, left, axes_lengths, pattern)
    names = [name for group in left for name in group]
    order = [names.index(name) for group in right for name in group]
    split = tensor.reshape([sizes[name] for name in names])
    return split.permute(order).reshape([math.prod(sizes[n] for n in g) for g in right])
