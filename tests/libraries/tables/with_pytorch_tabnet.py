"""pytorch-tabnet: tables."""

# SPDX-License-Identifier: Apache-2.0

import os
import tempfile

import numpy
import torch
from pytorch_tabnet.tab_model import TabNetClassifier
from pytorch_tabnet.tab_network import TabNet
from uses import descend, draw, main, settle, use


@use("train a network with a categorical column, its masks")
def network():
    model = settle(
        TabNet(
            6,
            3,
            n_d=4,
            n_a=4,
            cat_idxs=[0],
            cat_dims=[5],
            cat_emb_dim=[2],
            virtual_batch_size=8,
            group_attention_matrix=torch.eye(6),
        )
    )
    x = torch.cat([torch.arange(16.0)[:, None] % 5, draw(16, 5)], 1)
    wanted = torch.arange(16) % 3

    def loss():
        scores, sparsity = model(x)
        return torch.nn.functional.cross_entropy(scores, wanted) - 1e-3 * sparsity

    losses = descend(model, loss)
    model.eval()
    return [losses, model(x)[0], model.forward_masks(x)[0]]


@use("fit a classifier, save and load it, explain its predictions")
def classifier():
    x = numpy.random.randn(64, 5).astype("float32")
    y = (x[:, 0] > 0).astype(int)
    settings = {"verbose": 0, "n_d": 4, "n_a": 4, "seed": 0}
    model = TabNetClassifier(optimizer_params={"lr": 0.05}, **settings)
    model.fit(x, y, eval_set=[(x, y)], max_epochs=20, batch_size=32, virtual_batch_size=16)
    with tempfile.TemporaryDirectory() as folder:
        path = model.save_model(os.path.join(folder, "model"))
        again = TabNetClassifier()
        again.load_model(path)
    same = numpy.allclose(model.predict_proba(x), again.predict_proba(x))
    return [bool(same), bool((model.predict(x) == y).mean() > 0.6), list(model.explain(x)[0].shape)]


if __name__ == "__main__":
    main("pytorch-tabnet")
