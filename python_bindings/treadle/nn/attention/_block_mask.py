"""BlockMask: which blocks of queries and keys a mask lets through, whole or in part."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle.nn.attention._lanes import evaluate, places

Tensor = _C.Tensor
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

_TENSORS = (
    "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices "
    "q_num_blocks q_indices full_q_num_blocks full_q_indices"
).split()


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that lets everything through."""
    return batch.new_ones((), dtype=_C.bool, device=batch.device)


def _sliced_mask_mod_error(
    batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> Tensor:
    raise RuntimeError(
        "flex_attention: expected a block_mask with a mask_mod of its own, got a part of another; "
        "Cannot use mask_mod from a sliced BlockMask"
    )


# ---- lists of blocks ----


def _dense_to_ordered(dense_mask: Tensor) -> Tuple[Tensor, Tensor]:
    """How many blocks each row has, and their columns, followed by the columns without one."""
    dense = dense_mask.to(_C.int32)
    order = _C.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1, dtype=_C.int32), order.to(_C.int32).contiguous()


def _ordered_to_dense(num_blocks_in_row: Tensor, col_indices: Tensor, num_cols: int) -> Tensor:
    """The matrix of blocks, int32, with 1 where there is one."""
    there = _C.arange(col_indices.shape[-1], device=col_indices.device)
    used = (there < num_blocks_in_row.unsqueeze(-1)).to(_C.int32)
    shape = (*col_indices.shape[:-1], num_cols + 1)
    # Entries that are not used go to a column of their own, which is cut off.
    columns = _C.where(used.bool(), col_indices.long(), num_cols)
    zeros = _C.zeros(shape, dtype=_C.int32, device=col_indices.device)
    return zeros.scatter(-1, columns, used)[..., :num_cols].contiguous()


