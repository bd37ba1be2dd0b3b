"""On a CUDA device: graphs are replayed with new arguments, draw new random numbers, keep their
memory, and train as the program without them does.

    pytest tests/gpu/on_graphs.py          # ./dev gpu says how, on a machine with a GPU
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle import nn

cuda = treadle.cuda


def warm(call: object) -> None:
    beside = cuda.Stream()
    beside.wait_stream(cuda.current_stream())
    with cuda.stream(beside):
        call()  # type: ignore[operator]
    cuda.synchronize()


def test_a_replay_reads_what_is_in_the_arguments_now() -> None:
    x = treadle.ones(1000, device="cuda")
    warm(lambda: (x * 2 + 1).exp().sum())
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        assert cuda.is_current_stream_capturing()
        y = (x * 2 + 1).sum()
    assert not cuda.is_current_stream_capturing()
    for value in (3.0, -1.0):
        x.fill_(value)
        g.replay()
        assert y.item() == 1000 * (2 * value + 1)
    g.reset()


def test_kernels_may_be_new_to_the_program() -> None:
    x = treadle.rand(77, device="cuda")
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = treadle.lgamma(x) * treadle.atan2(x, x + 1)
    g.replay()
    assert treadle.equal(y, treadle.lgamma(x) * treadle.atan2(x, x + 1))


def test_random_numbers_go_on() -> None:
    def draw() -> list:
        cuda.manual_seed(5)
        return [treadle.rand(100, device="cuda") for _ in range(4)]

    expected = [t.cpu() for t in draw()]
    out = treadle.empty(100, device="cuda")
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        out.copy_(treadle.rand(100, device="cuda"))
    cuda.manual_seed(5)
    for i in range(3):
        g.replay()
        assert treadle.equal(out.cpu(), expected[i])
    assert treadle.equal(treadle.rand(100, device="cuda").cpu(), expected[3])


def test_a_stream_may_join_on_the_side() -> None:
    def draw() -> list:
        cuda.manual_seed(5)
        return [treadle.rand(100, device="cuda").cpu() for _ in range(4)]

    expected = draw()
    x = treadle.full((1 << 20,), 2.0, device="cuda")
    warm(lambda: x * x)
    here, there = (treadle.empty(100, device="cuda") for _ in range(2))
    side = cuda.Stream()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        here.copy_(treadle.rand(100, device="cuda"))
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            assert cuda.is_current_stream_capturing()
            there.copy_(treadle.rand(100, device="cuda"))
            y = x * x + 1
        cuda.current_stream().wait_stream(side)
        z = y * 2
    with cuda.stream(side):
        assert not cuda.is_current_stream_capturing()
        others = [treadle.zeros(1 << 20, device="cuda") for _ in range(20)]
    cuda.synchronize()
    cuda.manual_seed(5)
    for i in (0, 2):
        g.replay()
        assert treadle.equal(here.cpu(), expected[i])
        assert treadle.equal(there.cpu(), expected[i + 1])
    assert z.sum().item() == 10 * (1 << 20)
    assert all(other.sum().item() == 0 for other in others)


def test_memory_of_a_graph_is_its_own() -> None:
    x = treadle.full((1 << 20,), 2.0, device="cuda")
    warm(lambda: x * x * x)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = x * x * x
    others = [treadle.zeros(1 << 20, device="cuda") for _ in range(20)]
    g.replay()
    assert y.sum().item() == 8 * (1 << 20)
    assert all(other.sum().item() == 0 for other in others)
    second = cuda.CUDAGraph()
    with cuda.graph(second, pool=g.pool()):
        z = x + 1
    second.replay()
    assert z.sum().item() == 3 * (1 << 20)


def test_what_waits_cannot_be_captured() -> None:
    x = treadle.ones(10, device="cuda")
    g = cuda.CUDAGraph()
    refused = "^cuda: expected .* to succeed, got cudaErrorStreamCapture"
    with pytest.raises(RuntimeError, match=refused):
        with cuda.graph(g):
            x.sum().item()
    assert not cuda.is_current_stream_capturing()
    assert x.sum().item() == 10


def network() -> nn.Module:
    treadle.manual_seed(3)
    return nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 5)).to("cuda")


def test_a_training_step_is_captured() -> None:
    data = treadle.randn(10, 32, 20, device="cuda")
    wanted = treadle.randn(10, 32, 5, device="cuda")

    def trained(captured: bool) -> list:
        net = network()
        optimizer = treadle.optim.SGD(net.parameters(), lr=0.1)
        x, y = data[0].clone(), wanted[0].clone()

        def step() -> None:
            optimizer.zero_grad(set_to_none=False)
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()

        before = [p.detach().clone() for p in net.parameters()]
        warm(step)
        with treadle.no_grad():
            for p, old in zip(net.parameters(), before):
                p.copy_(old)
        g = cuda.CUDAGraph()
        if captured:
            with cuda.graph(g):
                step()
        for i in range(10):
            x.copy_(data[i])
            y.copy_(wanted[i])
            g.replay() if captured else step()
        return [p.detach().cpu() for p in net.parameters()]

    for a, b in zip(trained(True), trained(False)):
        assert treadle.equal(a, b)


def test_graphed_callables_have_the_gradients_of_the_module() -> None:
    plain, net = network(), network()
    sample = treadle.randn(32, 20, device="cuda", requires_grad=True)
    net = cuda.make_graphed_callables(net, (sample,))
    for seed in range(3):
        treadle.manual_seed(seed)
        x = treadle.randn(32, 20, device="cuda")
        for module in (plain, net):
            module.zero_grad()
            module(x).square().sum().backward()
        for a, b in zip(plain.parameters(), net.parameters()):
            assert treadle.equal(a.grad, b.grad)


def test_the_profiler_sees_kernels_under_operators() -> None:
    from treadle.profiler import ProfilerActivity, profile

    x = treadle.rand(1000, 1000, device="cuda")
    (x @ x).exp()
    cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        (x @ x).exp()
        cuda.synchronize()
    by_name = {event.name: event for event in prof.events() if event.device_type.name == "CPU"}
    assert len(by_name["aten::mm"].kernels) >= 1
    assert len(by_name["aten::exp"].kernels) == 1
    assert by_name["aten::mm"].device_time_total > 0
    assert "Self CUDA" in prof.key_averages().table()
