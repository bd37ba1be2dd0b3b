"""botorch: where to try next."""

# SPDX-License-Identifier: Apache-2.0

import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound, qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from uses import main, use


def model():
    x = torch.linspace(0, 1, 8, dtype=torch.float64)[:, None]
    return SingleTaskGP(x, (6 * x).sin())


@use("fit a model")
def fit():
    made = model()
    fit_gpytorch_mll(ExactMarginalLogLikelihood(made.likelihood, made))
    found = made.posterior(torch.tensor([[0.3], [0.55]], dtype=torch.float64))
    return [found.mean]


@use("choose the best next point")
def best():
    made = model()
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    results = []
    for kind in (UpperConfidenceBound(made, beta=0.1), LogExpectedImprovement(made, best_f=0.9)):
        point, _ = optimize_acqf(kind, bounds, q=1, num_restarts=3, raw_samples=16)
        results.append(0.2 < point.item() < 0.35)
    many = qExpectedImprovement(made, 0.9, SobolQMCNormalSampler(torch.Size([16]), seed=2))
    return [results, many(torch.tensor([[[0.2], [0.3]]], dtype=torch.float64)).shape]


if __name__ == "__main__":
    main("botorch")
