"""The order of signatures, from more to less specific, and the pairs that have none."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Sequence, Set, Tuple

from treadle.fx.experimental.unification.multipledispatch.utils import _toposort
from treadle.fx.experimental.unification.multipledispatch.variadic import isvariadic

Signature = Tuple[Any, ...]


class AmbiguityWarning(Warning):
    """Warns of two signatures that fit the same call, of which none is more specific."""


def _is_open(signature: Sequence[Any]) -> bool:
    """Whether it ends with a place for any number of arguments."""
    return bool(signature) and isvariadic(signature[-1])


def supercedes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether signature `a` is at least as specific as `b`: each call for it also fits `b`."""
    if len(a) < len(b):
        return not a and len(b) == 1 and _is_open(b)
    if len(a) == len(b) or not _is_open(b):
        return len(a) == len(b) and all(map(issubclass, a, b))
    fixed = len(b) - 1
    return all(map(issubclass, a[:fixed], b)) and all(issubclass(t, b[-1]) for t in a[fixed:])


def _meet(a: Any, b: Any) -> bool:
    return issubclass(a, b) or issubclass(b, a)


def consistent(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether there may be a call that fits both signatures."""
    short, long = sorted((a, b), key=len)
    missing = len(long) - len(short)
    if missing and not short:
        return missing == 1 and _is_open(long)
    if missing and not _is_open(short):
        return False
    return all(map(_meet, [*short, *short[-1:] * missing], long))  # type: ignore[misc,operator]


def ambiguous(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether a call may fit both signatures and neither is more specific."""
    return consistent(a, b) and not (supercedes(a, b) or supercedes(b, a))


def ambiguities(signatures: Iterable[Sequence[Any]]) -> Set[Tuple[Signature, Signature]]:
    """The pairs that are ambiguous, without those that a third signature decides."""
    known = list(map(tuple, signatures))
    pairs = ((a, b) for i, a in enumerate(known) for b in known[i + 1 :] if ambiguous(a, b))
    return {
        (a, b) for a, b in pairs if not any(supercedes(c, a) and supercedes(c, b) for c in known)
    }


def super_signature(signatures: Sequence[Sequence[Any]]) -> List[Any]:
    """A signature that is under all of these, which have the same length: AssertionError."""
    if any(len(signature) != len(signatures[0]) for signature in signatures):
        lengths = sorted({len(signature) for signature in signatures})
        raise AssertionError(f"super_signature: expected signatures of one length, got {lengths}")
    return [max((type.mro(kind) for kind in place), key=len)[0] for place in zip(*signatures)]


def edge(a: Any, b: Any, tie_breaker: Callable[[Any], Any] = hash) -> bool:
    """Whether `a` is asked before `b`; of two that are as specific, the tie breaker decides."""
    if not supercedes(a, b):
        return False
    return not supercedes(b, a) or tie_breaker(a) > tie_breaker(b)


def ordering(signatures: Iterable[Sequence[Any]]) -> List[Signature]:
    """The signatures, the more specific before the less."""
    known = list(map(tuple, signatures))
    later = {a: [b for b in known if edge(a, b)] for a in known}
    # Those before others come first, as the order of what is equal depends on it.
    return _toposort(dict(sorted(later.items(), key=lambda item: not item[1])))


__all__ = [
    "AmbiguityWarning",
    "ambiguities",
    "ambiguous",
    "consistent",
    "edge",
    "ordering",
    "super_signature",
    "supercedes",
]
