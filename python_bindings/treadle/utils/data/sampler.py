"""Samplers: orders in which to go through a dataset. Each is gone through anew for every epoch."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Generic, Iterable, Iterator, Optional, Sequence, Sized, TypeVar, Union, cast

from treadle import _C
from treadle._C import Generator

T_co = TypeVar("T_co", covariant=True)


def draw_seed(generator: Optional[Generator]) -> int:
    """A number to seed another generator with."""
    return int(_C.randint(0, 2**62, (1,), dtype=_C.int64, generator=generator).item())


# Numbers that are drawn independently are drawn when they are needed: so many in one call, as in
# PyTorch, or so many where a call has to look at all weights.
_AT_ONCE = 32
_MANY = 1 << 16


def _parts(count: int, size: int) -> Iterator[int]:
    """Sizes of parts, at most `size` each, that sum to `count`."""
    while count > 0:
        yield min(size, count)
        count -= size


class Sampler(Generic[T_co]):
    """Base of samplers: `__iter__` gives indices (or lists of them, for a batch sampler)."""

    def __init__(self, data_source: Any = None) -> None:
        """Nothing to set: `data_source` is taken for subclasses that pass one on."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def _require_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class RandomSampler(Sampler[int]):
    """All indices in random order; or num_samples of them, with `replacement` each drawn on its
    own."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: Optional[int] = None,
        generator: Optional[Generator] = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if num_samples is not None:
            _require_count("num_samples", num_samples)
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted = len(self.data_source), self.num_samples
        if count == 0:
            return
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed(None))
        if self.replacement:
            for part in _parts(wanted, _AT_ONCE):
                yield from _C.randint(
                    0, count, (part,), dtype=_C.int64, generator=generator
                ).tolist()
            return
        while wanted > 0:
            order = _C.randperm(count, generator=generator).tolist()
            yield from order[:wanted]
            wanted -= count

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Optional[Generator] = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in _C.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """num_samples indices, each index i with a probability in proportion to weights[i]."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Optional[Generator] = None,
    ) -> None:
        _require_count("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        given = _C.as_tensor(weights, dtype=_C.float64)
        if given.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(given.shape)}"
            )
        self.weights = given
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        # Draws without replacement depend on all that was drawn before.
        size = _MANY if self.replacement else self.num_samples
        for part in _parts(self.num_samples, size):
            drawn = _C.multinomial(self.weights, part, self.replacement, generator=self.generator)
            yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of batch_size indices of another sampler; the last may be shorter, unless drop_last."""

    def __init__(
        self, sampler: Union[Sampler[int], Iterable[int]], batch_size: int, drop_last: bool
    ) -> None:
        _require_count("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while True:
            batch = list(itertools.islice(indices, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(cast(Any, self.sampler)), self.batch_size)
        return full if self.drop_last or not rest else full + 1
