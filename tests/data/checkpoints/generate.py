"""Writes the checkpoints of this folder with PyTorch 2.9.1, and `expected.json`, which says what is
in them.

    python tests/data/checkpoints/generate.py

Each file holds one value of `CASES`; those of `LEGACY` also exist in the format before 1.6, with
the suffix `.old.pt`. `whole_*.pt` need weights_only=False.
"""

# SPDX-License-Identifier: Apache-2.0

import argparse
import collections
import contextlib
import datetime
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from describe import describe  # noqa: E402  beside this file

HERE = pathlib.Path(__file__).parent
DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.uint16,
    torch.uint32, torch.uint64,
]  # fmt: skip


def of_every_dtype():
    numbers = [0, 1, 2, 100, 3, 7]
    return {str(d): torch.tensor(numbers, dtype=torch.float64).to(d).reshape(2, 3) for d in DTYPES}


def of_the_types_that_only_store():
    numbers = torch.tensor([0.0, -0.5, 1.0, 448.0, float("nan")])
    eights = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split()
    return {name: numbers.to(getattr(torch, name)) for name in eights} | {
        "complex32": torch.tensor([1 + 2j, -0.5j]).to(torch.complex32)
    }


def of_every_old_dtype():
    """PyTorch does not read the old format with the unsigned ones."""
    return {
        name: tensor
        for name, tensor in of_every_dtype().items()
        if "uint" not in name[6:10] or name[-1] == "8"
    }


def extremes():
    inf = float("inf")
    floats = [0.0, -0.0, 1e-45, 1.1754944e-38, 3.4028235e38, inf, -inf, float("nan"), -1 / 3]
    return [torch.tensor(floats, dtype=d) for d in DTYPES if d.is_floating_point] + [
        torch.tensor([torch.iinfo(d).min, torch.iinfo(d).max], dtype=d)
        for d in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
    ]


def shapes():
    base = torch.arange(24, dtype=torch.float32)
    cube = base.reshape(2, 3, 4)
    return {
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0),
        "empty 2d": torch.zeros(0, 3, dtype=torch.int64),
        "transposed": torch.arange(6.0).reshape(2, 3).t(),
        "expanded": torch.tensor([1.0, 2.0]).expand(3, 2),
        "strided": torch.arange(10)[1::3],
        "channels last": torch.arange(24.0)
        .reshape(1, 2, 3, 4)
        .to(memory_format=torch.channels_last),
        "base": base,
        "row": cube[1, 2],
        "column": cube[:, :, 1],
        "whole": cube,
        "turned": cube.permute(2, 0, 1),
    }


def shared():
    weight = nn.Parameter(torch.arange(4.0).reshape(2, 2))
    buffer = torch.zeros(3)
    return {
        "weight": weight,
        "tied": weight,
        "data": weight.data,
        "buffer": buffer,
        "buffer again": buffer,
        "slice": buffer[1:],
    }


def parameters():
    marked = nn.Parameter(torch.ones(2))
    marked.sparse_grad = False
    tagged = torch.ones(2)
    tagged.origin = "here"
    return [
        nn.Parameter(torch.ones(2)),
        nn.Parameter(torch.ones(2), requires_grad=False),
        torch.ones(2, requires_grad=True),
        torch.ones(2, requires_grad=True) * 2,
        marked,
        tagged,
    ]


def complex_bits():
    z = torch.tensor([1 + 2j, 3 - 4j])
    other = torch.tensor([5 + 6j, 7 - 8j])
    return [z, z.conj(), other.conj().imag, torch.tensor([1.0 + 1e-3j], dtype=torch.complex128)]


def containers():
    return {
        "numbers": [0, 1, -1, 255, 256, 65536, 2**31, -(2**31), 2**63, 2**100, 1.5, True, None],
        "complex": 1 + 2j,
        "text": ["", "a", "päö", "\U0001f600", "x" * 300],
        "bytes": b"\x00\xff",
        "bytearray": bytearray(b"ab"),
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "set": {1, 2},
        "ordered": collections.OrderedDict([("b", 1), ("a", [2, {"c": 3}])]),
        "counter": collections.Counter("aab"),
        "int keys": {1: "a", (2, 3): "b"},
        "dtype": torch.float16,
        "every dtype": DTYPES,
        "size": torch.Size([2, 3]),
        "device": [torch.device("cpu"), torch.device("cuda", 1)],
        "layout": torch.strided,
        "nested": [[[[[torch.tensor(7)]]]]],
    }


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.out = nn.Linear(8, 2)
        self.register_buffer("counts", torch.arange(3))

    def forward(self, x):
        return self.out(torch.flatten(self.norm(self.conv(x)), 1))


def trained(make_optimizer, make_scheduler=None):
    """A network, its optimiser and scheduler after three steps."""
    torch.manual_seed(0)
    net = Net()
    optimizer = make_optimizer(net)
    scheduler = make_scheduler(optimizer) if make_scheduler else None
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(4, 1, 4, 4)).square().mean().backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
    return {
        "epoch": 3,
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict() if scheduler else None,
        "loss": 0.25,
    }


def with_adam():
    return trained(
        lambda net: torch.optim.Adam(
            [{"params": net.conv.parameters(), "lr": 1e-4}, {"params": net.out.parameters()}],
            amsgrad=True,
        ),
        lambda o: torch.optim.lr_scheduler.StepLR(o, 2),
    )


