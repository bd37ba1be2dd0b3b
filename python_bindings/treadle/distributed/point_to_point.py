"""Tensors from one process to another: send() and recv()."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, Optional

from treadle._C import Tensor
from treadle.distributed.collectives import Group, _check, _members, _place
from treadle.distributed.work import Work


def _check_tag(function: str, tag: int) -> None:
    if tag < 0:
        raise ValueError(f"{function}: expected tag >= 0, got {tag}")


def isend(
    tensor: Tensor,
    dst: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_dst: Optional[int] = None,
) -> Optional[Work]:
    """As send(), with a handle; the tensor is in use until its wait() has returned."""
    return _send("isend", tensor, dst, group, tag, group_dst)


def _send(
    function: str,
    tensor: Tensor,
    dst: Optional[int],
    group: Group,
    tag: int,
    group_dst: Optional[int],
) -> Optional[Work]:
    _check(function, tensor)
    _check_tag(function, tag)
    members = _members(function, group, tensor)
    if members is None:
        return None
    to = _place(function, members, "dst", dst, group_dst)
    if to == members.rank():
        raise ValueError(f"{function}: expected another process, got this one, rank {dst}")
    return members.send([tensor], to, tag)


def send(
    tensor: Tensor,
    dst: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_dst: Optional[int] = None,
) -> None:
    """Send a tensor. Returns when the other process receives it; a small tensor is copied, and does
    not wait for that. Messages of one tag, size and dtype arrive in order."""
    work = _send("send", tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def irecv(
    tensor: Tensor,
    src: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_src: Optional[int] = None,
) -> Optional[Work]:
    """As recv(), with a handle: the tensor has the data when its wait() has returned."""
    return _receive("irecv", tensor, src, group, tag, group_src)


def _receive(
    function: str,
    tensor: Tensor,
    src: Optional[int],
    group: Group,
    tag: int,
    group_src: Optional[int],
) -> Optional[Work]:
    _check(function, tensor)
    _check_tag(function, tag)
    members = _members(function, group, tensor)
    if members is None:
        return None
    if src is None and group_src is None:
        return members.recv_anysource([tensor], tag)
    source = _place(function, members, "src", src, group_src)
    if source == members.rank():
        raise ValueError(f"{function}: expected another process, got this one, rank {src}")
    return members.recv([tensor], source, tag)


def recv(
    tensor: Tensor,
    src: Optional[int] = None,
    group: Group = None,
    tag: int = 0,
    group_src: Optional[int] = None,
) -> int:
    """Receive into a tensor, of the dtype and size of the one that is sent. Without `src` from the
    process whose data comes first. Returns the sender's rank; -1 outside the group."""
    work = _receive("recv", tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    members = _members("recv", group, tensor)
    assert members is not None
    if src is None and group_src is None:
        return members.members[work._source_rank()]
    return members.members[_place("recv", members, "src", src, group_src)]


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
