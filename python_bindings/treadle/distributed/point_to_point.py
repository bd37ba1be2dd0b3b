"""Tensors from one process to another: send() and recv()."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, Optional

from treadle._C import Tensor
from treadle.distributed._world import group_of
from treadle.distributed.collectives import Group, _check, _place, _values
from treadle.distributed.process_group import bytes_of
from treadle.distributed.work import LateWork, Work


def _check_tag(function: str, tag: int) -> None:
    if tag < 0:
        raise ValueError(f"{function}: expected tag >= 0, got {tag}")


def send(
    tensor: Tensor,
    dst: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_dst: Optional[int] = None,
) -> None:
    """Send a tensor. Returns when it is on its way; messages of one tag arrive in order."""
    _check("send", tensor)
    _check_tag("send", tag)
    members = group_of(group)
    if members is None:
        return
    to = _place("send", members, "dst", dst, group_dst)
    if to == members.rank():
        raise ValueError(f"send: expected another process, got this one, rank {dst}")
    members.send(to, tag, bytes_of(_values(tensor)))


def recv(
    tensor: Tensor,
    src: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_src: Optional[int] = None,
) -> int:
    """Receive into a tensor, of the dtype and size of the one that is sent. Without `src` from the
    process whose data comes first. Returns the sender's rank; -1 outside the group."""
    _check("recv", tensor)
    _check_tag("recv", tag)
    members = group_of(group)
    if members is None:
        return -1
    if src is None and group_src is None:
        return members.take_any(tag, "recv", tensor)
    source = _place("recv", members, "src", src, group_src)
    members.take(members.announce(source, tag), "recv", tensor)
    return members.members[source]


def isend(
    tensor: Tensor,
    dst: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_dst: Optional[int] = None,
) -> Optional[Work]:
    """As send(), with a handle."""
    if group_of(group) is None:
        return None
    work = Work([tensor])
    work.run(lambda: send(tensor, dst, group, tag, group_dst))
    return work


def irecv(
    tensor: Tensor,
    src: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_src: Optional[int] = None,
) -> Optional[Work]:
    """As recv(), with a handle: its wait() writes the tensor. Without `src` it waits at once."""
    members = group_of(group)
    if members is None:
        return None
    if src is None and group_src is None:
        work = Work([tensor])
        work.run(lambda: _dropped(recv(tensor, None, group, tag)))
        return work
    _check("irecv", tensor)
    _check_tag("irecv", tag)
    key = members.announce(_place("irecv", members, "src", src, group_src), tag)
    return LateWork(
        [tensor],
        lambda: members.take(key, "irecv", tensor),
        lambda: members.has(key),
        lambda timeout: members.await_message(key, "irecv", timeout),
    )


def _dropped(_: Any) -> None:
    pass


class P2POp:
    """An isend() or irecv() of batch_isend_irecv()."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: Optional[int] = None,
        group: Group = None,
        tag: int = 0,
        group_peer: Optional[int] = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(f"P2POp: expected op to be isend or irecv, got {op}")
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: List[P2POp]) -> List[Work]:
    """Begin all of them; returns their handles."""
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("batch_isend_irecv: expected a list of P2POp")
    works = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in works if work is not None]
