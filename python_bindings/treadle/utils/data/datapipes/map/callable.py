"""Mapper: a function of each sample."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

from ..datapipe import MapDataPipe, functional_datapipe


def default_fn(data: Any) -> Any:
    """The sample as it is."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn(sample) for each sample."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable = default_fn) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


__all__ = ["MapperMapDataPipe", "default_fn"]
