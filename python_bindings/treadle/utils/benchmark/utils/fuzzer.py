"""Random arguments for measurements: sizes from distributions, and tensors of these sizes.

Example:

    fuzzer = Fuzzer(
        parameters=[FuzzedParameter("n", 16, 1024, "loguniform")],
        tensors=[FuzzedTensor("x", size=("n", "n"))],
        seed=0,
    )
    for tensors, about, parameters in fuzzer.take(3): ...
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from treadle import _C
from treadle.random import manual_seed

# So many draws in a row may be refused before a fuzzer gives up.
_MOST_REFUSED = 1000


class ParameterAlias:
    """In a distribution: the value of another parameter."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number, or another value, that is drawn.

    distribution: "uniform" or "loguniform", for integers from minval to maxval or, where one of
    these is a float, for floats; or a dict from values to probabilities. With strict an alias among
    them must be of a parameter that is there. Raises ValueError for what does not fit.
    """

    def __init__(
        self,
        name: str,
        minval: Union[int, float, None] = None,
        maxval: Union[int, float, None] = None,
        distribution: Union[str, Dict[Any, float], None] = None,
        strict: bool = False,
    ) -> None:
        self._name, self.strict = name, strict
        self._minval, self._maxval = minval, maxval
        self._distribution = self._checked(distribution)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def _checked(self, distribution: Any) -> Any:
        if isinstance(distribution, dict):
            total = sum(distribution.values())
            if any(p < 0 for p in distribution.values()) or abs(total - 1) > 1e-5:
                raise ValueError(
                    f"{self._name}: expected probabilities that sum to 1, got {distribution}"
                )
            return {value: p / total for value, p in distribution.items()}
        if distribution not in ("uniform", "loguniform"):
            raise ValueError(
                f"{self._name}: expected distribution uniform, loguniform or a dict, got "
                f"{distribution!r}"
            )
        low = 0 if distribution == "loguniform" else -math.inf
        if self._minval is None or self._maxval is None or not low < self._minval <= self._maxval:
            raise ValueError(
                f"{self._name}: expected minval <= maxval{', above 0' * (low == 0)}, got "
                f"{self._minval} and {self._maxval}"
            )
        return distribution

    def sample(self, state: np.random.RandomState) -> Any:
        """A value."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            place = state.choice(len(values), p=list(self._distribution.values()))
            return values[int(place)]
        low: Any = self._minval
        high: Any = self._maxval
        whole = isinstance(low, int) and isinstance(high, int)
        if self._distribution == "uniform":
            return int(state.randint(low, high + 1)) if whole else float(state.uniform(low, high))
        drawn = 2 ** state.uniform(math.log2(low), math.log2(high + 1 if whole else high))
        return min(int(drawn), high) if whole else float(drawn)

    def _resolved(self, value: Any, known: Dict[str, Any]) -> Any:
        if not isinstance(value, ParameterAlias):
            return value
        if value.alias_to in known:
            return known[value.alias_to]
        if self.strict:
            raise ValueError(f"{self._name}: expected a parameter {value.alias_to}, got none")
        return value


