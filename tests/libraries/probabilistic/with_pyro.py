"""pyro: probabilistic programs."""

# SPDX-License-Identifier: Apache-2.0

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoNormal
from uses import draw, main, use


def regression(x, y=None):
    slope = pyro.sample("slope", dist.Normal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(slope * x, 0.5), obs=y)


def fitted(guide, steps, rate):
    pyro.clear_param_store()
    x = torch.linspace(-1, 1, 20)
    y = 0.7 * x
    engine = SVI(regression, guide, pyro.optim.Adam({"lr": rate}), Trace_ELBO())
    return [engine.step(x, y) for _ in range(steps)]


@use("variational inference")
def variational():
    guide = AutoDelta(regression, init_loc_fn=lambda site: torch.tensor(0.1))
    losses = fitted(guide, 5, 0.05)
    normal = AutoNormal(regression)
    fitted(normal, 100, 0.1)
    drawn = Predictive(regression, guide=normal, num_samples=5)(torch.ones(3))
    return [losses, guide.median()["slope"], 0.3 < normal.median()["slope"] < 1.1, drawn["y"].shape]


@use("Monte Carlo by NUTS")
def chains():
    x = torch.linspace(-1, 1, 20)
    runner = MCMC(NUTS(regression), num_samples=30, warmup_steps=20, disable_progbar=True)
    runner.run(x, 0.7 * x)
    return [0.3 < runner.get_samples()["slope"].mean() < 1.1]


@use("a mixture model with enumerated classes")
def mixture():
    @config_enumerate
    def model(data):
        where = pyro.param("where", torch.tensor([-1.0, 1.0]))
        weights = pyro.param("weights", torch.tensor([0.4, 0.6]))
        with pyro.plate("data", len(data)):
            kind = pyro.sample("kind", dist.Categorical(weights))
            pyro.sample("x", dist.Normal(where[kind], 0.5), obs=data)

    pyro.clear_param_store()
    loss = TraceEnum_ELBO(max_plate_nesting=1)
    found = loss.differentiable_loss(model, lambda data: None, draw(10))
    found.backward()
    return [found, pyro.get_param_store()._params["where"].grad]


if __name__ == "__main__":
    main("pyro-ppl")
