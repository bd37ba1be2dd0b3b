"""Devices, memory, copies, streams and events."""

# SPDX-License-Identifier: Apache-2.0

import pytest

import treadle


def test_the_device_has_a_name_and_memory(device: treadle.device) -> None:
    assert treadle.opencl.device_count() >= 1
    assert treadle.opencl.get_device_name(0)
    free, total = treadle.opencl.mem_get_info(0)
    assert 0 < free <= total


def test_an_index_without_a_device_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="opencl"):
        treadle.ones(2, device=f"opencl:{treadle.opencl.device_count()}")


@pytest.mark.parametrize(
    "dtype", [treadle.bool, treadle.int16, treadle.float16, treadle.complex128]
)
def test_copies_there_and_back(dtype: treadle.dtype, device: treadle.device) -> None:
    x = treadle.arange(60).reshape(4, 15).to(dtype)
    assert treadle.equal(x.to(device).cpu(), x)
    assert treadle.equal(x.t().to(device).cpu(), x.t())
    y = treadle.zeros(4, 15, dtype=dtype, device=device)
    y[:, ::3] = x[:, ::3].to(device)
    assert treadle.equal(y.cpu()[:, ::3], x[:, ::3])
    y.copy_(x.to(device))
    assert treadle.equal(y.cpu(), x)


def test_pinned_memory(device: treadle.device) -> None:
    x = treadle.arange(1000.0).pin_memory("opencl")
    y = x.to(device, non_blocking=True)
    treadle.opencl.synchronize()
    assert treadle.equal(y.cpu(), x)


def test_streams_and_events(device: treadle.device) -> None:
    stream = treadle.opencl.Stream(device=device)
    start = treadle.opencl.Event(enable_timing=True)
    end = treadle.opencl.Event(enable_timing=True)
    x = treadle.ones(300, 300, device=device)
    treadle.opencl.synchronize()
    with treadle.opencl.stream(stream):
        start.record()
        y = x @ x
        for _ in range(5):
            y = y @ x / 300
        end.record()
    treadle.opencl.current_stream().wait_event(end)
    z = y + 1
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) > 0
    assert z.cpu()[0, 0].item() == pytest.approx(301)
    stream.synchronize()
    assert stream.query()


def test_save_and_load(device: treadle.device, tmp_path) -> None:
    x = treadle.randn(3, 4, device=device)
    treadle.save(x, tmp_path / "x.pt")
    assert treadle.load(tmp_path / "x.pt").device == device
    assert treadle.equal(treadle.load(tmp_path / "x.pt", map_location="cpu"), x.cpu())
