"""rotary-embedding-torch: positions as turns."""

# SPDX-License-Identifier: Apache-2.0

import torch  # noqa: F401  before the library, which imports it
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from uses import draw, main, use


@use("rotate queries and keys, with a cache and over several axes")
def turn():
    one = RotaryEmbedding(dim=8)
    q, k = draw(1, 2, 6, 8), draw(1, 2, 6, 8)
    scaled = RotaryEmbedding(dim=8, use_xpos=True)
    axes = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=16)
    return [
        one.rotate_queries_or_keys(q),
        one.rotate_queries_with_cached_keys(q[:, :, -1:], k)[0],
        scaled.rotate_queries_and_keys(q, k),
        apply_rotary_emb(axes.get_axial_freqs(3, 3), draw(1, 3, 3, 8)),
    ]


if __name__ == "__main__":
    main("rotary-embedding-torch")
