"""Kullback and Leibler's divergence of distributions."""

from treadle.distributions.kl import between as _between, within as _within  # noqa: F401  entries
from treadle.distributions.kl.registry import (
    _KL_MEMOIZE as _KL_MEMOIZE,
    _KL_REGISTRY as _KL_REGISTRY,
    _dispatch_kl as _dispatch_kl,
    kl_divergence,
    register_kl,
)

__all__ = ["register_kl", "kl_divergence"]