class FuzzedTensor:
    """A tensor whose sizes are parameters.

    steps: how far its elements are apart in each dimension, 1 by default; probability_contiguous:
    how often its dimensions lie in memory in their order; min_elements, max_elements,
    max_allocation_bytes: what else is refused; dim_parameter: the parameter that says how many of
    the sizes are used; roll_parameter: the one by which they are turned; tensor_constructor: a
    function of size, dtype and all parameters in place of the random numbers.
    """

    def __init__(
        self,
        name: str,
        size: Tuple[Union[str, int], ...],
        steps: Optional[Tuple[Union[str, int], ...]] = None,
        probability_contiguous: float = 0.5,
        min_elements: Optional[int] = None,
        max_elements: Optional[int] = None,
        max_allocation_bytes: Optional[int] = None,
        dim_parameter: Optional[str] = None,
        roll_parameter: Optional[str] = None,
        dtype: Any = _C.float32,
        cuda: bool = False,
        tensor_constructor: Optional[Callable[..., Any]] = None,
    ) -> None:
        self._name, self._size, self._steps = name, size, steps
        self._probability_contiguous = probability_contiguous
        self._min_elements, self._max_elements = min_elements, max_elements
        self._max_allocation_bytes = max_allocation_bytes
        self._dim_parameter, self._roll_parameter = dim_parameter, roll_parameter
        self._dtype, self._cuda = dtype, cuda
        self._constructor = tensor_constructor

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: Any, dtype: Any, **kwargs: Any) -> Any:
        """Random numbers: normal ones, or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return _C.rand(size, dtype=dtype)
        return _C.randint(1, 127, size=size, dtype=dtype)

    def _sizes(self, params: Dict[str, Any]) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        def resolved(values: Sequence[Any]) -> List[int]:
            return [params.get(v, v) if isinstance(v, str) else v for v in values]

        size = resolved(self._size)
        steps = resolved(self._steps or (1,) * len(size))
        count = params[self._dim_parameter] if self._dim_parameter else len(size)
        turn = params[self._roll_parameter] if self._roll_parameter else 0
        pairs = [values[:count] for values in (size, steps)]
        if turn:
            pairs = [values[turn % count :] + values[: turn % count] for values in pairs]
        return tuple(pairs[0]), tuple(pairs[1])

    def satisfies_constraints(self, params: Dict[str, Any]) -> bool:
        """Whether a tensor of these parameters is neither too small nor too large."""
        size, steps = self._sizes(params)
        bytes_ = math.prod(s * step for s, step in zip(size, steps)) * self._dtype.itemsize
        most = (self._max_elements, self._max_allocation_bytes)
        return (
            math.prod(size) >= (self._min_elements or 0)
            and (most[0] is None or math.prod(size) <= most[0])
            and (most[1] is None or bytes_ <= most[1])
        )

    def _make_tensor(
        self, params: Dict[str, Any], state: np.random.RandomState
    ) -> Tuple[Any, Dict[str, Any]]:
        size, steps = self._sizes(params)
        whole = tuple(s * step for s, step in zip(size, steps))
        if self._constructor is not None:
            raw = self._constructor(size=whole, dtype=self._dtype, **params)
        else:
            raw = self.default_tensor_constructor(whole, self._dtype)
        raw = raw.cuda() if self._cuda else raw
        order = np.arange(len(size))
        if len(size) > 1 and state.rand() > self._probability_contiguous:
            while bool((order == np.arange(len(size))).all()):
                order = state.permutation(len(size))
            raw = raw.permute(tuple(map(int, order))).contiguous()
            raw = raw.permute(tuple(map(int, np.argsort(order))))
        tensor = raw[tuple(slice(0, s * step, step) for s, step in zip(size, steps))]
        return tensor, {
            "numel": int(tensor.numel()),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }


def _flattened(items: Sequence[Any]) -> List[Any]:
    return list(
        itertools.chain.from_iterable(i if isinstance(i, (list, tuple)) else [i] for i in items)
    )


class Fuzzer:
    """Draws parameters until they fulfil all constraints, and tensors of them.

    parameters and tensors may be lists in lists; constraints are functions of the parameters' dict.
    Raises ValueError for names that are there twice.
    """

    def __init__(
        self,
        parameters: List[Any],
        tensors: List[Any],
        constraints: Optional[List[Callable]] = None,
        seed: Optional[int] = None,
    ) -> None:
        self._seed = int(np.random.RandomState().randint(0, 2**31)) if seed is None else seed
        self._parameters: List[FuzzedParameter] = _flattened(parameters)
        self._tensors: List[FuzzedTensor] = _flattened(tensors)
        self._constraints = list(constraints or ())
        every: List[Any] = [*self._parameters, *self._tensors]
        names = [item.name for item in every]
        if len(set(names)) != len(names):
            raise ValueError(f"Fuzzer: expected each name once, got {names}")
        self._refused = self._drawn = 0

    @property
    def rejection_rate(self) -> float:
        """How many of the draws were refused, of 1."""
        return self._refused / self._drawn if self._drawn else 0.0

    def _draw(self, state: np.random.RandomState) -> Dict[str, Any]:
        for _ in range(_MOST_REFUSED):
            drawn = {p.name: p.sample(state) for p in self._parameters}
            found = {p.name: p._resolved(drawn[p.name], drawn) for p in self._parameters}
            self._drawn += 1
            if all(fits(found) for fits in self._constraints) and all(
                tensor.satisfies_constraints(found) for tensor in self._tensors
            ):
                return found
            self._refused += 1
        raise ValueError(
            f"Fuzzer: expected parameters that fulfil the constraints, got {_MOST_REFUSED} in a "
            "row that do not"
        )

    def take(self, n: int) -> Iterator[Tuple[Dict[str, Any], Dict[str, Any], Dict[str, Any]]]:
        """n times (tensors, what is said of each, parameters), each by name; the same again for the
        same seed, which counts for the tensors' elements, too."""
        state = np.random.RandomState(self._seed)
        manual_seed(int(state.randint(0, 2**31)))
        for _ in range(n):
            params = self._draw(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            tensors = {name: tensor for name, (tensor, _) in made.items()}
            yield tensors, {name: about for name, (_, about) in made.items()}, params


__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]
