"""Functions that all processes of a group call together, each with its tensors.

Where values are reduced, the elements are split among the processes: each gets its part of all
tensors, reduces it in the order of ranks, and sends the result to all. So all have the same bits.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed import reduce_op
from treadle.distributed._world import group_of
from treadle.distributed.process_group import Call, ProcessGroup
from treadle.distributed.reduce_op import ReduceOp
from treadle.distributed.work import Work

Group = Optional[ProcessGroup]

# Below this many bytes one process reduces everything: two messages are few, many are not.
_SMALL = 4096


def _check(function: str, *tensors: Any) -> None:
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{function}: expected a tensor, got {type(tensor).__name__}")
        if tensor.device.type != "cpu":
            raise ValueError(f"{function}: expected a tensor on the cpu, got {tensor.device}")


def _check_list(function: str, name: str, tensors: Any, like: Tensor, size: int) -> None:
    """One tensor for each member, with the dtype of `like`."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{function}: expected {name} to be a list of tensors, got {type(tensors).__name__}"
        )
    _check(function, *tensors)
    if len(tensors) != size:
        raise ValueError(
            f"{function}: expected {name} to hold {size} tensors, one for each process, "
            f"got {len(tensors)}"
        )
    for tensor in tensors:
        if tensor.dtype != like.dtype:
            raise ValueError(
                f"{function}: expected tensors of one dtype, got {like.dtype} and {tensor.dtype}"
            )


def _place(
    function: str, group: ProcessGroup, name: str, rank: Optional[int], group_rank: Optional[int]
) -> int:
    """The member that `src` or `group_src` names; the first one where neither is given."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"{function}: expected {name} or group_{name}, got both")
    if rank is not None:
        return group.member(function, rank)
    place = 0 if group_rank is None else group_rank
    if not 0 <= place < group.size():
        raise ValueError(f"{function}: expected group_{name} in [0, {group.size()}), got {place}")
    return place


def _values(tensor: Tensor) -> Tensor:
    """The elements in their order, without gradient: a view where the tensor is contiguous."""
    return tensor.detach().contiguous().reshape(-1)


def _parts(flat: Tensor, size: int) -> List[Tensor]:
    """A part of the elements for each member."""
    count = flat.numel()
    if count * flat.element_size() <= _SMALL:
        bounds = [0] + [count] * size
    else:
        bounds = [count * i // size for i in range(size + 1)]
    return [flat[a:b] for a, b in zip(bounds, bounds[1:])]


def _reduced_part(call: Call, op: ReduceOp, parts: Sequence[Tensor]) -> Tensor:
    """This process's part of the elements, reduced over all processes."""
    me = call.group.rank()
    for other in call.others():
        call.send(other, parts[other])
    mine = []
    for member in range(call.group.size()):
        value = parts[me]
        if member != me:
            value = _C.empty_like(parts[me])
            call.receive_into(member, value)
        mine.append(value)
    return reduce_op.reduced(op, mine) if parts[me].numel() else parts[me]


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """Replace the tensor, of the same shape and dtype in all processes, by the sum of all, or what
    else `op` makes of them."""
    _check("all_reduce", tensor)
    reduce_op.check("all_reduce", op, tensor)
    members = group_of(group)
    if members is None:
        return None
    call = members.call("all_reduce")

    def task() -> None:
        flat = _values(tensor)
        parts = _parts(flat, members.size())
        mine = _reduced_part(call, op, parts)
        me = members.rank()
        for other in call.others():
            call.send(other, mine, step=1)
        with no_grad():
            parts[me].copy_(mine)
            for other in call.others():
                call.receive_into(other, parts[other], step=1)
            if not tensor.is_contiguous():
                tensor.detach().copy_(flat.reshape(tensor.shape))

    return members.start(task, [tensor], async_op)


def reduce(
    tensor: Tensor,
    dst: Optional[int] = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: Optional[int] = None,
) -> Optional[Work]:
    """As all_reduce(), where only the process `dst` gets the result."""
    _check("reduce", tensor)
    reduce_op.check("reduce", op, tensor)
    members = group_of(group)
    if members is None:
        return None
    root = _place("reduce", members, "dst", dst, group_dst)
    call = members.call("reduce")

    def task() -> None:
        mine = _values(tensor)
        if members.rank() != root:
            call.send(root, mine)
            return
        values = []
        for member in range(members.size()):
            value = mine
            if member != root:
                value = _C.empty_like(mine)
                call.receive_into(member, value)
            values.append(value)
        with no_grad():
            tensor.detach().copy_(reduce_op.reduced(op, values).reshape(tensor.shape))

    return members.start(task, [tensor], async_op)