def _blocks_along(length: int, size: int) -> int:
    return -(-length // size)


def _convert_mask_to_block_mask(
    mask: Tensor,
    Q_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    KV_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    separate_full_blocks: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    """The blocks that a mask (B, H, L, S) lets through in part, and those it does whole; without
    `separate_full_blocks`, all together and None. int8 of shape (B, H, blocks, blocks)."""
    from treadle import nn

    batch, heads, q_len, kv_len = mask.shape
    rows, columns = _blocks_along(q_len, Q_BLOCK_SIZE), _blocks_along(kv_len, KV_BLOCK_SIZE)
    # Elements behind the end are not let through, so that a block with some of them is never full.
    extra = (0, columns * KV_BLOCK_SIZE - kv_len, 0, rows * Q_BLOCK_SIZE - q_len)
    padded = nn.functional.pad(mask.to(_C.bool), extra, value=False)
    cut = padded.reshape(batch, heads, rows, Q_BLOCK_SIZE, columns, KV_BLOCK_SIZE)
    count = cut.sum(dim=(3, 5), dtype=_C.int64)
    if not separate_full_blocks:
        return (count > 0).to(_C.int8), None
    full = count == Q_BLOCK_SIZE * KV_BLOCK_SIZE
    return ((count > 0) & ~full).to(_C.int8), full.to(_C.int8)


def _convert_block_mask_to_mask(
    block_mask: Tensor,
    KV_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    Q_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
) -> Tensor:
    """The mask (B, H, L, S) of blocks that are let through."""
    rows = block_mask.repeat_interleave(Q_BLOCK_SIZE, dim=-2)
    return rows.repeat_interleave(KV_BLOCK_SIZE, dim=-1)


def _create_sparse_block_from_block_mask(
    block_mask: Tuple[Tensor, Optional[Tensor]],
    mask_mod: Optional[_mask_mod_signature],
    seq_lengths: Tuple[int, int],
    Q_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
    KV_BLOCK_SIZE: int = _DEFAULT_SPARSE_BLOCK_SIZE,
) -> "BlockMask":
    """The BlockMask of matrices of blocks: of those in part, and of whole ones."""
    partial, full = block_mask
    number, indices = _dense_to_ordered(partial)
    of_full: Tuple[Any, Any] = (None, None) if full is None else _dense_to_ordered(full)
    size = (Q_BLOCK_SIZE, KV_BLOCK_SIZE)
    return BlockMask.from_kv_blocks(number, indices, *of_full, size, mask_mod, seq_lengths)


Index = Union[int, slice, Tensor, Tuple[Union[int, slice, Tensor], ...]]


class BlockMask:
    """A mask over pairs of queries and keys, by blocks of BLOCK_SIZE = (queries, keys).

    For each block of queries: `kv_num_blocks` (B, H, rows) and `kv_indices` (B, H, rows, columns)
    say which blocks of keys it sees in part, as `mask_mod` says for each pair;
    `full_kv_num_blocks` and `full_kv_indices` which it sees whole. The names with q are the same
    from the side of the keys. B and H of 1 hold for all.
    """

    def __init__(
        self,
        seq_lengths: Tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Optional[Tensor],
        full_kv_indices: Optional[Tensor],
        q_num_blocks: Optional[Tensor],
        q_indices: Optional[Tensor],
        full_q_num_blocks: Optional[Tensor],
        full_q_indices: Optional[Tensor],
        BLOCK_SIZE: Tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: _mask_mod_signature = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError(
                "BlockMask: expected kv_indices of at least 2 dimensions, got shape "
                f"{tuple(kv_indices.shape)}"
            )
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise RuntimeError(
                "BlockMask: expected both full_kv_num_blocks and full_kv_indices, or neither"
            )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Optional[Tensor] = None,
        full_kv_indices: Optional[Tensor] = None,
        BLOCK_SIZE: Union[int, Tuple[int, int]] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Optional[_mask_mod_signature] = None,
        seq_lengths: Optional[Tuple[int, int]] = None,
        compute_q_blocks: bool = True,
    ) -> "BlockMask":
        """The mask of the blocks that each block of queries sees. Lengths that are not given are
        those of whole blocks."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if kv_indices.dim() < 2:
            raise RuntimeError(
                "from_kv_blocks: expected kv_indices of at least 2 dimensions, got shape "
                f"{tuple(kv_indices.shape)}"
            )
        rows, columns = kv_indices.shape[-2:]
        lengths = (rows * size[0], columns * size[1]) if seq_lengths is None else seq_lengths

        def of_keys(number: Optional[Tensor], indices: Optional[Tensor]) -> Tuple[Any, Any]:
            if number is None or indices is None or not compute_q_blocks:
                return None, None
            dense = _ordered_to_dense(number, indices, columns)
            return _dense_to_ordered(dense.transpose(-2, -1))

        return cls(
            lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *of_keys(kv_num_blocks, kv_indices),
            *of_keys(full_kv_num_blocks, full_kv_indices),
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
        )

    # ---- what it lets through ----

    def _dense(self, number: Optional[Tensor], indices: Optional[Tensor]) -> Optional[Tensor]:
        if number is None or indices is None:
            return None
        columns = _blocks_along(self.seq_lengths[1], self.BLOCK_SIZE[1])
        return _ordered_to_dense(number, indices, max(columns, indices.shape[-1]))

    def to_dense(self) -> Tensor:
        """The matrix of blocks, int32, with 1 where one is let through, whole or in part."""
        partial = self._dense(self.kv_num_blocks, self.kv_indices)
        assert partial is not None
        full = self._dense(self.full_kv_num_blocks, self.full_kv_indices)
        return partial if full is None else partial | full

    def _visible(self, q_len: int, kv_len: int, numbers: Sequence[Tensor]) -> Tensor:
        """The mask of all pairs, for queries and keys of these lengths."""
        if self.seq_lengths != (q_len, kv_len):
            raise RuntimeError(
                f"flex_attention: expected a block_mask for {q_len} queries and {kv_len} keys, got "
                f"one that was created for {self.seq_lengths[0]} and {self.seq_lengths[1]}"
            )
        sizes = numbers[0].shape[0], numbers[1].shape[1]
        own = self.kv_num_blocks.shape[:-1]
        if any(mine not in (1, size) for mine, size in zip(reversed(own), reversed(sizes))):
            raise RuntimeError(
                f"flex_attention: expected a block_mask for a batch of {sizes[0]} with {sizes[1]} "
                f"heads, got one for {' and '.join(map(str, own))}"
            )
        whole = {"Q_BLOCK_SIZE": self.BLOCK_SIZE[0], "KV_BLOCK_SIZE": self.BLOCK_SIZE[1]}

        def spread(blocks: Tensor) -> Tensor:
            return _convert_block_mask_to_mask(blocks, **whole)[..., :q_len, :kv_len].bool()

        visible = evaluate(self.mask_mod, numbers).to(_C.bool)
        partial = self._dense(self.kv_num_blocks, self.kv_indices)
        assert partial is not None
        visible = visible & spread(partial)
        full = self._dense(self.full_kv_num_blocks, self.full_kv_indices)
        return visible if full is None else visible | spread(full)

    # ---- sizes ----

    @property
    def shape(self) -> Tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many pairs there are."""
        result = 1
        for size in self.shape:
            result *= size
        return result

    def sparsity(self) -> float:
        """How many of 100 blocks are left out."""
        dense = self.to_dense()
        return 100.0 * (1.0 - int(dense.sum()) / dense.numel()) if dense.numel() else 0.0

    # ---- parts and places ----

    def __getitem__(self, index: Index) -> "BlockMask":
        """The part for some batches, heads and blocks of queries. Its mask_mod cannot be called,
        as it would be asked about other numbers; a part is to be given one."""
        given = index if isinstance(index, tuple) else (index,)
        places_ = [slice(i, i + 1) if isinstance(i, int) and i != -1 else i for i in given]
        keep = tuple(slice(-1, None) if isinstance(i, int) else i for i in places_)

        def part(x: Optional[Tensor]) -> Optional[Tensor]:
            return None if x is None else x[keep]

        number = self.kv_num_blocks
        q_len = self.seq_lengths[0]
        if len(keep) == number.dim():
            rows = _C.arange(number.shape[-1])[keep[-1]].reshape(-1).tolist()
            size = self.BLOCK_SIZE[0]
            q_len = sum(min(size, q_len - row * size) for row in rows)
        return BlockMask.from_kv_blocks(
            number[keep],
            self.kv_indices[keep],
            part(self.full_kv_num_blocks),
            part(self.full_kv_indices),
            self.BLOCK_SIZE,
            _sliced_mask_mod_error,
            (q_len, self.seq_lengths[1]),
            self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> "BlockMask":
        """The mask for other lengths: cut off, or with nothing let through beyond the old ones."""
        from treadle import nn

        rows = _blocks_along(new_q_len, self.BLOCK_SIZE[0])
        columns = _blocks_along(new_kv_len, self.BLOCK_SIZE[1])

        def changed(number: Optional[Tensor], indices: Optional[Tensor]) -> Tuple[Any, Any]:
            dense = self._dense(number, indices)
            if dense is None:
                return None, None
            extra = (0, columns - dense.shape[-1], 0, rows - dense.shape[-2])
            return _dense_to_ordered(nn.functional.pad(dense, extra))

        return BlockMask.from_kv_blocks(
            *changed(self.kv_num_blocks, self.kv_indices),
            *changed(self.full_kv_num_blocks, self.full_kv_indices),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )

    def to(self, device: Any) -> "BlockMask":
        """The mask with its tensors on a device."""
        moved: Any = [None if x is None else x.to(device) for x in self._tensors()]
        moved += [self.BLOCK_SIZE, self.mask_mod]
        return BlockMask(self.seq_lengths, *moved)

    def _tensors(self) -> List[Any]:
        return [getattr(self, name) for name in _TENSORS]

    def as_tuple(self, flatten: bool = True) -> Tuple[Any, ...]:
        """The lengths, the tensors, the sizes of blocks and mask_mod; `flatten`: the pairs among
        these one by one."""
        if flatten:
            return (*self.seq_lengths, *self._tensors(), *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *self._tensors(), self.BLOCK_SIZE, self.mask_mod)

    # ---- pictures ----

    def to_string(self, grid_size: Union[int, Tuple[int, int]] = (20, 20), limit: int = 4) -> str:
        """A picture of at most so many rows and columns (-1: all), for the first `limit` batches
        and heads: ██ is a place where all blocks are let through, ░░ one where some are."""
        dense = self.to_dense()
        rows, columns = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        pictures = dense.reshape(-1, *dense.shape[-2:])
        lines = []
        for number, blocks in enumerate(pictures[:limit]):
            lines.append(str(_place(number, dense.shape[:-2])))
            lines += _picture(blocks.bool().tolist(), rows, columns)
        if len(pictures) > limit:
            lines.append(f"... and {len(pictures) - limit} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        return (
            f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
            f"{self.to_string()}\n)"
        )

    def __repr__(self) -> str:
        shapes = [
            f"    {name}={None if x is None else x.shape},"
            for name, x in zip(_TENSORS, self._tensors())
        ]
        ends = [
            f"    BLOCK_SIZE={self.BLOCK_SIZE},",
            f"    shape={self.shape},",
            f"    sparsity={self.sparsity():.2f}%,",
            f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}",
        ]
        return "\n".join(["BlockMask(", *shapes, *ends, ")"])


def _place(number: int, sizes: Sequence[int]) -> Tuple[int, ...]:
    place: List[int] = []
    for size in reversed(sizes):
        number, rest = divmod(number, size)
        place.insert(0, rest)
    return tuple(place)


def _picture(blocks: List[List[bool]], rows: int, columns: int) -> List[str]:
    if not blocks or not blocks[0]:
        return []

    def step(length: int, most: int) -> int:
        return 1 if most < 0 else _blocks_along(length, min(length, most))

    down, right = step(len(blocks), rows), step(len(blocks[0]), columns)
    lines = []
    for top in range(0, len(blocks), down):
        line = ""
        for left in range(0, len(blocks[0]), right):
            cell = [b for row in blocks[top : top + down] for b in row[left : left + right]]
            line += "██" if all(cell) else "░░" if any(cell) else "  "
        lines.append(line)
    return lines


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: Optional[int],
    H: Optional[int],
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: Union[int, Tuple[int, int]] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The mask of mask_mod(b, h, q_idx, kv_idx), which says whether a query sees a key.

    `B` and `H` are None where the mask is the same for all batches or heads. With
    `separate_full_blocks`, blocks that are let through whole are known as such. ValueError for
    blocks without a size.
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    if min(size) < 1:
        raise ValueError(f"create_block_mask: expected BLOCK_SIZE > 0, got {BLOCK_SIZE}")
    numbers = places(B or 1, H or 1, Q_LEN, KV_LEN, device=device)
    mask = evaluate(mask_mod, numbers).to(_C.bool)
    blocks = _convert_mask_to_block_mask(mask, *size, separate_full_blocks)
    return _create_sparse_block_from_block_mask(blocks, mask_mod, (Q_LEN, KV_LEN), *size)
