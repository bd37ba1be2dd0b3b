"""Kullback and Leibler's divergence of distributions."""

# SPDX-License-Identifier: Apache-2.0

from treadle.distributions.kl import between as _between  # noqa: F401  entries
from treadle.distributions.kl import within as _within
from treadle.distributions.kl.registry import (
    _KL_MEMOIZE as _KL_MEMOIZE,
)
from treadle.distributions.kl.registry import (
    _KL_REGISTRY as _KL_REGISTRY,
)
from treadle.distributions.kl.registry import (
    _dispatch_kl as _dispatch_kl,
)
from treadle.distributions.kl.registry import (
    kl_divergence,
    register_kl,
)

__all__ = ["register_kl", "kl_divergence"]
