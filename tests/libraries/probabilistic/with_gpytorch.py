"""gpytorch: Gaussian processes."""

# SPDX-License-Identifier: Apache-2.0

import gpytorch
import torch
from linear_operator.operators import DiagLinearOperator, ToeplitzLinearOperator
from uses import draw, main, use


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


@use("fit an exact Gaussian process, predict")
def exact():
    x = torch.linspace(0, 1, 20)
    y = (6 * x).sin()
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    target = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -target(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(torch.tensor([0.25, 0.6])))
    return [losses, found.mean, found.variance]


@use("kernels and linear operators")
def kernels():
    x = draw(6, 2)
    made = [
        gpytorch.kernels.MaternKernel(2.5),
        gpytorch.kernels.PeriodicKernel(),
        gpytorch.kernels.LinearKernel(),
        gpytorch.kernels.RQKernel(),
    ]
    line = ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5]))
    both = line + DiagLinearOperator(torch.ones(3))
    return [*(k(x).to_dense() for k in made), both.solve(torch.ones(3, 1)), both.logdet()]


@use("a variational Gaussian process")
def variational():
    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            spread = gpytorch.variational.CholeskyVariationalDistribution(points.shape[0])
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, spread))
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    x = torch.linspace(0, 1, 20)
    model, likelihood = Model(x[::4].clone()[:, None]), gpytorch.likelihoods.GaussianLikelihood()
    target = gpytorch.mlls.VariationalELBO(likelihood, model, 20)
    loss = -target(model(x[:, None]), (6 * x).sin())
    loss.backward()
    return [loss.isfinite().item(), model.kernel.raw_outputscale.grad.isfinite().item()]


if __name__ == "__main__":
    main("gpytorch")
