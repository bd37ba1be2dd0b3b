"""Functions that all processes of a group call together, each with its tensors.

Where values are reduced, that happens in the order of ranks, whatever the size: all processes get
the same bits, in each run.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from treadle._C import Tensor
from treadle.distributed import options, reduce_op
from treadle.distributed._world import group_of
from treadle.distributed.coalescing import postponed
from treadle.distributed.process_group import ProcessGroup
from treadle.distributed.reduce_op import AnyOp, ReduceOp
from treadle.distributed.work import Work

Group = Optional[ProcessGroup]


def _check(function: str, *tensors: Any) -> None:
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{function}: expected a tensor, got {type(tensor).__name__}")


def _members(function: str, group: Group, tensor: Tensor) -> Group:
    """The group, by default that of all, which has a transport for the tensor; None outside."""
    members = group_of(group)
    if members is not None:
        members._has(function, tensor)
    return members


def _ended(work: Work, async_op: bool) -> Optional[Work]:
    """The handle where the program asked for it; else its end."""
    if async_op:
        return work
    work.wait()
    return None


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


def all_reduce(
    tensor: Tensor, op: AnyOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """Replace the tensor, of the same shape and dtype in all processes, by the sum of all, or what
    else `op` makes of them."""
    _check("all_reduce", tensor)
    reduce_op.check("all_reduce", op, tensor)
    members = _members("all_reduce", group, tensor)
    if members is None:
        return None
    opts = options.AllreduceOptions(op, asyncOp=async_op)
    if postponed(members, "allreduce", [tensor], opts):
        return None
    return _ended(members.allreduce([tensor], opts), async_op)


def all_reduce_coalesced(
    tensors: List[Tensor], op: AnyOp = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """As all_reduce(), of several tensors of one dtype in one call."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check("all_reduce_coalesced", *tensors)
    members = _members("all_reduce_coalesced", group, tensors[0])
    if members is None:
        return None
    _check_list("all_reduce_coalesced", "tensors", tensors, tensors[0], len(tensors))
    reduce_op.check("all_reduce_coalesced", op, tensors[0])
    opts = options.AllreduceCoalescedOptions(op, asyncOp=async_op)
    return _ended(members.allreduce_coalesced(tensors, opts), async_op)


def reduce(
    tensor: Tensor,
    dst: Optional[int] = None,
    op: AnyOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: Optional[int] = None,
) -> Optional[Work]:
    """As all_reduce(), where only the process `dst` gets the result."""
    _check("reduce", tensor)
    reduce_op.check("reduce", op, tensor)
    members = _members("reduce", group, tensor)
    if members is None:
        return None
    root = _place("reduce", members, "dst", dst, group_dst)
    opts = options.ReduceOptions(op, root, asyncOp=async_op)
    return _ended(members.reduce([tensor], opts), async_op)


def broadcast(
    tensor: Tensor,
    src: Optional[int] = None,
    group: Group = None,
    async_op: bool = False,
    group_src: Optional[int] = None,
) -> Optional[Work]:
    """Replace the tensor by that of the process `src`."""
    _check("broadcast", tensor)
    members = _members("broadcast", group, tensor)
    if members is None:
        return None
    root = _place("broadcast", members, "src", src, group_src)
    opts = options.BroadcastOptions(root, asyncOp=async_op)
    return _ended(members.broadcast([tensor], opts), async_op)


