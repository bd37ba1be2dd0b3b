"""skorch: networks as scikit-learn's models."""

# SPDX-License-Identifier: Apache-2.0

import numpy
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, LRScheduler
from torch import nn
from uses import main, settle, use


class Net(nn.Module):
    def __init__(self, width=8, out=2):
        super().__init__()
        numpy.random.seed(1)
        self.layers = settle(nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, out)))

    def forward(self, x):
        return self.layers(x)


@use("fit, predict, a pipeline, a search over a grid")
def classify():
    x = numpy.random.randn(40, 4).astype("float32")
    y = (x.sum(1) > 0).astype("int64")
    net = NeuralNetClassifier(
        Net,
        max_epochs=5,
        lr=0.1,
        verbose=0,
        criterion=nn.CrossEntropyLoss,
        train_split=None,
        iterator_train__shuffle=False,
    )
    made = make_pipeline(StandardScaler(), net).fit(x, y)
    search = GridSearchCV(net, {"lr": [0.01, 0.1]}, cv=2).fit(x, y)
    return [made.predict_proba(x)[:2], made.score(x, y), search.best_score_]


@use("regression with callbacks")
def regress():
    x = numpy.random.randn(40, 4).astype("float32")
    net = NeuralNetRegressor(
        Net,
        module__out=1,
        max_epochs=4,
        verbose=0,
        optimizer=torch.optim.Adam,
        callbacks=[EarlyStopping(patience=3), LRScheduler("StepLR", step_size=2)],
        iterator_train__shuffle=False,
    )
    net.fit(x, x.sum(1, keepdims=True))
    return net.history[:, "train_loss"]


if __name__ == "__main__":
    main("skorch")
