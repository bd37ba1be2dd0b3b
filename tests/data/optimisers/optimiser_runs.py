"""Twenty steps of every optimiser and every scheduler, written for `torch`: PyTorch or Treadle.

    python optimiser_runs.py > known.json

with PyTorch 2.15 has made the numbers that the tests compare with. All is in float64, from weights
and data given by formulas, so that nothing depends on random numbers.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import json
import math
import warnings
from typing import Any, Callable

STEPS = 20

# The runs of each optimiser: settings, beside the defaults.
OPTIMIZERS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        {"lr": 0.01, "maximize": True, "weight_decay": 0.1, "momentum": 0.5},
        {"lr": 0.1, "momentum": 0.9, "foreach": True},
        {"lr": 0.1, "momentum": 0.9, "foreach": False},
        {"lr": 0.1, "momentum": 0.9, "fused": True},
    ],
    "Adam": [
        {},
        {"lr": 0.05, "betas": (0.5, 0.9), "eps": 1e-3},
        {"lr": 0.05, "weight_decay": 0.1, "amsgrad": True},
        {"lr": 0.05, "maximize": True},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.05, "foreach": True},
        {"lr": 0.05, "fused": True, "amsgrad": True},
    ],
    "AdamW": [
        {},
        {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True},
        {"lr": 0.05, "maximize": True, "fused": True},
    ],
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-3, "maximize": True},
        {"lr": 0.1, "fused": True},
    ],
    "Adadelta": [
        {},
        {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1},
        {"maximize": True},
    ],
    "RMSprop": [
        {},
        {"lr": 0.02, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1},
        {"momentum": 0.9},
        {"centered": True},
        {"centered": True, "momentum": 0.5, "maximize": True},
    ],
    "Adafactor": [
        {},
        {"lr": 0.1, "weight_decay": 0.1, "beta2_decay": -0.5, "d": 2.0},
        {"eps": (1e-3, 0.1), "maximize": True},
    ],
    "Adamax": [
        {},
        {"lr": 0.05, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1},
        {"maximize": True},
    ],
    "NAdam": [
        {},
        {"lr": 0.05, "betas": (0.5, 0.9), "momentum_decay": 0.1, "weight_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1},
        {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "ASGD": [
        {"lr": 0.1},
        {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 5, "weight_decay": 0.1},
        {"t0": 0, "maximize": True},
    ],
    "Rprop": [
        {},
        {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2)},
        {"maximize": True},
    ],
    "LBFGS": [
        {"lr": 0.5, "max_iter": 4},
        {"max_iter": 4, "history_size": 3, "line_search_fn": "strong_wolfe"},
        {"lr": 0.1, "max_iter": 3, "max_eval": 2, "tolerance_change": 1e-4},
    ],
}


def waves(torch: Any, *shape: int, phase: float = 0.0, grad: bool = False) -> Any:
    """A tensor of values in [-1, 1] that repeat nowhere."""
    count = math.prod(shape)
    values = [math.sin(1.7 * i * i + phase) for i in range(count)]
    tensor = torch.tensor(values, dtype=torch.float64).reshape(shape)
    return tensor.requires_grad_() if grad else tensor


class Problem:
    """A network of two layers and what it is fitted to."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.inputs = waves(torch, 12, 3, phase=0.3)
        self.targets = waves(torch, 12, 2, phase=1.1)
        self.params = [
            waves(torch, 3, 4, phase=0.1, grad=True),
            waves(torch, 4, phase=0.2, grad=True),
            waves(torch, 4, 2, phase=0.4, grad=True),
        ]

    def loss(self) -> Any:
        weight, bias, out = self.params
        hidden = self.torch.tanh(self.inputs @ weight + bias)
        return ((hidden @ out - self.targets) ** 2).mean()


def train(optimizer: Any, problem: Problem, steps: int = STEPS) -> list[float]:
    """The losses before each step."""

    def closure() -> Any:
        optimizer.zero_grad()
        loss = problem.loss()
        loss.backward()
        return loss

    return [float(optimizer.step(closure).detach()) for _ in range(steps)]