def broadcast(
    tensor: Tensor,
    src: Optional[int] = None,
    group: Group = None,
    async_op: bool = False,
    group_src: Optional[int] = None,
) -> Optional[Work]:
    """Replace the tensor by that of the process `src`."""
    _check("broadcast", tensor)
    members = group_of(group)
    if members is None:
        return None
    root = _place("broadcast", members, "src", src, group_src)
    call = members.call("broadcast")

    def task() -> None:
        if members.rank() == root:
            for other in call.others():
                call.send(other, _values(tensor))
        else:
            call.receive_into(root, tensor)

    return members.start(task, [tensor], async_op)


def all_gather(
    tensor_list: List[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """Fill the list with the tensors of all processes, in the order of ranks."""
    _check("all_gather", tensor)
    members = group_of(group)
    if members is None:
        return None
    _check_list("all_gather", "tensor_list", tensor_list, tensor, members.size())
    return _gather_to_all(members, list(tensor_list), tensor, tensor_list, async_op)


def _gather_to_all(
    members: ProcessGroup, places: List[Tensor], tensor: Tensor, result: Any, async_op: bool
) -> Optional[Work]:
    call = members.call("all_gather")

    def task() -> None:
        mine = _values(tensor)
        for other in call.others():
            call.send(other, mine)
        with no_grad():
            places[members.rank()].detach().copy_(tensor.detach())
        for other in call.others():
            call.receive_into(other, places[other])

    return members.start(task, [result], async_op)


def _split(function: str, tensor: Tensor, size: int) -> List[Tensor]:
    """A tensor as one piece along the first dimension for each member."""
    rows = tensor.shape[0] if tensor.dim() else 0
    if tensor.dim() == 0 or rows % size:
        raise ValueError(
            f"{function}: expected a first dimension that {size} divides, got shape "
            f"{tuple(tensor.shape)}"
        )
    return list(tensor.detach().chunk(size)) if rows else [tensor.detach()] * size


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """As all_gather(), into one tensor: put together along the first dimension, or stacked."""
    _check("all_gather_into_tensor", output_tensor, input_tensor)
    members = group_of(group)
    if members is None:
        return None
    pieces = _split("all_gather_into_tensor", output_tensor, members.size())
    places = [piece.view(input_tensor.shape) for piece in pieces]
    _check_list("all_gather_into_tensor", "output_tensor", places, input_tensor, members.size())
    return _gather_to_all(members, places, input_tensor, output_tensor, async_op)


def gather(
    tensor: Tensor,
    gather_list: Optional[List[Tensor]] = None,
    dst: Optional[int] = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: Optional[int] = None,
) -> Optional[Work]:
    """Fill the list of the process `dst` with the tensors of all, in the order of ranks."""
    _check("gather", tensor)
    members = group_of(group)
    if members is None:
        return None
    root = _place("gather", members, "dst", dst, group_dst)
    is_root = members.rank() == root
    if is_root:
        _check_list("gather", "gather_list", gather_list, tensor, members.size())
    elif gather_list:
        raise ValueError("gather: expected a gather_list at dst only, got one elsewhere")
    call = members.call("gather")
    places = list(gather_list or [])

    def task() -> None:
        if not is_root:
            call.send(root, _values(tensor))
            return
        with no_grad():
            places[root].detach().copy_(tensor.detach())
        for other in call.others():
            call.receive_into(other, places[other])

    return members.start(task, [gather_list], async_op)


def scatter(
    tensor: Tensor,
    scatter_list: Optional[List[Tensor]] = None,
    src: Optional[int] = None,
    group: Group = None,
    async_op: bool = False,
    group_src: Optional[int] = None,
) -> Optional[Work]:
    """Replace the tensor by this process's one in the list of the process `src`."""
    _check("scatter", tensor)
    members = group_of(group)
    if members is None:
        return None
    root = _place("scatter", members, "src", src, group_src)
    is_root = members.rank() == root
    if is_root:
        _check_list("scatter", "scatter_list", scatter_list, tensor, members.size())
    elif scatter_list:
        raise ValueError("scatter: expected a scatter_list at src only, got one elsewhere")
    call = members.call("scatter")
    pieces = list(scatter_list or [])

    def task() -> None:
        if not is_root:
            call.receive_into(root, tensor)
            return
        for other in call.others():
            call.send(other, _values(pieces[other]))
        with no_grad():
            tensor.detach().copy_(pieces[root].detach())

    return members.start(task, [tensor], async_op)


def reduce_scatter(
    output: Tensor,
    input_list: List[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """Replace `output` by the sum of what all processes have for this one in their lists, or what
    else `op` makes of them."""
    _check("reduce_scatter", output)
    reduce_op.check("reduce_scatter", op, output)
    members = group_of(group)
    if members is None:
        return None
    _check_list("reduce_scatter", "input_list", input_list, output, members.size())
    call = members.call("reduce_scatter")
    pieces = list(input_list)

    def task() -> None:
        mine = _reduced_part(call, op, [_values(piece) for piece in pieces])
        with no_grad():
            output.detach().copy_(mine.reshape(output.shape))

    return members.start(task, [output], async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """As reduce_scatter(), from one tensor that is split along its first dimension."""
    _check("reduce_scatter_tensor", output, input)
    members = group_of(group)
    if members is None:
        return None
    pieces = _split("reduce_scatter_tensor", input, members.size())
    return reduce_scatter(output, pieces, op, group, async_op)


def all_to_all(
    output_tensor_list: List[Tensor],
    input_tensor_list: List[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """Send the i-th tensor of the input list to the i-th process, whose tensor for this one goes to
    the i-th of the output list."""
    members = group_of(group)
    if members is None:
        return None
    function, size = "all_to_all", members.size()
    like: Any = input_tensor_list[0] if input_tensor_list else None
    _check(function, like)
    _check_list(function, "input_tensor_list", input_tensor_list, like, size)
    _check_list(function, "output_tensor_list", output_tensor_list, like, size)
    call = members.call(function)
    inputs, outputs = list(input_tensor_list), list(output_tensor_list)

    def task() -> None:
        me = members.rank()
        for other in call.others():
            call.send(other, _values(inputs[other]))
        with no_grad():
            outputs[me].detach().copy_(inputs[me].detach())
        for other in call.others():
            call.receive_into(other, outputs[other])

    return members.start(task, [output_tensor_list], async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Optional[Sequence[int]] = None,
    input_split_sizes: Optional[Sequence[int]] = None,
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """As all_to_all(), with tensors that are split along their first dimension, into equal pieces
    or pieces of the given sizes."""
    _check("all_to_all_single", output, input)
    members = group_of(group)
    if members is None:
        return None

    def pieces(tensor: Tensor, sizes: Optional[Sequence[int]]) -> Tuple[Tensor, ...]:
        if not sizes:
            return tuple(_split("all_to_all_single", tensor, members.size()))
        return tuple(tensor.detach().split(list(sizes)))

    outputs, inputs = pieces(output, output_split_sizes), pieces(input, input_split_sizes)
    return all_to_all(list(outputs), list(inputs), group, async_op)


def barrier(group: Group = None, async_op: bool = False, device_ids: Any = None) -> Optional[Work]:
    """Return when all processes have come here. ValueError for device_ids: gloo has none."""
    if device_ids is not None:
        raise ValueError(f"barrier: expected no device_ids on the cpu, got {device_ids}")
    members = group_of(group)
    if members is None:
        return None
    call = members.call("barrier")
    return members.start(lambda: members.meet(call), [], async_op)


def monitored_barrier(
    group: Group = None, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """As barrier(). DistNetworkError names the process that does not come in time; of the first
    process, with `wait_all_ranks`, all that do not."""
    members = group_of(group)
    if members is None:
        return
    usual = members.timeout
    members.timeout = timeout or usual
    try:
        members.meet(members.call("barrier"), names_all=wait_all_ranks)
    finally:
        members.timeout = usual
