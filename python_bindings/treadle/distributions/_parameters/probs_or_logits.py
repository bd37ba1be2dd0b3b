"""Distributions that are given probabilities or log-odds: each is computed from the other."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._C import Size, Tensor
from treadle.distributions.utils import lazy_property, logits_to_probs, probs_to_logits


def check_one_given(probs: Any, logits: Any) -> None:
    """ValueError unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits:
    """Mixin: `probs` and `logits`, of which __init__ keeps the one it was given, as `_param` also.
    `_is_binary` says whether the log-odds are those of a yes against a no.
    """

    _is_binary = True
    _param: Tensor

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds; logarithms of probabilities where there are more than two outcomes."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and `logits`."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)