def with_sgd():
    return trained(
        lambda net: torch.optim.SGD(net.parameters(), 0.1, momentum=0.9),
        lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 2]),
    )


def meta():
    return torch.empty(2, 3, device="meta", dtype=torch.int32)


def on_a_gpu():
    """The file of a machine with two GPUs; the names of the devices are all that differs."""
    return {"first": torch.arange(3.0), "second": torch.arange(4)}


def of_the_safetensors_package():
    """The file of the package `safetensors` 0.8."""
    tensors = {f"{d}"[6:]: torch.tensor([[0, 1, 2], [3, 4, 5]]).to(d) for d in DTYPES}
    del tensors["complex128"]
    return {
        **tensors,
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        'näme "q"': torch.ones(1),
    }


def whole_layers():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"), nn.BatchNorm2d(2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 4), nn.GELU(), nn.LayerNorm(4),
        nn.ModuleDict({"a": nn.Dropout(0.1)})["a"],
    )  # fmt: skip


def whole_sequence_layers():
    torch.manual_seed(0)
    return nn.ModuleDict(
        {
            "embedding": nn.Embedding(5, 4),
            "lstm": nn.LSTM(4, 3, bidirectional=True),
            "gru": nn.GRU(4, 3),
            "attention": nn.MultiheadAttention(4, 2),
            "encoder": nn.TransformerEncoderLayer(4, 2, 8),
            "list": nn.ParameterList([torch.ones(2)]),
        }
    )


def whole_data():
    return {
        "arguments": argparse.Namespace(lr=0.1, layers=[1, 2]),
        "array": np.arange(6, dtype=np.float32).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "number": np.float64(0.5),
        "int": np.int64(3),
        "words": np.array(["a", "bcd"]),
        "path": pathlib.PurePosixPath("a/b"),
        "date": datetime.datetime(2024, 1, 2, 3, 4, 5),
        "default": collections.defaultdict(list, {1: [2]}),
        "activation": [torch.relu, torch.nn.functional.relu, torch.nn.functional.gelu],
    }


def sparse():
    twice = torch.sparse_coo_tensor([[1, 0, 1]], torch.arange(6.0).reshape(3, 2), (3, 2))
    return {"coalesced": torch.eye(2).to_sparse(), "twice": twice}


CASES = {
    "dtypes": of_every_dtype, "old_dtypes": of_every_old_dtype, "extremes": extremes,
    "shapes": shapes, "shared": shared, "parameters": parameters, "complex_bits": complex_bits,
    "containers": containers, "adam": with_adam, "sgd": with_sgd, "meta": meta,
    "whole_layers": whole_layers, "whole_sequence_layers": whole_sequence_layers,
    "whole_data": whole_data, "sparse": sparse, "float8": of_the_types_that_only_store,
}  # fmt: skip
LEGACY = ["old_dtypes", "shapes", "shared", "parameters", "complex_bits", "containers", "sgd",
          "whole_layers", "sparse"]  # fmt: skip
# A file without a description: the test says what is in it.
PLAIN = {
    "compressed": lambda: torch.eye(2).to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
}
REFUSED = {
    "nested": lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
}


def save_as_if_on_gpus(value, path):
    """Tensors of a GPU, where there is none: the same file with the name of a device in it."""
    tags = iter(["cuda:0", "cuda:1"])
    location_tag = torch.serialization.location_tag
    torch.serialization.location_tag = lambda storage: next(tags)
    try:
        torch.save(value, path)
    finally:
        torch.serialization.location_tag = location_tag


@contextlib.contextmanager
def without_sources():
    """The old format has the source code of each layer's class in it; here a word stands for it."""
    torch.serialization.get_source_lines_and_file, read = (
        lambda cls: (["source"], 1, "file.py"),
        torch.serialization.get_source_lines_and_file,
    )
    try:
        yield
    finally:
        torch.serialization.get_source_lines_and_file = read


def main() -> None:
    expected = {}
    for name, make in CASES.items():
        value = make()
        torch.save(value, HERE / f"{name}.pt")
        weights_only = not name.startswith("whole")
        loaded = torch.load(HERE / f"{name}.pt", weights_only=weights_only)
        if name == "whole_data":
            loaded.pop("activation")  # functions: looked at by the test itself
        expected[name] = describe(loaded, torch)
        if name in LEGACY:
            with without_sources():
                torch.save(value, HERE / f"{name}.old.pt", _use_new_zipfile_serialization=False)
            old = torch.load(HERE / f"{name}.old.pt", weights_only=weights_only)
            assert describe(old, torch) == expected[name], name
        if name == "whole_layers":
            image = torch.arange(16.0).reshape(1, 1, 4, 4)
            expected["forward"] = loaded.eval()(image).tolist()
    save_as_if_on_gpus(on_a_gpu(), HERE / "gpu.pt")
    expected["gpu"] = describe(on_a_gpu(), torch)
    for name, make in PLAIN.items():
        torch.save(make(), HERE / f"{name}.pt")
    for name, make in REFUSED.items():
        torch.save(make(), HERE / f"refused_{name}.pt")
    save_file(of_the_safetensors_package(), HERE / "tensors.safetensors", {"epoch": "3", "by": "ü"})
    expected["safetensors"] = describe(dict(sorted(of_the_safetensors_package().items())), torch)
    (HERE / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
