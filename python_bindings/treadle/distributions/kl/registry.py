"""The table of divergences, and how the entry for two distributions is found."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Callable

from treadle._C import Tensor
from treadle.distributions.distribution import Distribution

Divergence = Callable[[Any, Any], Tensor]

# The entries of register_kl(), and the results of lookups.
_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Decorator: the function computes the divergence of a `type_p` from a `type_q`.

        @register_kl(Normal, Normal)
        def kl_normal_normal(p, q): ...

    A call takes the entry for the nearest superclasses of its arguments. Where an entry is nearer
    by the first and another by the second, the first argument decides, with a RuntimeWarning; one
    entered for the pair itself settles it. Classes that only behave as distributions will do.
    TypeError for what is no class.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"register_kl: expected {name} to be a class, got {given!r}")

    def decorator(fun: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _is_nearer(one: tuple[type, ...], other: tuple[type, ...]) -> bool:
    """Whether the first class in which the two differ is a subclass in `one`."""
    for a, b in zip(one, other):
        if a is not b:
            return issubclass(a, b)
    return True


def _nearest(candidates: list[tuple[type, type]]) -> tuple[type, type]:
    best = candidates[0]
    for candidate in candidates[1:]:
        if not _is_nearer(best, candidate):
            best = candidate
    return best


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The entry for two classes, NotImplemented where there is none."""
    found = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not found:
        return NotImplemented
    left = _nearest(found)
    right_q, right_p = _nearest([(q, p) for p, q in found])
    left_fun, right_fun = _KL_REGISTRY[left], _KL_REGISTRY[right_p, right_q]
    if left_fun is not right_fun:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left_fun


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Kullback and Leibler's divergence of `p` from `q`, the mean under `p` of
    log(p(x)) - log(q(x)), of the batch shape of the two. NotImplementedError for a pair of classes
    without an entry.
    """
    types = type(p), type(q)
    if types not in _KL_MEMOIZE:
        _KL_MEMOIZE[types] = _dispatch_kl(*types)
    fun = _KL_MEMOIZE[types]
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} "
            f"and q type {q.__class__.__name__}"
        )
    return fun(p, q)