def all_gather(
    tensor_list: List[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """Fill the list with the tensors of all processes, in the order of ranks."""
    _check("all_gather", tensor)
    members = _members("all_gather", group, tensor)
    if members is None:
        return None
    _check_list("all_gather", "tensor_list", tensor_list, tensor, members.size())
    opts = options.AllgatherOptions(asyncOp=async_op)
    return _ended(members.allgather([tensor_list], [tensor], opts), async_op)


def all_gather_coalesced(
    output_tensor_lists: List[List[Tensor]],
    input_tensor_list: List[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """As all_gather(), of several tensors: output_tensor_lists[rank][i] becomes the i-th tensor of
    that process."""
    function = "all_gather_coalesced"
    _check(function, *input_tensor_list)
    members = _members(function, group, input_tensor_list[0])
    if members is None:
        return None
    for i, tensor in enumerate(input_tensor_list):
        outputs = [each[i] for each in output_tensor_lists]
        _check_list(function, "output_tensor_lists", outputs, tensor, members.size())
    opts = options.AllgatherOptions(asyncOp=async_op)
    work = members.allgather_coalesced(output_tensor_lists, input_tensor_list, opts)
    return _ended(work, async_op)


def _check_whole(function: str, name: str, whole: Tensor, piece: Tensor, size: int) -> None:
    """A tensor of the dtype of `piece`, with as many elements for each process."""
    if whole.dtype != piece.dtype:
        raise ValueError(
            f"{function}: expected tensors of one dtype, got {piece.dtype} and {whole.dtype}"
        )
    if whole.numel() != piece.numel() * size or (whole.dim() == 0 and size > 1):
        raise ValueError(
            f"{function}: expected {name} with {size} times {piece.numel()} elements, got shape "
            f"{tuple(whole.shape)}"
        )


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """As all_gather(), into one tensor: put together along the first dimension, or stacked."""
    function = "all_gather_into_tensor"
    _check(function, output_tensor, input_tensor)
    members = _members(function, group, input_tensor)
    if members is None:
        return None
    _check_whole(function, "output_tensor", output_tensor, input_tensor, members.size())
    opts = options.AllgatherOptions(asyncOp=async_op)
    if postponed(members, "_allgather_base", (output_tensor, input_tensor), opts):
        return None
    return _ended(members._allgather_base(output_tensor, input_tensor, opts), async_op)


def all_gather_single(
    output: Tensor, input: Tensor, group: Group = None, async_op: bool = False
) -> Optional[Work]:
    """As all_gather_into_tensor()."""
    return all_gather_into_tensor(output, input, group, async_op)


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
    members = _members("gather", group, tensor)
    if members is None:
        return None
    root = _place("gather", members, "dst", dst, group_dst)
    is_root = members.rank() == root
    if is_root:
        _check_list("gather", "gather_list", gather_list, tensor, members.size())
    elif gather_list:
        raise ValueError("gather: expected a gather_list at dst only, got one elsewhere")
    opts = options.GatherOptions(root, asyncOp=async_op)
    outputs = [gather_list] if is_root and gather_list is not None else []
    return _ended(members.gather(outputs, [tensor], opts), async_op)


def gather_single(
    tensor: Tensor,
    gather_tensor: Optional[Tensor] = None,
    dst: Optional[int] = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: Optional[int] = None,
) -> Optional[Work]:
    """As gather(), into one contiguous tensor with room for those of all processes."""
    function = "gather_single"
    _check(function, tensor)
    members = _members(function, group, tensor)
    if members is None:
        return None
    root = _place(function, members, "dst", dst, group_dst)
    if members.rank() != root:
        return gather(tensor, None, None, members, async_op, root)
    _check(function, gather_tensor)
    assert gather_tensor is not None
    _check_whole(function, "gather_tensor", gather_tensor, tensor, members.size())
    if not gather_tensor.is_contiguous():
        raise ValueError(f"{function}: expected a contiguous gather_tensor, got one that is not")
    pieces = gather_tensor.detach().view(members.size(), -1)
    places = [piece.view(tensor.shape) for piece in pieces]
    return gather(tensor, places, None, members, async_op, root)


def gather_into_tensor(
    tensor: Tensor,
    gather_tensor: Optional[Tensor] = None,
    dst: Optional[int] = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: Optional[int] = None,
) -> Optional[Work]:
    """As gather_single()."""
    return gather_single(tensor, gather_tensor, dst, group, async_op, group_dst)


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
    members = _members("scatter", group, tensor)
    if members is None:
        return None
    root = _place("scatter", members, "src", src, group_src)
    is_root = members.rank() == root
    if is_root:
        _check_list("scatter", "scatter_list", scatter_list, tensor, members.size())
    elif scatter_list:
        raise ValueError("scatter: expected a scatter_list at src only, got one elsewhere")
    opts = options.ScatterOptions(root, asyncOp=async_op)
    inputs = [scatter_list] if is_root and scatter_list is not None else []
    return _ended(members.scatter([tensor], inputs, opts), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: List[Tensor],
    op: AnyOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """Replace `output` by the sum of what all processes have for this one in their lists, or what
    else `op` makes of them."""
    _check("reduce_scatter", output)
    reduce_op.check("reduce_scatter", op, output)
    members = _members("reduce_scatter", group, output)
    if members is None:
        return None
    _check_list("reduce_scatter", "input_list", input_list, output, members.size())
    mine = input_list[members.rank()]
    if mine.numel() != output.numel():
        raise ValueError(
            f"reduce_scatter: expected an output with {mine.numel()} elements, as this process has "
            f"in input_list, got {output.numel()}"
        )
    opts = options.ReduceScatterOptions(op, asyncOp=async_op)
    return _ended(members.reduce_scatter([output], [input_list], opts), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: AnyOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """As reduce_scatter(), from one tensor that is split along its first dimension."""
    function = "reduce_scatter_tensor"
    _check(function, output, input)
    reduce_op.check(function, op, output)
    members = _members(function, group, output)
    if members is None:
        return None
    _check_whole(function, "input", input, output, members.size())
    opts = options.ReduceScatterOptions(op, asyncOp=async_op)
    if postponed(members, "_reduce_scatter_base", (output, input), opts):
        return None
    return _ended(members._reduce_scatter_base(output, input, opts), async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: AnyOp = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """As reduce_scatter_tensor()."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


def all_to_all(
    output_tensor_list: List[Tensor],
    input_tensor_list: List[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Optional[Work]:
    """Send the i-th tensor of the input list to the i-th process, whose tensor for this one goes to
    the i-th of the output list."""
    function = "all_to_all"
    like: Any = input_tensor_list[0] if input_tensor_list else None
    _check(function, like)
    members = _members(function, group, like)
    if members is None:
        return None
    size = members.size()
    _check_list(function, "input_tensor_list", input_tensor_list, like, size)
    _check_list(function, "output_tensor_list", output_tensor_list, like, size)
    opts = options.AllToAllOptions(asyncOp=async_op)
    return _ended(members.alltoall(output_tensor_list, input_tensor_list, opts), async_op)


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
    function = "all_to_all_single"
    _check(function, output, input)
    members = _members(function, group, input)
    if members is None:
        return None
    _check_list(function, "output", [output], input, 1)
    opts = options.AllToAllOptions(asyncOp=async_op)
    work = members.alltoall_base(
        output, input, list(output_split_sizes or ()), list(input_split_sizes or ()), opts
    )
    return _ended(work, async_op)


def barrier(group: Group = None, async_op: bool = False, device_ids: Any = None) -> Optional[Work]:
    """Return when all processes have come here. ValueError for device_ids where the group has no
    transport for devices."""
    members = group_of(group)
    if members is None:
        return None
    if device_ids is not None:
        if members.__dict__.get("_backends", {}).keys() == {"cpu"}:
            raise ValueError(f"barrier: expected no device_ids on the cpu, got {device_ids}")
        opts = options.BarrierOptions(list(device_ids), asyncOp=async_op)
    else:
        opts = options.BarrierOptions(asyncOp=async_op)
    return _ended(members.barrier(opts), async_op)


def monitored_barrier(
    group: Group = None, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """As barrier(). DistNetworkError names the process that does not come in time; of the first
    process, with `wait_all_ranks`, all that do not."""
    members = group_of(group)
    if members is not None:
        members.monitored_barrier(timeout, wait_all_ranks)