def fit(torch: Any, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Losses, the parameters at the end, and the state that the optimiser has then."""
    problem = Problem(torch)
    optimizer = getattr(torch.optim, name)(problem.params, **settings)
    losses = train(optimizer, problem)
    saved = optimizer.state_dict()
    found = {
        "losses": losses,
        "params": problem.params,
        # For LBFGS the numbers that say how the steps went; the rest is vectors of all of it.
        "state": {k: v for k, v in saved["state"][0].items() if k in ("func_evals", "n_iter")}
        if name == "LBFGS"
        else saved["state"],
        "settings": saved["param_groups"][0],
    }
    return plain(found)


def plain(value: Any) -> Any:
    """As JSON has it: tensors and tuples as lists, numbers to ten digits."""
    if hasattr(value, "detach"):
        value = value.detach().tolist()
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


# ---- schedulers -------------------------------------------------------------------------------


def halves(epoch: int) -> float:
    return 0.5 ** (epoch // 3)


def sequential(s: Any, o: Any) -> Any:
    parts = [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 6), s.ExponentialLR(o, 0.9)]
    return s.SequentialLR(o, parts, milestones=[5, 12])


def nested(s: Any, o: Any) -> Any:
    inner = s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.StepLR(o, 2)], milestones=[4])
    return s.SequentialLR(o, [inner, s.PolynomialLR(o, 8)], milestones=[9])


SCHEDULERS: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, halves),
    "LambdaLR per group": lambda s, o: s.LambdaLR(o, [halves, lambda epoch: 1 / (1 + epoch)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 11], 0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 7),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 9, 2.0),
    "PolynomialLR by default": lambda s, o: s.PolynomialLR(o),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 6, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, eta_min=0.01),
    "CosineAnnealingWarmRestarts longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, 0.5, step_size_up=4, step_size_down=2),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(
        o, [0.1, 0.2], [0.5, 0.8], step_size_up=3, mode="triangular2", base_momentum=0.7
    ),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(
        o, 0.1, 0.5, step_size_up=3, mode="exp_range", gamma=0.9, cycle_momentum=False
    ),
    "CyclicLR scale_fn": lambda s, o: s.CyclicLR(
        o, 0.1, 0.5, step_size_up=3, scale_fn=lambda x: 1 / (5**x), scale_mode="cycle"
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=STEPS + 1),
    "OneCycleLR three phases": lambda s, o: s.OneCycleLR(
        o, [0.5, 1.0], epochs=3, steps_per_epoch=7, pct_start=0.4, anneal_strategy="linear",
        three_phase=True, div_factor=10.0, final_div_factor=100.0, base_momentum=[0.7, 0.6],
    ),
    "OneCycleLR without momentum": lambda s, o: s.OneCycleLR(
        o, 0.5, total_steps=STEPS + 1, cycle_momentum=False
    ),
    "SequentialLR": sequential,
    "SequentialLR nested": nested,
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)]
    ),
    "SWALR": lambda s, o: swa_utils(s).SWALR(o, 0.05, anneal_epochs=6),
    "SWALR linear": lambda s, o: swa_utils(s).SWALR(
        o, [0.05, 0.1], anneal_epochs=5, anneal_strategy="linear"
    ),
    "SWALR at once": lambda s, o: swa_utils(s).SWALR(o, 0.05, anneal_epochs=0),
}  # fmt: skip

PLATEAUS: dict[str, dict[str, Any]] = {
    "by default": {"patience": 2},
    "largest": {"mode": "max", "factor": 0.5, "patience": 1, "cooldown": 2, "min_lr": [0.1, 0.001]},
    "absolute": {"threshold_mode": "abs", "threshold": 0.05, "patience": 0, "factor": 0.3},
    "largest, absolute": {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 1},
}
METRICS = [1.0, 0.9, 0.9, 0.95, 0.97, 0.8, 0.79, 0.81, 0.85, 0.9, 1.1, 1.2, 1.3, 1.2, 1.1, 1.05]


def swa_utils(schedulers: Any) -> Any:
    import importlib

    package = schedulers.__name__.rpartition(".")[0]
    return importlib.import_module(package + ".swa_utils")


def two_groups(torch: Any, kind: str = "SGD") -> Any:
    """An optimiser over two groups whose rates differ."""
    params = [torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.05}]
    settings = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(torch.optim, kind)(groups, lr=0.5, **settings)


def settings_of(optimizer: Any) -> list[list[float]]:
    """The rate and the momentum of each group."""
    return [
        [float(group["lr"]), float(group.get("momentum", group.get("betas", (0.0,))[0]))]
        for group in optimizer.param_groups
    ]


def follow(torch: Any, name: str, kind: str = "SGD") -> list[Any]:
    """Rates and momenta at every epoch."""
    optimizer = two_groups(torch, kind)
    scheduler = SCHEDULERS[name](torch.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(STEPS):
        seen.append(settings_of(optimizer))
        optimizer.step()
        scheduler.step()
    return plain(seen)


def plateau(torch: Any, settings: dict[str, Any]) -> list[Any]:
    """Rates after each value measured."""
    optimizer = two_groups(torch)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
    seen = []
    for value in METRICS:
        scheduler.step(value)
        seen.append(settings_of(optimizer))
    return plain(seen)


# ---- signatures ------------------------------------------------------------------------------


def signature(made: Any) -> list[Any]:
    """Name, kind and default of each argument."""
    return [
        [each.name, each.kind.name, None if each.default is each.empty else repr(each.default)]
        for each in inspect.signature(made).parameters.values()
    ]


def signatures(torch: Any) -> dict[str, Any]:
    """The signatures of all that is public in the three modules."""
    found = {}
    for module in (torch.optim, torch.optim.lr_scheduler, torch.optim.swa_utils):
        for name in module.__all__:
            if callable(getattr(module, name)):
                found[name] = signature(getattr(module, name))
    return found


# ---- averages of weights -------------------------------------------------------------------------


def network(torch: Any) -> Any:
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 2)
    ).double()
    with torch.no_grad():
        for phase, param in enumerate(net.parameters()):
            param.copy_(waves(torch, *param.shape, phase=float(phase)))
    return net


def averaged(torch: Any, how: str) -> dict[str, Any]:
    """The averaged weights of a short training, before and after its statistics are renewed."""
    utils = torch.optim.swa_utils
    options = {
        "mean": {},
        "mean, buffers": {"use_buffers": True},
        "ema": {"avg_fn": utils.get_ema_avg_fn(0.8)},
        "ema of lists": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.8)},
        "mean of lists": {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
        "mean by function": {"avg_fn": utils.get_swa_avg_fn()},
    }[how]
    net = network(torch)
    average = utils.AveragedModel(net, **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = [waves(torch, 6, 3, phase=0.5 * i) for i in range(3)]
    for batch in batches * 2:
        optimizer.zero_grad()
        ((net(batch) - 1) ** 2).mean().backward()
        optimizer.step()
        average.update_parameters(net)
    before = plain(dict(average.state_dict()))
    utils.update_bn([(batch, "label") for batch in batches], average)
    after = plain(dict(average.state_dict()))
    return {"before": before, "after": after, "output": plain(average(batches[0]))}


AVERAGES = ("mean", "mean, buffers", "ema", "ema of lists", "mean of lists", "mean by function")


def key(settings: dict[str, Any]) -> str:
    """The name of settings."""
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"


def known(torch: Any) -> dict[str, Any]:
    """All runs."""
    return {
        "optimizers": {
            name: {key(settings): fit(torch, name, settings) for settings in each}
            for name, each in OPTIMIZERS.items()
        },
        "schedulers": {name: follow(torch, name) for name in SCHEDULERS},
        "schedulers of Adam": {
            name: follow(torch, name, "Adam") for name in ("CyclicLR", "OneCycleLR")
        },
        "plateaus": {name: plateau(torch, settings) for name, settings in PLATEAUS.items()},
        "signatures": signatures(torch),
        "averages": {how: averaged(torch, how) for how in AVERAGES},
    }


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    print(json.dumps(known(torch), separators=(",", ":")))
