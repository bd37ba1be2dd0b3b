"""accelerate: the same loop on any device."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import torch
from accelerate import (
    Accelerator,
    cpu_offload,
    dispatch_model,
    init_empty_weights,
    load_checkpoint_and_dispatch,
)
from accelerate.state import AcceleratorState
from accelerate.utils import compute_module_sizes, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from uses import draw, main, settle, use


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


@use("a training loop with accumulated gradients, its state saved")
def loop():
    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = settle(network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    rows = DataLoader(TensorDataset(draw(16, 4), torch.arange(16) % 2), batch_size=4)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    model, optimizer, rows, schedule = accelerator.prepare(model, optimizer, rows, schedule)
    losses = []
    for x, y in rows:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather_for_metrics(loss).item())
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        accelerator.load_state(folder)
        accelerator.save_model(model, folder)
    return [losses, schedule.get_last_lr()]


@use("mixed precision in bfloat16")
def mixed():
    AcceleratorState._reset_state()
    accelerator = Accelerator(cpu=True, mixed_precision="bf16")
    model = accelerator.prepare(network())
    out = model(torch.ones(2, 4))
    with accelerator.autocast():
        inner = nn.functional.linear(torch.ones(2, 4), torch.ones(3, 4))
    accelerator.backward(out.sum())
    return [str(out.dtype), str(inner.dtype), model[0].weight.grad.dtype == torch.float32]


@use("a model without weights, then loaded from a file; offloading")
def big_models():
    from safetensors.torch import save_file

    filled = network()
    with init_empty_weights():
        empty = network()
    on_meta = all(p.is_meta for p in empty.parameters())
    with tempfile.TemporaryDirectory() as folder:
        save_file(filled.state_dict(), folder + "/model.safetensors")
        loaded = load_checkpoint_and_dispatch(empty, folder, device_map={"": "cpu"})
    x = draw(2, 4)
    same = torch.equal(loaded(x), filled(x))
    sizes = compute_module_sizes(filled)
    moved = cpu_offload(filled, execution_device="cpu")
    placed = dispatch_model(network(), {"": "cpu"})
    return [on_meta, same, sizes[""], torch.equal(moved(x), loaded(x)), list(placed(x).shape)]


if __name__ == "__main__":
    main("accelerate")
