"""The iterators of DataLoader by the names that programs ask for."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import treadle
from treadle.utils.data import DataLoader, IterableDataset, TensorDataset
from treadle.utils.data import dataloader as module


class Few(IterableDataset):
    def __iter__(self):
        return iter(range(3))


def test_an_iterator_is_of_its_class() -> None:
    loader = DataLoader(TensorDataset(treadle.arange(5)), batch_size=2)
    iterator = iter(loader)
    assert type(iterator) is module._SingleProcessDataLoaderIter
    assert isinstance(iterator, module._BaseDataLoaderIter) and len(iterator) == 3
    batches = [batch[0].tolist() for batch in module._SingleProcessDataLoaderIter(loader)]
    assert batches == [[0, 1], [2, 3], [4]]
    assert loader._dataset_kind == module._DatasetKind.Map
    assert DataLoader(Few())._dataset_kind == module._DatasetKind.Iterable


def test_an_iterator_with_workers_of_its_own() -> None:
    loader = DataLoader(TensorDataset(treadle.arange(4)), batch_size=2, num_workers=1)
    iterator = module._MultiProcessingDataLoaderIter(loader)
    assert isinstance(iterator, module._BaseDataLoaderIter)
    assert [batch[0].tolist() for batch in iterator] == [[0, 1], [2, 3]]
    assert not iterator._pool.alive


def test_other_names() -> None:
    from treadle.serialization import MAP_LOCATION
    from treadle.utils.data._utils.collate import np_str_obj_array_pattern

    assert np_str_obj_array_pattern.search("<U3") and not np_str_obj_array_pattern.search("<f4")
    assert type(None) in MAP_LOCATION.__args__


def test_an_iterator_over_a_loader_of_another_class() -> None:
    """A library's own loader, which has the attributes that PyTorch's has."""

    class Own:
        dataset, _dataset_kind = range(3), module._DatasetKind.Iterable
        generator, drop_last, pin_memory, pin_memory_device = None, False, False, ""
        _auto_collation, _index_sampler = False, iter(range(9))

        def collate_fn(self, sample):
            return sample * 10

    assert list(module._SingleProcessDataLoaderIter(Own())) == [0, 10, 20]
