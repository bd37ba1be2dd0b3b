"""opacus: training with differential privacy."""

# SPDX-License-Identifier: Apache-2.0

import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import RDPAccountant
from opacus.validators import ModuleValidator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from uses import draw, main, settle, use


@use("per-sample gradients")
def samples():
    model = GradSampleModule(
        settle(nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(12, 2)))
    )
    model(draw(4, 2, 6)).square().sum().backward()
    return [p.grad_sample for p in model.parameters()]


@use("private training, its privacy budget, a model converted for it")
def private():
    rows = DataLoader(TensorDataset(draw(32, 4), torch.arange(32) % 2), batch_size=8)
    model = settle(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine = PrivacyEngine()
    model, optimizer, rows = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=rows,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    for x, y in rows:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    accountant = RDPAccountant()
    for _ in range(10):
        accountant.step(noise_multiplier=1.1, sample_rate=0.05)
    fixed = ModuleValidator.fix(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)))
    kept = [bool(p.isfinite().all()) for p in model.parameters()]
    return [kept, accountant.get_epsilon(delta=1e-5), type(fixed[1]).__name__]


if __name__ == "__main__":
    main("opacus")
