"""safetensors: tensors in files that hold nothing else."""

# SPDX-License-Identifier: Apache-2.0

import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn
from uses import draw, main, use


@use("save and load tensors of several dtypes")
def tensors():
    kinds = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
    given = {str(kind): (torch.arange(12).reshape(3, 4) % 5).to(kind) for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        save_file(given, path, metadata={"made": "here"})
        found = load_file(path)
        with safe_open(path, framework="pt") as file:
            part = file.get_slice("torch.float32")[1:, :2]
            names, made = sorted(file.keys()), file.metadata()["made"]
    same = all(torch.equal(found[name], given[name]) for name in given)
    return [same, len(load(save(given))), part, names, made]


@use("save and load a model with shared weights")
def model():
    def make():
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        net[2].weight = net[0].weight
        return net

    first, second = make(), make()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.safetensors")
        save_model(first, path)
        left = load_model(second, path)
    x = draw(2, 4)
    return [torch.equal(first(x), second(x)), len(left[0]), len(left[1])]


if __name__ == "__main__":
    main("safetensors")
