"""torchrl: parts of reinforcement learning."""

# SPDX-License-Identifier: Apache-2.0

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives.value import GAE
from uses import draw, main, settle, use


@use("replay buffers, a network of layers")
def buffers():
    buffer = ReplayBuffer(storage=LazyTensorStorage(20), batch_size=4)
    buffer.extend(TensorDict({"x": torch.arange(10.0)}, [10]))
    net = settle(MLP(in_features=3, out_features=2, num_cells=[8, 8]))
    return [len(buffer), list(buffer.sample().shape), net(draw(2, 3))]


@use("advantages from a value network")
def advantages():
    value = ValueOperator(settle(nn.Linear(3, 1)), in_keys=["observation"])
    done = torch.zeros(2, 5, 1, dtype=torch.bool)
    data = TensorDict(
        {
            "observation": draw(2, 5, 3),
            "next": {
                "observation": draw(2, 5, 3),
                "reward": draw(2, 5, 1),
                "done": done,
                "terminated": done,
            },
        },
        [2, 5],
    )
    found = GAE(gamma=0.9, lmbda=0.95, value_network=value)(data)
    return [found["advantage"], found["value_target"]]


@use("action distributions")
def actions():
    shown = TanhNormal(draw(4, 2), torch.ones(4, 2), low=-2.0, high=2.0)
    net = TensorDictModule(lambda x: (x, torch.ones_like(x)), ["observation"], ["loc", "scale"])
    actor = ProbabilisticActor(
        net, in_keys=["loc", "scale"], distribution_class=TanhNormal, return_log_prob=True
    )
    taken = actor(TensorDict({"observation": draw(4, 2)}, [4]))
    return [shown.log_prob(torch.full((4, 2), 0.5)), list(taken["action"].shape)]


if __name__ == "__main__":
    main("torchrl")
