"""The time of communication by the alpha-beta model.

A message of s bytes takes alpha + beta s seconds: `latency` and `per_byte` of a Link. Gloo sends it
when the receiver has said that it is ready, which takes alpha too, unless it said so before; only
small messages of collective functions go at once. A rank sends and receives at once, each with the
whole rate of its link. It spends `per_message` seconds on each message, which counts where it has
many. Sizes are those of the tensor in bytes, for all_gather and reduce_scatter of the longer side;
`ranks` is n in the formulas.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

# Where the engine "gloo" changes its algorithm, and the size of its segments.
FLAT, SEGMENT = 16384, 1 << 20


class Link(NamedTuple):
    """Seconds for a message, for each byte of it, and for each of several messages at once."""

    latency: float
    per_byte: float
    per_message: float = 0.0

    def send(self, size: float) -> float:
        """One message, whose receiver has said that it is ready."""
        return self.latency + self.per_byte * size

    def meet(self, size: float) -> float:
        """One message, whose receiver says so now."""
        return self.latency + self.send(size)

    def many(self, count: int, size: float) -> float:
        """So many messages of this size at once, to or from different ranks."""
        return self.latency + count * self.per_byte * size + max(count - 1, 0) * self.per_message


Cost = Callable[[Link, int, float], float]


def _rounds(ranks: int) -> int:
    return math.ceil(math.log2(ranks))


def _readiness(link: Link, ranks: int, size: float) -> float:
    """The time in which the receiver of a message of a collective function says that it is ready:
    none for a small message."""
    small = 16384 if ranks <= 64 else 2048
    return 0.0 if size <= small else link.latency


def point_to_point(link: Link, ranks: int, size: float) -> float:
    """2 alpha + beta s"""
    return link.meet(size)


def ring_all_reduce(link: Link, ranks: int, size: float) -> float:
    """2 (n - 1) (2 alpha + beta s / n): each part goes around twice."""
    return 2 * (ranks - 1) * link.meet(size / ranks)


def tree_all_reduce(link: Link, ranks: int, size: float) -> float:
    """log2(n) (3 alpha + 2 beta s): all is reduced to rank 0, then sent from there to ranks that
    have been ready since."""
    return _rounds(ranks) * (link.meet(size) + link.send(size))


def halving_doubling_all_reduce(link: Link, ranks: int, size: float) -> float:
    """4 log2(n) alpha + 2 (n - 1) / n beta s; where n is no power of 2, 2 alpha + beta s twice
    more, as the ranks above the power give their values to others."""
    power = 1 << (ranks.bit_length() - 1)
    extra = 0 if power == ranks else 2 * link.meet(size)
    steps = (link.meet(size / 2**step) for step in range(1, power.bit_length()))
    return extra + 2 * sum(steps)


def direct_all_reduce(link: Link, ranks: int, size: float) -> float:
    """Up to 16 KiB: all to all, alpha + (n - 1) beta s. Above: each rank reduces a part and gives
    it to all, 3 alpha + 2 (n - 1) / n beta s, with 2 alpha where the parts are small."""
    if size <= FLAT:
        return _readiness(link, ranks, size) + link.many(ranks - 1, size)
    return _readiness(link, ranks, size / ranks) + 2 * link.many(ranks - 1, size / ranks)


def direct_all_gather(link: Link, ranks: int, size: float) -> float:
    """2 alpha + (n - 1) / n beta s: each rank sends its part to all; alpha where it is small."""
    return _readiness(link, ranks, size / ranks) + link.many(ranks - 1, size / ranks)


# The same messages in the other direction, or in both.
direct_reduce_scatter = direct_all_to_all = direct_all_gather


def tree_broadcast(link: Link, ranks: int, size: float) -> float:
    """log2(n) (alpha + beta s), and alpha where it is not small"""
    return _readiness(link, ranks, size) + _rounds(ranks) * link.send(size)


def chain_broadcast(link: Link, ranks: int, size: float) -> float:
    """(n - 2) (alpha + beta segment) + 2 alpha + beta s: from rank to rank, in segments."""
    return (ranks - 2) * link.send(min(size, SEGMENT)) + link.meet(size)


def broadcast(link: Link, ranks: int, size: float) -> float:
    """A tree up to 16 KiB, a chain above."""
    return (tree_broadcast if size <= FLAT or ranks == 2 else chain_broadcast)(link, ranks, size)


def barrier(link: Link, ranks: int, size: float) -> float:
    """log2(n) alpha: after step k a rank knows of 2^k others."""
    return _rounds(ranks) * link.send(0)


# The costs of collectives of the engine "gloo", and of algorithms made of send() and recv().
OF_ENGINE: Dict[str, Cost] = {
    "send": point_to_point,
    "all_reduce": direct_all_reduce,
    "all_gather": direct_all_gather,
    "reduce_scatter": direct_reduce_scatter,
    "broadcast": broadcast,
    "all_to_all": direct_all_to_all,
    "barrier": barrier,
}
OF_ALGORITHMS: Dict[str, Cost] = {
    "ring all_reduce": ring_all_reduce,
    "tree all_reduce": tree_all_reduce,
    "halving-doubling all_reduce": halving_doubling_all_reduce,
}
ALL_REDUCE: Dict[str, Cost] = {
    "direct": direct_all_reduce,
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "halving-doubling": halving_doubling_all_reduce,
}


def fit(times: Sequence[Tuple[float, float]]) -> Link:
    """Latency and time for each byte, from pairs of size and seconds of single messages, which take
    2 alpha + beta s: the line with the least sum of squared relative errors. ValueError for fewer
    than two sizes."""
    if len({size for size, _ in times}) < 2:
        raise ValueError(f"fit: expected at least 2 sizes, got {len(times)} measurements of one")
    weights = [1 / seconds**2 for _, seconds in times]
    total = sum(weights)
    mean_size = sum(w * s for w, (s, _) in zip(weights, times)) / total
    mean_time = sum(w * t for w, (_, t) in zip(weights, times)) / total
    above = sum(w * (s - mean_size) * (t - mean_time) for w, (s, t) in zip(weights, times))
    below = sum(w * (s - mean_size) ** 2 for w, (s, _) in zip(weights, times))
    slope = max(above / below, 0.0)
    return Link(max(mean_time - slope * mean_size, 0.0) / 2, slope)


def fit_per_message(link: Link, times: Sequence[Tuple[int, float, float]]) -> Link:
    """The link with the time for each message, from ranks, size and seconds of all_gather: the mean
    of what the formula leaves, for each message beyond the first; 0 if it leaves nothing."""
    rest: List[float] = [
        (seconds - direct_all_gather(link._replace(per_message=0.0), ranks, size)) / (ranks - 2)
        for ranks, size, seconds in times
        if ranks > 2
    ]
    return link._replace(per_message=max(sum(rest) / len(rest), 0.0) if rest else 0.0)
