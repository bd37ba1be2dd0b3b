"""Threads that do to the same tensors all that Python code can do: a program that may find either
order's values, and must neither crash nor stand still.

    python -m fuzz --threads 60               # a minute of rounds, of a seed that it prints
    python -m fuzz --threads 5 --seed 7       # the rounds of seed 7
    python -m fuzz --threads 60 --only backward,hooks,clear_grad

A round is a process of its own. When it dies, the work of its threads is said at the end; which
thread came first is the system's choice, so the same seed may need several runs.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import contextlib
import copy
import faulthandler
import gc
import io
import mmap
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

ROUND = 10.0  # seconds
STANDSTILL = 60.0  # seconds without a step of any thread
SLOT = 64  # bytes in which a thread notes what it does
ALLOWED = (
    RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError,
    BufferError, ReferenceError, KeyError,
)  # fmt: skip


class Pool:
    """The objects that the threads share: tensors, a graph, modules, and what was made of them."""

    def __init__(self, treadle: Any, rng: random.Random) -> None:
        self.treadle = treadle
        self.tensors = [treadle.randn(4, 6) for _ in range(8)]
        self.leaves = [treadle.randn(4, 6, requires_grad=True) for _ in range(4)]
        self.large = treadle.randn(300, 300, requires_grad=True)
        self.losses: list = [self.graph(rng) for _ in range(4)]
        self.module = treadle.nn.Sequential(
            treadle.nn.Linear(6, 6), treadle.nn.ReLU(), treadle.nn.Linear(6, 6)
        )
        self.optimiser = treadle.optim.Adam(self.module.parameters(), lr=1e-4)
        self.generator = treadle.Generator()
        self.handles: list = []
        self.kept: list = []

    def graph(self, rng: random.Random) -> Any:
        a, b = rng.choice(self.leaves), rng.choice(self.leaves)
        y = (a * b).exp() + a.sin()
        return (y @ y.t()).sum()

    def tensor(self, rng: random.Random) -> Any:
        return rng.choice(self.tensors + self.leaves)

    def put(self, rng: random.Random, t: Any) -> None:
        if t.numel() < 10_000:
            self.tensors[rng.randrange(len(self.tensors))] = t


Action = Callable[[Pool, random.Random], Any]
ACTIONS: dict[str, Action] = {}


def action(function: Action) -> Action:
    ACTIONS[function.__name__] = function
    return function


# ---- values --------------------------------------------------------------------------------------


@action
def new(pool: Pool, rng: random.Random) -> None:
    shape = [rng.randrange(1, 7) for _ in range(rng.randrange(3))]
    pool.put(rng, pool.treadle.randn(shape, generator=pool.generator))


@action
def back_to_size(pool: Pool, rng: random.Random) -> None:
    pool.put(rng, pool.treadle.randn(4, 6))


@action
def in_place(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    rng.choice([t.add_, t.mul_, t.fill_])(0.5)


@action
def in_place_without_grad(pool: Pool, rng: random.Random) -> None:
    with pool.treadle.no_grad():
        pool.tensor(rng).add_(pool.tensor(rng))


@action
def operators(pool: Pool, rng: random.Random) -> None:
    a, b = pool.tensor(rng), pool.tensor(rng)
    pool.put(rng, rng.choice([lambda: a + b, lambda: a * 2, lambda: a.exp(), lambda: a @ b.t()])())


@action
def large_operators(pool: Pool, rng: random.Random) -> None:
    (pool.large @ pool.large).exp_().sum()


@action
def reductions(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    t.sum(), t.max(), t.softmax(-1), t.sort()


@action
def out(pool: Pool, rng: random.Random) -> None:
    pool.treadle.add(pool.tensor(rng).detach(), 1, out=pool.tensor(rng))


@action
def joined(pool: Pool, rng: random.Random) -> None:
    pool.put(rng, pool.treadle.cat([pool.tensor(rng), pool.tensor(rng)])[:8])


@action
def converted(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    t.double(), t.to(pool.treadle.int32), t.clone(), t.cpu(), pool.large.double()


@action
def indexed(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    t[t > 0], t[0], t[[0, 1]]


@action
def index_put(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    t[rng.randrange(4)] = rng.random()


@action
def random_numbers(pool: Pool, rng: random.Random) -> None:
    treadle = pool.treadle
    treadle.rand(3, generator=pool.generator), treadle.randperm(9), treadle.manual_seed(1)
    pool.generator.set_state(pool.generator.get_state())
    treadle.nn.functional.dropout(pool.tensor(rng))


@action
def convolution(pool: Pool, rng: random.Random) -> None:
    n = rng.randrange(3, 9)
    image, weight = pool.treadle.randn(1, 2, n, n), pool.treadle.randn(3, 2, 3, 3)
    pool.treadle.nn.functional.conv2d(image, weight)


# ---- memory --------------------------------------------------------------------------------------


@action
def view(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    pool.put(rng, rng.choice([lambda: t[1:], lambda: t.t(), lambda: t.view(-1), lambda: t[None]])())


@action
def write_to_view(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng)[1:].mul_(0.5)


@action
def set_data(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng).data = pool.tensor(rng).detach().clone()


@action
def read_data(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng).data.mul_(0.5)


@action
def set_(pool: Pool, rng: random.Random) -> None:
    with pool.treadle.no_grad():
        pool.tensor(rng).set_(pool.tensor(rng).detach())


@action
def resize(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng).detach().resize_(rng.randrange(40))


@action
def storage_resize(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng).untyped_storage().resize_(rng.choice([0, 96, 4096]))


@action
def shared_memory(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng).detach().share_memory_()


@action
def storages(pool: Pool, rng: random.Random) -> None:
    storage = pool.tensor(rng).untyped_storage()
    storage.nbytes(), storage.data_ptr(), repr(storage)
    bytes(memoryview(storage))


@action
def numpy(pool: Pool, rng: random.Random) -> None:
    array = pool.tensor(rng).detach().numpy()
    array += 1
    pool.put(rng, pool.treadle.from_numpy(array))
    pool.kept.append(array)


@action
def dlpack(pool: Pool, rng: random.Random) -> None:
    pool.put(rng, pool.treadle.from_dlpack(pool.tensor(rng).detach()))


@action
def memory_format(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng).t_() if rng.random() < 0.5 else pool.tensor(rng).unsqueeze_(0).squeeze_(0)


# ---- gradients -----------------------------------------------------------------------------------


@action
def new_graph(pool: Pool, rng: random.Random) -> None:
    pool.losses[rng.randrange(len(pool.losses))] = pool.graph(rng)


@action
def backward(pool: Pool, rng: random.Random) -> None:
    rng.choice(pool.losses).backward(retain_graph=rng.random() < 0.7)


@action
def large_backward(pool: Pool, rng: random.Random) -> None:
    (pool.large * pool.large).sum().backward()


@action
def double_backward(pool: Pool, rng: random.Random) -> None:
    leaf = rng.choice(pool.leaves)
    (grad,) = pool.treadle.autograd.grad(
        rng.choice(pool.losses), leaf, create_graph=True, allow_unused=True
    )
    if grad is not None:
        grad.sum().backward()


@action
def set_grad(pool: Pool, rng: random.Random) -> None:
    leaf = rng.choice([*pool.leaves, pool.large])
    leaf.grad = pool.treadle.ones_like(leaf).detach()


@action
def clear_grad(pool: Pool, rng: random.Random) -> None:
    rng.choice([*pool.leaves, pool.large]).grad = None


@action
def read_grad(pool: Pool, rng: random.Random) -> None:
    grad = rng.choice(pool.leaves).grad
    if grad is not None:
        repr(grad), grad.mul_(0.5)


@action
def hooks(pool: Pool, rng: random.Random) -> None:
    leaf = rng.choice(pool.leaves)
    pool.handles.append(leaf.register_hook(lambda grad: grad * 1))
    pool.handles.append(leaf.register_post_accumulate_grad_hook(lambda p: None))
    remove_hooks(pool, rng)


@action
def node_hooks(pool: Pool, rng: random.Random) -> None:
    node = rng.choice(pool.losses).grad_fn
    for _ in range(rng.randrange(3)):
        node = node.next_functions[0][0] or node
    pool.handles.append(node.register_hook(lambda *grads: None))
    pool.handles.append(node.register_prehook(lambda grads: None))
    node.metadata["a"] = 1
    remove_hooks(pool, rng)


@action
def result_hooks(pool: Pool, rng: random.Random) -> None:
    loss = rng.choice(pool.losses)
    pool.handles.append(loss.register_hook(lambda grad: grad))
    loss.retain_grad()


@action
def remove_hooks(pool: Pool, rng: random.Random) -> None:
    while len(pool.handles) > 10:
        with contextlib.suppress(IndexError):
            pool.handles.pop(rng.randrange(3)).remove()


@action
def hook_that_goes_backward(pool: Pool, rng: random.Random) -> None:
    leaf = pool.treadle.ones(3, requires_grad=True)
    leaf.register_hook(lambda grad: pool.treadle.autograd.grad((leaf * 2).sum(), leaf)[0])
    (leaf * 3).sum().backward()


@action
def requires_grad(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    t.requires_grad_(not t.requires_grad)


@action
def detach(pool: Pool, rng: random.Random) -> None:
    pool.tensor(rng).detach_()


@action
def look_at_graph(pool: Pool, rng: random.Random) -> None:
    node = rng.choice(pool.losses).grad_fn
    while node is not None:
        node.name(), [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
        node = node.next_functions[0][0] if node.next_functions else None


@action
def saved_hooks(pool: Pool, rng: random.Random) -> None:
    with pool.treadle.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda box: box[0]):
        pool.graph(rng).backward()


@action
def custom_function(pool: Pool, rng: random.Random) -> None:
    class F(pool.treadle.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.me = ctx
            return x.exp()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    pool.losses[rng.randrange(len(pool.losses))] = F.apply(rng.choice(pool.leaves)).sum()


# ---- Python's objects ----------------------------------------------------------------------------


@action
def printed(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    repr(t), str(rng.choice(pool.losses)), f"{t.sum():.2f}", t.tolist()


@action
def pickled(pool: Pool, rng: random.Random) -> None:
    pool.put(rng, pickle.loads(pickle.dumps(pool.tensor(rng).detach())))
    copy.deepcopy(pool.tensor(rng).detach())


@action
def saved(pool: Pool, rng: random.Random) -> None:
    file = io.BytesIO()
    pool.treadle.save(pool.module.state_dict(), file)
    file.seek(0)
    pool.module.load_state_dict(pool.treadle.load(file))


@action
def weak_references(pool: Pool, rng: random.Random) -> None:
    reference = weakref.ref(pool.tensor(rng))
    pool.kept.append(reference)
    for kept in list(pool.kept[-5:]):
        if isinstance(kept, weakref.ref) and (t := kept()) is not None:
            t.shape, t + 1


@action
def attributes(pool: Pool, rng: random.Random) -> None:
    t = pool.tensor(rng)
    t.note = [t, rng.choice(pool.losses)]
    vars(t).clear()


@action
def subclass(pool: Pool, rng: random.Random) -> None:
    class T(pool.treadle.Tensor):
        pass

    t = pool.tensor(rng).as_subclass(T)
    t.note = 1
    pool.losses[rng.randrange(len(pool.losses))] = (t * t).sum().as_subclass(pool.treadle.Tensor)


@action
def parameters(pool: Pool, rng: random.Random) -> None:
    p = pool.treadle.nn.Parameter(pool.treadle.randn(4, 6))
    p.register_hook(lambda grad, p=p: grad)
    (p * pool.tensor(rng)).sum().backward()


@action
def forget(pool: Pool, rng: random.Random) -> None:
    del pool.kept[:]


@action
def collect(pool: Pool, rng: random.Random) -> None:
    if rng.random() < 0.2:
        gc.collect()


# ---- modules and settings ------------------------------------------------------------------------


@action
def trained(pool: Pool, rng: random.Random) -> None:
    pool.module(pool.treadle.randn(4, 6)).sum().backward()
    pool.optimiser.step()
    if rng.random() < 0.5:
        pool.optimiser.zero_grad()


@action
def settings(pool: Pool, rng: random.Random) -> None:
    treadle = pool.treadle
    treadle.set_default_dtype(rng.choice([treadle.float32, treadle.float64]))
    treadle.set_default_dtype(treadle.float32)
    with treadle.autocast("cpu", dtype=treadle.bfloat16):
        pool.tensor(rng).detach() @ pool.tensor(rng).detach().t()
    with treadle.inference_mode():
        treadle.ones(2) + 1


def steps(pool: Pool, rng: random.Random, names: list[str], note: Callable) -> Iterator[None]:
    """One after another, for ever."""
    while True:
        name = rng.choice(names)
        note(name)
        try:
            ACTIONS[name](pool, rng)
        except ALLOWED:
            pass
        yield


def play(seed: int, seconds: float, names: list[str], threads: int, board: Path) -> int:
    """One round, in this process."""
    faulthandler.enable()
    import treadle

    sys.setswitchinterval(1e-5)
    pool = Pool(treadle, random.Random(seed))
    counts = [0] * threads
    failed: list = []
    end = time.monotonic() + seconds
    with board.open("r+b") as file:
        page = mmap.mmap(file.fileno(), 0)

    def work(number: int) -> None:
        def note(name: str) -> None:
            page[number * SLOT : (number + 1) * SLOT] = name.encode().ljust(SLOT)

        try:
            for _ in steps(pool, random.Random(seed * 1000 + number), names, note):
                counts[number] += 1
                if time.monotonic() > end:
                    return
        except BaseException as error:
            failed.append(error)
            raise

    all_threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(threads)]
    for thread in all_threads:
        thread.start()
    moved, before = time.monotonic(), list(counts)
    while any(thread.is_alive() for thread in all_threads):
        time.sleep(0.05)
        if counts != before:
            moved, before = time.monotonic(), list(counts)
        if time.monotonic() > moved + STANDSTILL:
            faulthandler.dump_traceback()
            os._exit(3)
    print(sum(counts))
    return 1 if failed else 0


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="fuzz --threads", description=__doc__.splitlines()[0])
    out.add_argument("seconds", type=float, help="how long")
    out.add_argument("--seed", type=int, help="which rounds; drawn and printed when not given")
    out.add_argument("--count", type=int, default=4, help="threads in a round (default 4)")
    out.add_argument("--only", metavar="A,B", help="these actions only")
    out.add_argument("--without", metavar="A,B", default="", help="all but these actions")
    out.add_argument("--board", help=argparse.SUPPRESS)
    return out


def main(arguments: Optional[list[str]] = None) -> int:
    args = parser().parse_args(arguments)
    names = args.only.split(",") if args.only else list(ACTIONS)
    names = [name for name in names if name not in args.without.split(",")]
    for name in names:
        if name not in ACTIONS:
            print(f"fuzz: expected one of {', '.join(ACTIONS)}, got {name}", file=sys.stderr)
            return 2
    if args.board:
        return play(args.seed, args.seconds, names, args.count, Path(args.board))
    seed = args.seed if args.seed is not None else random.randrange(10**6)
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + args.seconds
    total = rounds = findings = 0
    while rounds == 0 or time.monotonic() < end:
        left = max(1.0, min(ROUND, end - time.monotonic()))
        steps_made = one_round(seed + rounds, left, names, args.count)
        rounds += 1
        total += steps_made or 0
        findings += steps_made is None
    print(f"{total} steps, {rounds} rounds, {findings} findings")
    return 1 if findings else 0


def one_round(seed: int, seconds: float, names: list[str], threads: int) -> Optional[int]:
    """How many steps were made; None, and why, where the round ended other than it may."""
    with tempfile.NamedTemporaryFile() as board:
        board.write(b" " * SLOT * threads)
        board.flush()
        command = [
            sys.executable, "-m", "fuzz.threads", str(seconds), "--seed", str(seed),
            "--count", str(threads), "--only", ",".join(names), "--board", board.name,
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds * 10 + 4 * STANDSTILL
            )
        except subprocess.TimeoutExpired:
            said, status = "", "no end"
        else:
            said, status = done.stdout + done.stderr, str(done.returncode)
            if done.returncode == 0:
                return int(done.stdout.split()[-1])
        doing = Path(board.name).read_bytes().decode(errors="replace")
        actions = [doing[i : i + SLOT].strip() for i in range(0, len(doing), SLOT)]
    print(f"round of seed {seed}: ended with {status} during {', '.join(actions)}\n{said[-8000:]}")
    return None


if __name__ == "__main__":
    sys.exit(main())
