"""Datasets: samples by index, or one after the other.

Example:

    class Squares(Dataset):
        def __len__(self): return 100
        def __getitem__(self, index): return index, index ** 2
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import bisect
import math
from itertools import accumulate
from typing import Any, Generic, Iterable, Iterator, List, Optional, Sequence, TypeVar, Union, cast

from treadle import _C
from treadle._C import Generator, Tensor

T_co = TypeVar("T_co", covariant=True)


def _require(condition: Any, message: str) -> None:
    """An assertion of PyTorch's, checked also where assertions are off."""
    if not condition:
        raise AssertionError(message)


class Dataset(Generic[T_co]):
    """Base of datasets with an index. Subclasses write `__getitem__`, and `__len__` where it is
    known.

    `__getitems__(indices)`, if there is one, gives the samples of a batch at once.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: "Dataset") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base of datasets that are only gone through. With several workers each goes through its own
    copy: `get_worker_info()` tells a worker which part is its own."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset) -> "ChainDataset":
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """Sample i is the tuple of the i-th entries of all tensors."""

    def __init__(self, *tensors: Tensor) -> None:
        sizes = [tensor.shape[0] for tensor in tensors]
        _require(
            len(set(sizes)) == 1, f"expected tensors of one first size, at least one, got {sizes}"
        )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class ConcatDataset(Dataset[T_co]):
    """Several datasets, one after the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        _require(self.datasets, "expected at least one dataset, got none")
        for dataset in self.datasets:
            _require(
                not isinstance(dataset, IterableDataset),
                "expected datasets with an index, got an IterableDataset",
            )
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> List[int]:
        """Where each dataset ends: the sums of their lengths."""
        return list(accumulate(len(part) for part in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if not -len(self) <= index < len(self):
            kind = ValueError if index < 0 else IndexError
            raise kind(f"expected an index within {len(self)} samples, got {index}")
        index %= len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Several datasets that are gone through one after the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            _require(
                isinstance(dataset, IterableDataset),
                f"expected an IterableDataset, got {type(dataset).__name__}",
            )
            yield dataset


class StackDataset(Dataset):
    """Several datasets of one length, side by side: sample i is the tuple of their samples i, or,
    for datasets given by name, a dict of them.

    StackDataset(images, labels)[3];  StackDataset(image=images, label=labels)[3]["label"]
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "expected datasets, either all by position or all by name, got "
                f"{len(args)} and {len(kwargs)}"
            )
        self.datasets: Union[tuple, dict] = args or kwargs
        lengths = [len(cast(Any, dataset)) for dataset in self._each()]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: they have {lengths} samples")
        self._length = lengths[0]

    def _each(self) -> list[Dataset]:
        datasets = self.datasets
        return list(datasets.values() if isinstance(datasets, dict) else datasets)

    def _sample(self, parts: Iterable) -> Union[tuple, dict]:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Union[tuple, dict]:
        return self._sample(dataset[index] for dataset in self._each())

    def __getitems__(self, indices: list) -> list:
        columns = []
        for dataset in self._each():
            many = getattr(dataset, "__getitems__", None)
            columns.append(many(indices) if callable(many) else [dataset[i] for i in indices])
            if len(columns[-1]) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch. "
                    f"Expected {len(indices)}, got {len(columns[-1])}"
                )
        return [self._sample(parts) for parts in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class Subset(Dataset[T_co]):
    """The samples of a dataset that the indices name."""

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        chosen = [self.indices[index] for index in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            several: Any = self.dataset
            return several.__getitems__(chosen)
        return [self.dataset[index] for index in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset, lengths: Sequence[Union[int, float]], generator: Optional[Generator] = None
) -> list[Subset]:
    """Split at random into parts that do not overlap. `lengths` are numbers, or fractions that sum
    to 1."""
    total = len(cast(Any, dataset))
    if (
        math.isclose(sum(lengths), 1)
        and sum(lengths) <= 1 + 1e-9
        and all(0 <= n <= 1 for n in lengths)
    ):
        counts = [math.floor(total * fraction) for fraction in lengths]
        for place in range(total - sum(counts)):
            counts[place % len(counts)] += 1
        lengths = counts
    if sum(lengths) != total or any(n < 0 for n in lengths):
        raise ValueError(
            f"random_split: expected lengths >= 0 that sum to {total} (or fractions that sum to "
            f"1), got {list(lengths)}"
        )
    order = _C.randperm(total, generator=generator).tolist()
    ends = list(accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(lengths, ends)]
