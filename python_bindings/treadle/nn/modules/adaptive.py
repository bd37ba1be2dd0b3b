"""The adaptive softmax: frequent classes are scored by one layer, and rare ones, in clusters, by
narrower layers behind it (Grave and others, "Efficient softmax approximation for GPUs", 2017).

    layer = nn.AdaptiveLogSoftmaxWithLoss(64, n_classes=10000, cutoffs=[500, 2000])
    output, loss = layer(hidden, target)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import namedtuple
from typing import Any, Iterator, Sequence

from treadle import _C
from treadle._C import Tensor

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """log p(class) of n_classes classes, which are numbered by falling frequency.

    The head scores the classes below cutoffs[0] and each cluster as a whole; cluster i holds the
    classes in [cutoffs[i], cutoffs[i + 1]), where the last ends at n_classes, and scores them from
    in_features / div_value ** (i + 1) features. log p of a class in a cluster is that of the
    cluster, plus that of the class within it. Clusters without a target are not computed.

    Raises:
        ValueError: cutoffs do not rise strictly, or are not integers in [1, n_classes - 1].
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        # Strictly rising from 1 to n_classes - 1.
        rising = all(low < high for low, high in zip([0, *cutoffs], [*cutoffs, n_classes]))
        if not rising or any(int(cutoff) != cutoff for cutoff in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                f"order, where each value is between 1 and n_classes-1, got {cutoffs} for "
                f"{n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters

        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for _, low, high in self._clusters():
            features = int(in_features // div_value ** (len(self.tail) + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, features, bias=False, **options),
                    Linear(features, high - low, bias=False, **options),
                )
            )

    def _clusters(self) -> Iterator[tuple[int, int, int]]:
        """The place of each cluster, its first class, and the one after its last."""
        for place, low in enumerate(self.cutoffs[:-1]):
            yield place, low, self.cutoffs[place + 1]

    def reset_parameters(self) -> None:
        """New weights, as those of Linear."""
        for layer in (
            self.head,
            *(layer for cluster in self.tail for layer in cluster),  # type: ignore[attr-defined]
        ):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """`output`, the log p of each target, and `loss`, its mean with the sign changed.

        Shapes: input (N, in_features) and target (N), or input (in_features) and target ().

        Raises:
            RuntimeError: the shapes do not fit, or a target is not in [0, n_classes).
        """
        if target_.dim() == 0:
            self._check_input_dim(input_, 1)
            output, loss = self.forward(input_.unsqueeze(0), target_.unsqueeze(0))
            return _ASMoutput(output.squeeze(0), loss)
        if target_.dim() != 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        self._check_input_dim(input_, 2)
        self._check_targets(target_)

        # The class that the head is to score for each target, and the score within the clusters.
        of_head = target_.clone()
        within = input_.new_zeros(target_.shape[0])
        for place, low, high in self._clusters():
            rows = ((target_ >= low) & (target_ < high)).nonzero().squeeze(1)
            if rows.numel() > 0:
                scores = F.log_softmax(self.tail[place](input_.index_select(0, rows)), dim=1)
                chosen = scores.gather(1, (target_[rows] - low).unsqueeze(1)).squeeze(1)
                within = within.index_copy(0, rows, chosen.to(within.dtype))
                of_head.index_fill_(0, rows, self.shortlist_size + place)
        head = F.log_softmax(self.head(input_), dim=1)
        output = within + head.gather(1, of_head.unsqueeze(1)).squeeze(1)
        return _ASMoutput(output, (-output).mean())

    @staticmethod
    def _check_input_dim(input: Tensor, dims: int) -> None:
        if input.dim() != dims:
            raise RuntimeError(
                f"{dims - 1}D target tensor expects {dims}D input tensors, but found inputs with "
                f"size {tuple(input.shape)}"
            )

    def _check_targets(self, target: Tensor) -> None:
        if target.numel() == 0:
            return
        low, high = target.min().item(), target.max().item()
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{low}, {high}] were found. "
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """log p of all classes (N, n_classes), of input (N, in_features)."""
        return self._all_classes(input, self.head(input))

    def _all_classes(self, input: Tensor, scores: Tensor) -> Tensor:
        """`scores` are those of the head."""
        head = F.log_softmax(scores, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for place, _, _ in self._clusters():
            whole = head[:, self.shortlist_size + place].unsqueeze(1)
            parts.append(F.log_softmax(self.tail[place](input), dim=1) + whole)
        return _C.cat(parts, dim=1)

    def predict(self, input: Tensor) -> Tensor:
        """The class (N) for each row of input (N, in_features): the one of the head's best score,
        or, where that is a cluster's, the one of the largest log p."""
        scores = self.head(input)
        classes = scores.argmax(dim=1)
        rows = (classes >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return classes
        best = self._all_classes(input[rows], scores[rows]).argmax(dim=1)
        return classes.index_copy(0, rows, best)
