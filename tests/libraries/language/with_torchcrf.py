"""pytorch-crf: the likeliest row of labels."""

# SPDX-License-Identifier: Apache-2.0

import torch
from torchcrf import CRF
from uses import draw, main, settle, use


@use("train and decode")
def rows():
    field, scores = settle(CRF(4)), draw(5, 2, 4).requires_grad_()
    labels = torch.tensor([[0, 1], [2, 3], [1, 1], [0, 2], [3, 0]])
    loss = -field(scores, labels)
    loss.backward()
    return [loss, scores.grad, field.transitions.grad, field.decode(scores)]


if __name__ == "__main__":
    main("pytorch-crf")
