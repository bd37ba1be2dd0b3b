"""Links with a latency and a rate, on one machine: a network namespace for each rank.

    with shaped(ranks=4, latency=0.005, rate=12.5e6) as network:
        network.command(2, ["python", "program.py"])    # runs as if on a machine of its own
        network.address(0)                              # "10.77.0.1"

Each namespace has one device, whose other end is a process here that passes packets on: a packet
leaves when those before it have, arrives `latency` seconds later, and takes its size / `rate`
seconds, in both directions at once. tc netem would do the same where the kernel has it. It needs
root, `ip` and /dev/net/tun.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import fcntl
import heapq
import itertools
import multiprocessing
import os
import select
import shutil
import struct
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import Iterator, List, NamedTuple

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_PACKET = 8000  # the largest packet; larger ones cost less time here, but go one by one
DEVICE = "net0"  # the device's name in each namespace


class Network(NamedTuple):
    """Namespaces, one for each rank."""

    names: List[str]

    def address(self, rank: int) -> str:
        """The address of a rank."""
        return f"10.77.0.{rank + 1}"

    def command(self, rank: int, arguments: List[str]) -> List[str]:
        """The command that runs another one in the namespace of a rank."""
        return ["ip", "netns", "exec", self.names[rank], *arguments]


def why_not() -> str:
    """Why links cannot be shaped here; empty if they can."""
    if os.geteuid() != 0:
        return "it needs root"
    if shutil.which("ip") is None:
        return "there is no command ip"
    if not os.path.exists("/dev/net/tun"):
        return "there is no /dev/net/tun"
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _device(name: str) -> int:
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return file


def _set_up(name: str, device: str, rank: int) -> None:
    _ip("netns", "add", name)
    _ip("link", "set", device, "netns", name)
    _ip("-n", name, "link", "set", device, "name", DEVICE)
    _ip("-n", name, "link", "set", DEVICE, "mtu", str(_PACKET), "txqueuelen", "10000")
    _ip("-n", name, "addr", "add", f"10.77.0.{rank + 1}/24", "dev", DEVICE)
    for each in ("lo", DEVICE):
        _ip("-n", name, "link", "set", each, "up")
    # Windows as large as the links need, and no slow start after a pause.
    values = ("tcp_rmem=4096 2097152 8388608", "tcp_wmem=4096 2097152 8388608")
    for value in (*values, "tcp_slow_start_after_idle=0"):
        key, _, text = value.partition("=")
        command = f"echo '{text}' > /proc/sys/net/ipv4/{key}"
        _ip("netns", "exec", name, "sh", "-c", command)


class _Relay:
    """Takes packets from each device, and gives them to the one that they are for, in time."""

    def __init__(self, files: List[int], latency: float, rate: float) -> None:
        self._files = files
        self._latency = latency
        self._rate = rate
        self._leaving = [0.0] * len(files)  # until when the link is busy, in each direction
        self._arriving = [0.0] * len(files)
        self._order = itertools.count()
        # By time: the begin of a packet comes to its receiver's link, or its end to the receiver.
        self._coming: list = []

    def run(self) -> None:
        """Pass packets until the process is killed."""
        poll = select.epoll()
        for file in self._files:
            poll.register(file, select.EPOLLIN)
        rank_of = {file: rank for rank, file in enumerate(self._files)}
        while True:
            wait = max(self._coming[0][0] - time.monotonic(), 0.0) if self._coming else 1.0
            # epoll waits for whole milliseconds, so the last one is spent in a loop.
            for file, _ in poll.poll(wait if wait > 0.001 else 0):
                self._take(file, rank_of[file])
            self._go_on(time.monotonic())

    def _take(self, file: int, source: int) -> None:
        for _ in range(16):
            try:
                packet = os.read(file, 65536)
            except BlockingIOError:
                return
            to = packet[19] - 1 if packet[0] >> 4 == 4 else -1
            if not 0 <= to < len(self._files):
                continue
            begin = max(time.monotonic(), self._leaving[source])
            self._leaving[source] = begin + len(packet) / self._rate
            self._push(begin + self._latency, to, packet, is_whole=False)

    def _push(self, at: float, to: int, packet: bytes, is_whole: bool) -> None:
        heapq.heappush(self._coming, (at, next(self._order), to, packet, is_whole))

    def _go_on(self, now: float) -> None:
        while self._coming and self._coming[0][0] <= now:
            at, _, to, packet, is_whole = heapq.heappop(self._coming)
            if not is_whole:
                self._arriving[to] = max(at, self._arriving[to]) + len(packet) / self._rate
                self._push(self._arriving[to], to, packet, is_whole=True)
                continue
            with suppress(OSError):  # a full device loses it, as networks do
                os.write(self._files[to], packet)


@contextmanager
def shaped(ranks: int, latency: float, rate: float) -> Iterator[Network]:
    """Namespaces for so many ranks, joined by links of `latency` seconds and `rate` bytes per
    second; gone at the end. RuntimeError where that is not possible."""
    reason = why_not()
    if reason:
        raise RuntimeError(f"links cannot be shaped: {reason}")
    mark = f"{os.getpid() % 100000}"
    names = [f"treadle{mark}r{rank}" for rank in range(ranks)]
    devices = [f"t{mark}r{rank}" for rank in range(ranks)]
    files: List[int] = []
    relay = None
    try:
        for rank, (name, device) in enumerate(zip(names, devices)):
            files.append(_device(device))
            _set_up(name, device, rank)
        context = multiprocessing.get_context("fork")
        relay = context.Process(target=_Relay(files, latency, rate).run, daemon=True)
        relay.start()
        yield Network(names)
    finally:
        if relay is not None:
            relay.kill()
            relay.join()
        for file in files:
            os.close(file)
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
