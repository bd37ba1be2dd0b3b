"""tensordict: tensors by names, with one batch shape."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import torch
from tensordict import TensorDict, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from uses import draw, main, settle, use


@use("index, reshape, stack, arithmetic, files")
def dicts():
    data = TensorDict({"a": draw(4, 3), "in": {"b": torch.arange(8).reshape(4, 2)}}, [4])
    stacked = torch.stack([data, data * 2])
    with tempfile.TemporaryDirectory() as folder:
        data.memmap(folder)
        again = TensorDict.load_memmap(folder)
    return [
        data[1:3]["a"],
        list(data.reshape(2, 2).shape),
        stacked["in", "b"],
        list(data.flatten_keys(".").keys()),
        torch.equal(again["a"], data["a"]),
        (data.apply(lambda x: x + 1))["a"],
        data["a"].sum(),
    ]


@use("modules that read and write named entries, parameters of a module")
def modules():
    one = TensorDictModule(settle(nn.Linear(3, 4)), in_keys=["x"], out_keys=["h"])
    two = TensorDictModule(nn.Tanh(), in_keys=["h"], out_keys=["y"])
    found = TensorDictSequential(one, two)(TensorDict({"x": draw(2, 3)}, [2]))
    net = settle(nn.Linear(3, 2))
    weights = TensorDict.from_module(net)
    with weights.data.apply(torch.zeros_like).to_module(net):
        zero = net(torch.ones(1, 3))
    return [found["y"], zero, net(torch.ones(1, 3))]


@use("a tensor class")
def classes():
    @tensorclass
    class Sample:
        image: torch.Tensor
        label: torch.Tensor

    both = Sample(image=draw(4, 2, 2), label=torch.arange(4), batch_size=[4])
    return [both[:2].image, both.label, list(torch.cat([both, both]).shape)]


if __name__ == "__main__":
    main("tensordict")
