"""Copies of a state dictionary, which async_save() writes while the program goes on."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Dict, Optional, Union

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.checkpoint._spread import is_spread
from treadle.distributed.checkpoint.metadata import STATE_DICT_TYPE


def _copied(value: Any, cached: Any, shared: bool = False) -> Any:
    """A copy of tensors and containers, into the tensors of a former copy where they fit. `shared`
    is whether tensors are in memory that other processes can have."""
    if is_spread(value):
        return _copied_spread(value, cached, shared)
    if isinstance(value, Tensor):
        value = value.detach()
        fits = (
            isinstance(cached, Tensor)
            and cached.shape == value.shape
            and cached.dtype == value.dtype
        )
        place = cached if fits else _C.empty_like(value, device="cpu")
        if shared and not fits:
            place.share_memory_()
        return place.copy_(value)
    if isinstance(value, dict):
        old = cached if isinstance(cached, dict) else {}
        return {key: _copied(entry, old.get(key), shared) for key, entry in value.items()}
    if type(value) in (list, tuple):
        same = type(cached) is type(value) and len(cached) == len(value)
        parts = zip(value, cached if same else [None] * len(value))
        return type(value)(_copied(entry, former, shared) for entry, former in parts)
    return copy.deepcopy(value)


def _copied_spread(value: Any, cached: Any, shared: bool) -> Any:
    part = _copied(value.to_local(), cached.to_local() if is_spread(cached) else None, shared)
    return type(value).from_local(
        part,
        value.device_mesh,
        value.placements,
        run_check=False,
        shape=value.shape,
        stride=value.stride(),
    )


class AsyncStager:
    """Makes the copies. One that returns a future may go on copying when stage() returns."""

    should_synchronize_after_execute = True

    def stage(self, state_dict: STATE_DICT_TYPE) -> Union[Future, STATE_DICT_TYPE]:
        """The copy of a state dictionary, or a future of it."""
        raise NotImplementedError(
            f"stage: expected {type(self).__name__} to copy {len(state_dict)} keys, got no method"
        )

    def synchronize_staging(self) -> None:
        """Wait for the copy."""

    def close(self) -> None:
        """Free what it holds."""


@dataclass
class StagingOptions:
    """How DefaultStager copies.

    use_shared_memory: whether tensors go to memory that other processes can have, for
        AsyncCheckpointerType.PROCESS.
    use_async_staging: whether the copy is made in a thread of its own.
    use_pinned_memory, use_non_blocking_copy: for devices; on the CPU they are refused.
    """

    use_pinned_memory: bool = False
    use_shared_memory: bool = False
    use_async_staging: bool = False
    use_non_blocking_copy: bool = False


class DefaultStager(AsyncStager):
    """Copies at once, or in a thread of its own: see StagingOptions."""

    def __init__(self, config: Optional[StagingOptions] = None) -> None:
        self._config = config or StagingOptions()
        for name in ("use_pinned_memory", "use_non_blocking_copy"):
            if getattr(self._config, name):
                raise ValueError(
                    f"DefaultStager: expected {name}=False, got True; copies are made on the CPU"
                )
        self._pool = ThreadPoolExecutor(1) if self._config.use_async_staging else None
        self._future: Optional[Future] = None

    def stage(self, state_dict: STATE_DICT_TYPE) -> Union[Future, STATE_DICT_TYPE]:
        if self._pool is None:
            return _copied(state_dict, None, self._config.use_shared_memory)
        shared = self._config.use_shared_memory
        self._future = self._pool.submit(_copied, state_dict, None, shared)
        return self._future

    def synchronize_staging(self) -> None:
        if self._future is not None:
            self._future.result()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)


class BlockingAsyncStager(AsyncStager):
    """Copies at once; with `cache_staged_state_dict` into the memory of the last copy."""

    should_synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        if type_check:
            raise ValueError("BlockingAsyncStager: expected type_check=False, got True")
        self.cache_staged_state_dict = cache_staged_state_dict
        self.state_dict_cache: Optional[STATE_DICT_TYPE] = None

    def __getstate__(self) -> Dict[str, Any]:
        """The attributes but for the copy, which does not go to another process."""
        return {**vars(self), "state_dict_cache": None}

    def stage(self, state_dict: STATE_DICT_TYPE) -> Dict[str, Any]:
        copied = _copied(state_dict, self.state_dict_cache)
        if self.cache_staged_state_dict:
            self.state_dict_cache = copied
        return copied


__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]
