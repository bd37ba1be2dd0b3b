"""How far or how alike vectors are: along one dimension, or of all pairs of rows. These are the
operators themselves."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from .._operators import ops

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]

cosine_similarity = ops.cosine_similarity
pairwise_distance = ops.pairwise_distance
pdist = ops.pdist
