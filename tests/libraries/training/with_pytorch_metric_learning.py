"""pytorch-metric-learning: losses for embeddings."""

# SPDX-License-Identifier: Apache-2.0

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from uses import draw, main, settle, use


@use("losses with miners, distances and reducers")
def many():
    x, labels = draw(12, 8).requires_grad_(), torch.arange(12) % 3
    pairs = miners.MultiSimilarityMiner()(x, labels)
    found = [
        losses.TripletMarginLoss(
            distance=distances.CosineSimilarity(),
            reducer=reducers.ThresholdReducer(low=0),
            embedding_regularizer=regularizers.LpRegularizer(),
        )(x, labels),
        losses.ContrastiveLoss()(x, labels, pairs),
        losses.NTXentLoss()(x, labels),
        losses.SupConLoss()(x, labels),
        losses.CircleLoss()(x, labels),
    ]
    sum(found).backward()
    return [found, x.grad]


@use("losses with trainable weights")
def weights():
    arc = settle(losses.ArcFaceLoss(3, 8))
    proxy = settle(losses.ProxyAnchorLoss(3, 8))
    x, labels = draw(12, 8), torch.arange(12) % 3
    return [arc(x, labels), proxy(x, labels)]


if __name__ == "__main__":
    main("pytorch-metric-learning")
