"""Ten thousand training steps take no more memory than two thousand."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from source_tree import ROOT

# Trains the network of examples/digits.py, and says after each thousand steps how much memory the
# process has, how much of it tensors have, how many objects Python has, how many files are open.
PROGRAM = """
import gc, json, os, sys
sys.path.insert(0, sys.argv[1])
import torch
from digits import Net

def resident():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

torch.manual_seed(0)
torch.set_num_threads(1)
net = Net(4)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1000)
images, labels = torch.rand(64, 1, 8, 8), torch.randint(10, (64,))
for step in range(1, 10_001):
    chosen = torch.randint(64, (4,))
    optimizer.zero_grad()
    with torch.autocast("cpu", enabled=step % 2 == 0):
        loss = torch.nn.functional.cross_entropy(net(images[chosen]), labels[chosen])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 1000 == 0:
        gc.collect()
        tensors = torch._C._memory_stats()["current_bytes"]
        facts = (resident(), tensors, len(gc.get_objects()), len(os.listdir("/proc/self/fd")))
        print(json.dumps(facts), flush=True)
"""


@pytest.mark.slow
def test_memory_does_not_grow() -> None:
    command = [sys.executable, "-m", "treadle.run", "/dev/stdin", str(ROOT / "examples")]
    done = subprocess.run(command, input=PROGRAM, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    facts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(facts) == 10
    resident, tensors, objects, files = zip(*facts)
    # A small tensor a step would be a megabyte; what comes now and then is there by the second.
    if not os.environ.get("TREADLE_SANITIZERS"):  # these keep freed memory for a while
        assert max(resident[2:]) - resident[1] < 128, resident
    assert max(tensors) == min(tensors), tensors
    assert max(objects[1:]) <= objects[0], objects
    assert max(files) == min(files), files
