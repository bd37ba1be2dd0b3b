"""Sequences of different lengths: packed (no padding at all) and padded to the longest.

Example:

    packed = pack_padded_sequence(batch, lengths, batch_first=True)
    output, state = nn.LSTM(4, 8)(packed)
    padded, lengths = pad_packed_sequence(output, batch_first=True)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Optional[Tensor]
    unsorted_indices: Optional[Tensor]


class PackedSequence(_Fields):
    """The rows of step 0 of all sequences, then of step 1, ...: `batch_sizes[t]` rows in step t,
    the longest sequence first. `sorted_indices` says which sequence of the batch became which."""

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Optional[Tensor] = None,
        sorted_indices: Optional[Tensor] = None,
        unsorted_indices: Optional[Tensor] = None,
    ) -> "PackedSequence":
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueError(
                    "batch_sizes should always be on CPU. Instances of PackedSequence should never "
                    "be created manually. They should be instantiated by functions like "
                    "pack_sequence and pack_padded_sequences in nn.utils.rnn."
                )
        else:
            data, batch_sizes = data  # the pair that early versions took
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The same sequences with data of another dtype or device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [
            None if index is None else index.to(data.device)
            for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def pin_memory(self) -> "PackedSequence":
        """The same sequences in pinned memory, where a device has that."""
        return type(self)(
            self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices
        )

    def cpu(self) -> "PackedSequence":
        """The same sequences on the CPU."""
        return self.to("cpu")

    def double(self) -> "PackedSequence":
        """The same sequences in float64."""
        return self.to(_C.float64)

    def float(self) -> "PackedSequence":
        """The same sequences in float32."""
        return self.to(_C.float32)

    def half(self) -> "PackedSequence":
        """The same sequences in float16."""
        return self.to(_C.float16)

    def byte(self) -> "PackedSequence":
        """The same sequences in uint8."""
        return self.to(_C.uint8)

    def char(self) -> "PackedSequence":
        """The same sequences in int8."""
        return self.to(_C.int8)

    def short(self) -> "PackedSequence":
        """The same sequences in int16."""
        return self.to(_C.int16)

    def cuda(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The same sequences on a CUDA device: as `Tensor.cuda`."""
        data = self.data.cuda(*args, **kwargs)
        return self.to(data.device)

    def long(self) -> "PackedSequence":
        """The same sequences in int64."""
        return self.to(_C.int64)

    def int(self) -> "PackedSequence":
        """The same sequences in int32."""
        return self.to(_C.int32)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Optional[Tensor]) -> Optional[Tensor]:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    places = _C.arange(permutation.numel(), device=permutation.device)
    return _C.empty_like(permutation).scatter_(0, permutation, places.to(permutation.dtype))


def pack_padded_sequence(
    input: Tensor,
    lengths: Union[Tensor, Sequence[int]],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack a padded batch (steps, batch, ...), or (batch, steps, ...) with batch_first.

    RuntimeError for a batch without elements, for lengths that are not one for each sequence, at
    least 1 and at most the steps, and for ones that grow where `enforce_sorted` says that they do
    not.
    """
    if input.numel() == 0:
        raise RuntimeError(
            "pack_padded_sequence: expected a batch with elements, got an empty tensor of shape "
            f"{tuple(input.shape)}"
        )
    if not isinstance(lengths, Tensor):
        lengths = _C.tensor(list(lengths), dtype=_C.int64)
    elif lengths.device.type != "cpu":
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor")
    lengths = lengths.to(_C.int64)
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = _C.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, sorted_indices.to(input.device))
    steps = input.transpose(0, 1) if batch_first else input
    numbers = lengths.tolist()
    if lengths.dim() != 1 or len(numbers) != steps.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(numbers)} "
            f"(batch_size={steps.shape[1]})"
        )
    if numbers[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in zip(numbers, numbers[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if numbers[0] > steps.shape[0]:
        raise RuntimeError(
            f"pack_padded_sequence: expected lengths of at most {steps.shape[0]} steps, got "
            f"{numbers[0]}"
        )
    pieces, sizes = [], []
    done, alive = 0, len(numbers)
    while alive:  # steps up to the end of the shortest sequence left have the same size
        end = numbers[alive - 1]
        piece = steps.narrow(0, done, end - done).narrow(1, 0, alive)
        pieces.append(piece.reshape((-1, *steps.shape[2:])))
        sizes += [alive] * (end - done)
        done = end
        while alive and numbers[alive - 1] == end:
            alive -= 1
    data = _C.cat(pieces) if len(pieces) > 1 else pieces[0]
    return PackedSequence(data, _C.tensor(sizes, dtype=_C.int64), sorted_indices)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: Optional[int] = None,
) -> tuple[Tensor, Tensor]:
    """The padded batch and the lengths that `sequence` was packed from."""
    sizes = sequence.batch_sizes.tolist()
    length, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    data = sequence.data
    # Where each row goes in the padded batch (steps * batch, ...).
    places = [step * batch + row for step, size in enumerate(sizes) for row in range(size)]
    index = _C.tensor(places, dtype=_C.int64, device=data.device)
    padded = data.new_full((length * batch, *data.shape[1:]), padding_value)
    padded = padded.index_copy(0, index, data).reshape((length, batch, *data.shape[1:]))
    lengths = [0] * batch
    for size in sizes:
        for row in range(size):
            lengths[row] += 1
    all_lengths = _C.tensor(lengths, dtype=_C.int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        all_lengths = all_lengths[sequence.unsorted_indices.cpu()]
    return padded, all_lengths


def pad_sequence(
    sequences: Union[Tensor, Sequence[Tensor]],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, ...) padded to the longest: (longest, batch, ...)."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: expected at least one sequence, got none")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest = max(sequence.shape[0] for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - sequence.shape[0]
        if missing:
            fill = sequence.new_full((missing, *sequence.shape[1:]), padding_value)
            pair = [sequence, fill] if padding_side == "right" else [fill, sequence]
            sequence = _C.cat(pair)
        padded.append(sequence)
    return _C.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences that a padded batch was made of."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows.unbind(0), lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (length, ...)."""
    lengths = _C.tensor([sequence.shape[0] for sequence in sequences], dtype=_C.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


if _C._backends():
    from treadle._device.install import install_on_sequences

    install_on_sequences(PackedSequence)
