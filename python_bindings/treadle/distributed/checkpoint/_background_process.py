"""The process that writes what async_save() copied, where the program asks for one: it takes no
time of the program's own, which may hold Python's lock for long.

Each process of a group has one, and these are a group too. They find each other by the store of the
program's group. They end with the processes that started them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
import signal
import threading
import weakref
from datetime import timedelta
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed.checkpoint._full_state import mapped
from treadle.distributed.checkpoint._spread import is_here, is_spread, local_box, local_part
from treadle.distributed.checkpoint._transport import packed, unpacked
from treadle.distributed.checkpoint.api import _is_wrapped_exception, _wrap_exception
from treadle.distributed.checkpoint.metadata import Metadata
from treadle.distributed.checkpoint.planner import SavePlanner, WriteItem, WriteItemType
from treadle.distributed.checkpoint.planner_helpers import _write_item
from treadle.distributed.checkpoint.storage import StorageWriter
from treadle.distributed.checkpoint.utils import _DistWrapper
from treadle.distributed.groups import store_of
from treadle.distributed.store import FileStore, PrefixStore, Store, TCPStore

_numbers = itertools.count()  # of the processes that this one started


class _Place(NamedTuple):
    """The place of a process among those that write: the store by which they find each other."""

    kind: str  # tcp or file
    address: Any
    prefix: str
    secret: str
    timeout: timedelta
    rank: int
    world_size: int

    def store(self) -> Store:
        if self.kind == "file":
            return PrefixStore(self.prefix, FileStore(self.address, self.world_size))
        host, port = self.address
        store = TCPStore(
            host, port, timeout=self.timeout, wait_for_workers=False, secret=self.secret
        )
        return PrefixStore(self.prefix, store)


def _place_in(group: dist.ProcessGroup) -> Optional[_Place]:
    """The place of the process that this one starts; None where it is alone."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if size == 1:
        return None
    store = store_of()
    root: Any = store
    while isinstance(root, PrefixStore):
        root = root.underlying_store
    prefix = f"async_save/{group.group_name}/{next(_numbers)}"
    if isinstance(root, TCPStore):
        address, secret = (root.host, root.port), root._secret.decode()
        return _Place("tcp", address, prefix, secret, root.timeout, rank, size)
    if isinstance(root, FileStore):
        return _Place("file", root.path, prefix, "", root.timeout, rank, size)
    raise ValueError(
        "async_save: expected a TCPStore or a FileStore as the store of the group, for other "
        f"processes to find it, got a {type(root).__name__}"
    )


class Box:
    """The part of a DTensor that a process has. It stands for the DTensor in the process that
    writes, which has no mesh."""

    def __init__(self, tensor: Any) -> None:
        self.shape = tuple(tensor.shape)
        self.part: Optional[Tensor] = None  # None where the process is not in the mesh
        if is_here(tensor):
            self.part, self.box = local_part(tensor), local_box(tensor)

    def numel(self) -> int:
        """The elements of the DTensor."""
        return math.prod(self.shape)

    def __create_write_items__(self, fqn: str, value: Any) -> List[WriteItem]:
        if self.part is None:
            return []
        return [_write_item(fqn, value, self.part, self.box, WriteItemType.SHARD)]

    def __get_tensor_shard__(self, index: Any) -> Any:
        return self.part


class _Request(NamedTuple):
    state: Dict[str, Any]
    writer: StorageWriter
    planner: Optional[SavePlanner]
    use_collectives: bool


class _Refusal(NamedTuple):
    """A save that this process cannot do."""

    text: str
    use_collectives: bool


def _refuse(group: _DistWrapper, refusal: _Refusal) -> None:
    """Take part in a save that this process cannot do, so that all raise."""

    def fail() -> Any:
        raise RuntimeError(refusal.text)

    if refusal.use_collectives:
        group.reduce_scatter("plan", fail, lambda plans: plans)
    else:
        group.all_gather("write", fail)


def _serve(requests: Any, replies: Any, place: Optional[_Place]) -> None:
    """The body of the process."""
    from treadle.distributed.checkpoint.state_dict_saver import _save_state_dict

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the program, whose end ends this
    failure: Optional[BaseException] = None
    try:
        if place is not None:
            dist.init_process_group(
                "gloo", store=place.store(), rank=place.rank, world_size=place.world_size
            )
    except Exception as error:
        failure = error
    group = _DistWrapper(None, dist.is_initialized(), 0)
    while True:
        try:
            request = requests.recv()
        except EOFError:
            return
        try:
            if failure is not None:
                raise failure
            if isinstance(request, _Refusal):
                _refuse(group, request)
            state, writer, planner, use_collectives = request
            result: Any = _save_state_dict(state, writer, group, planner, use_collectives)
        except BaseException as error:
            result = error if hasattr(error, "failures") else _wrap_exception(error)
        replies.send_bytes(packed(result))


class Saver:
    """The process beside this one."""

    def __init__(self, place: Optional[_Place]) -> None:
        from treadle.multiprocessing import get_context

        context = get_context("spawn")
        received, self._requests = context.Pipe(duplex=False)
        self._replies, sent = context.Pipe(duplex=False)
        self._process = context.Process(
            target=_serve, args=(received, sent, place), daemon=True, name="async_save"
        )
        self._process.start()
        received.close()
        sent.close()
        self._turn = threading.Lock()

    def save(self, request: _Request) -> Metadata:
        """Save, and wait for it. RuntimeError if the process has ended."""
        state = mapped(request.state, lambda tensor: Box(tensor) if is_spread(tensor) else tensor)
        with self._turn:
            try:
                try:
                    self._requests.send(request._replace(state=state))
                except (OSError, EOFError):
                    raise
                except Exception as error:  # what cannot be sent
                    text = (
                        "async_save: expected a state, a writer and a planner that can be pickled, "
                        f"got {type(error).__name__}: {error}"
                    )
                    self._requests.send(_Refusal(text, request.use_collectives))
                content = self._replies.recv_bytes()
            except (OSError, EOFError):
                self._process.join(5)
                raise RuntimeError(
                    "async_save: expected an answer of the process that saves, but it has ended "
                    f"with exit code {self._process.exitcode}"
                ) from None
        result = unpacked(content)
        if isinstance(result, BaseException):
            raise result
        if _is_wrapped_exception(result):
            raise result[0]
        return result

    def is_alive(self) -> bool:
        """Whether the process is there."""
        return bool(self._process.is_alive())


_savers: Any = weakref.WeakKeyDictionary()  # by group
_alone: List[Saver] = []
_starting = threading.Lock()


def saver_of(group: Optional[dist.ProcessGroup]) -> Callable[[_Request], Metadata]:
    """The function that saves in the process beside this one, together with those of the group;
    without a group it saves alone. The process is started where there is none."""
    with _starting:
        if group is None:
            if not _alone or not _alone[0].is_alive():
                _alone[:] = [Saver(None)]
            return _alone[0].save
        if group not in _savers:
            _savers[group] = Saver(_place_in(group))
        return _savers[group].save


__all__ = ["Box", "Saver", "saver_of"]
