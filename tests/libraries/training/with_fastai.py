"""fastai: training with good defaults."""

# SPDX-License-Identifier: Apache-2.0

import numpy
import pandas
from fastai.basics import DataLoaders, Learner
from fastai.tabular.all import Categorify, Normalize, TabularDataLoaders, tabular_learner
from fastai.vision.all import accuracy, resnet18, unet_learner, vision_learner  # noqa: F401
from torch import nn
from uses import draw, main, settle, use


@use("fit by the one-cycle policy with a learner")
def fit():
    rows = [(x, int(i % 2)) for i, x in enumerate(draw(32, 4))]
    loaders = DataLoaders.from_dsets(rows, rows, bs=8, shuffle=False, num_workers=0, device="cpu")
    learner = Learner(
        loaders, settle(nn.Linear(4, 2)), loss_func=nn.CrossEntropyLoss(), metrics=accuracy
    )
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(2, 0.01)
        found = learner.validate()
        scores, _ = learner.get_preds()
    return [found[1] >= 0.0, scores.shape, len(learner.recorder.values)]


@use("a tabular model with numeric and categorical columns")
def table():
    rows = pandas.DataFrame(
        {"a": numpy.random.randn(40), "kind": ["x", "y"] * 20, "goal": [0, 1] * 20}
    )
    loaders = TabularDataLoaders.from_df(
        rows,
        procs=[Categorify, Normalize],
        cat_names=["kind"],
        cont_names=["a"],
        y_names="goal",
        bs=8,
        num_workers=0,
        device="cpu",
        y_block=None,
    )
    learner = tabular_learner(loaders, layers=[8], n_out=1, loss_func=nn.MSELoss())
    with learner.no_bar(), learner.no_logging():
        learner.fit(1)
    return [numpy.isfinite(learner.recorder.values[-1]).all().item()]


if __name__ == "__main__":
    main("fastai")
