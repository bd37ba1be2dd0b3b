"""A sequence: calls one after the other on tensors that share memory, with NumPy, DLPack, buffers
and each other.

Sequence N of seed S always makes the same calls. After each, what must hold is looked at: nothing
was written but what the call writes, a call that failed wrote nothing and resized nothing, memory
that somebody holds is where it was, and its holder can read it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import pickle
import random
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy as np

import treadle

from . import law
from .judge import Finding

STEPS = 40  # of one sequence
MOST = 10  # tensors, and holders, at a time
DTYPES = (
    "float32", "float64", "int64", "int64", "uint8", "complex64", "bool", "float32", "complex64",
    "complex32", "float8_e4m3fn",
)  # fmt: skip
SHAPES = ((6,), (2, 3), (0,), (1,), (3, 2, 2), (17,), (4, 4), (), (40_000,))
# Answers that are allowed for a tensor that a resize cut off.
CUT = ("in its storage", "inside its storage")


@dataclass
class Holder:
    """Somebody with the address of memory: what keeps it, and an array through which it is read."""

    what: str
    keeps: Any
    array: Optional[np.ndarray]
    address: int


class Memory:
    """All bytes under a tensor, as they were before a call. It keeps no storage: what a call may do
    depends on who does.
    """

    def __init__(self, t: treadle.Tensor):
        self.tensor = t
        self.place = self._place()
        self.values = bytes_of(t.untyped_storage())

    def _place(self) -> tuple[int, int, int]:
        storage = self.tensor.untyped_storage()
        return hash(storage), storage.data_ptr(), storage.nbytes()

    def changed(self) -> np.ndarray:
        """Addresses of the bytes that are different now; none where the memory is another."""
        if self._place() != self.place:
            return np.zeros(0, np.int64)
        now = bytes_of(self.tensor.untyped_storage())
        return np.flatnonzero(now != self.values) + self.place[1]


def bytes_of(storage: Any) -> np.ndarray:
    with memoryview(storage) as view:
        return np.frombuffer(view, np.uint8).copy()


def addresses_of(t: treadle.Tensor) -> np.ndarray:
    """The address of each byte that belongs to an element."""
    if t.numel() == 0 or t.data_ptr() == 0:
        return np.zeros(0, np.int64)
    at = np.zeros((), np.int64)
    for size, stride in zip(t.shape, t.stride()):
        at = np.add.outer(at, np.arange(size, dtype=np.int64) * stride)
    item = t.element_size()
    return np.add.outer(t.data_ptr() + at.reshape(-1) * item, np.arange(item)).reshape(-1)


@dataclass
class Sequence:
    """The state of a sequence, and the steps that were made."""

    random: random.Random
    tensors: list[treadle.Tensor] = field(default_factory=list)
    holders: list[Holder] = field(default_factory=list)
    buffers: list[Any] = field(default_factory=list)
    weak: list[Any] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    # ---- what a step is made of ----

    def say(self, text: str) -> None:
        self.log[-1] += text

    def tensor(self) -> treadle.Tensor:
        return self.random.choice(self.tensors)

    def name(self, t: treadle.Tensor) -> str:
        at = next(i for i, other in enumerate(self.tensors) if other is t)
        return f"t{at}"

    def any(self, wanted: Callable[[treadle.Tensor], bool]) -> treadle.Tensor:
        """One that is as wanted, if there is one."""
        return self.random.choice([t for t in self.tensors if wanted(t)] or self.tensors)

    def keep(self, t: treadle.Tensor) -> None:
        self.say(f" -> {str(t.dtype)[8:]}{tuple(t.shape)} strides {t.stride()}")
        if len(self.tensors) < MOST:
            self.tensors.append(t)
        else:
            self.tensors[self.random.randrange(MOST)] = t

    def shape(self) -> tuple[int, ...]:
        return self.random.choice(SHAPES)

    def dtype(self) -> treadle.dtype:
        return getattr(treadle, self.random.choice(DTYPES))

    def hold(self, what: str, keeps: Any, array: Optional[np.ndarray], address: int) -> None:
        holder = Holder(what, keeps, array, address)
        if len(self.holders) < MOST:
            self.holders.append(holder)
        else:
            self.holders[self.random.randrange(MOST)] = holder

    # ---- steps: each does one thing, and returns the tensors that it may write ----

    def make(self) -> Any:
        shape, dtype = self.shape(), self.dtype()
        self.say(f"zeros({shape}, dtype={dtype})")
        self.keep(treadle.zeros(shape, dtype=dtype))

    def make_over_a_buffer(self) -> Any:
        if not self.buffers or self.random.random() < 0.3:
            self.buffers.append(bytearray(self.random.choice((64, 256, 8 * 1001))))
            del self.buffers[:-3]
        buffer, dtype = self.random.choice(self.buffers), self.dtype()
        offset = 16 * self.random.randrange(4) + self.random.choice((0, 0, 8, 1))
        self.say(f"frombuffer({len(buffer)} bytes, dtype={dtype}, offset={offset})")
        item = treadle.zeros(1, dtype=dtype).element_size()
        count = max(1, (len(buffer) - offset) // item - self.random.randrange(3))
        self.keep(treadle.frombuffer(buffer, dtype=dtype, offset=offset, count=count))

    def make_from_an_array(self) -> Any:
        arrays = [h.array for h in self.holders if h.array is not None and h.array.ndim]
        array = self.random.choice(arrays) if arrays else np.zeros(9)
        start, step = self.random.randrange(3), self.random.choice((1, 1, 2, -1))
        part = array[start:][::step]
        self.say(f"from_numpy of {array.dtype}{array.shape}[{start}:][::{step}]")
        self.keep(treadle.from_numpy(part))

    def view(self) -> Any:
        t = self.tensor()
        how, make = self.random.choice(VIEWS)
        self.say(f"{self.name(t)}{how}")
        self.keep(make(t))

    def export(self) -> Any:
        t = self.any(lambda t: not t.requires_grad)
        what = self.random.choice(tuple(EXPORTS))
        self.say(f"{what} of {self.name(t)}")
        keeps, array = EXPORTS[what](t)
        address = array.__array_interface__["data"][0] if array is not None else 0
        self.hold(what, keeps, array, address)

    def drop_a_tensor(self) -> Any:
        if len(self.tensors) > 1:
            at = self.random.randrange(len(self.tensors))
            self.say(f"del t{at}")
            del self.tensors[at]

    def drop_a_holder(self) -> Any:
        if self.holders:
            at = self.random.randrange(len(self.holders))
            self.say(f"del {self.holders[at].what} {at}")
            del self.holders[at]

    def resize(self) -> Any:
        t, shape = self.tensor(), self.shape()
        self.say(f"{self.name(t)}.resize_({shape})")
        t.resize_(shape)

    def resize_the_storage(self) -> Any:
        t = self.tensor()
        size = self.random.choice((0, 8, 24, 100, 200_000))
        self.say(f"{self.name(t)}.untyped_storage().resize_({size})")
        t.untyped_storage().resize_(size)

    def take_other_memory(self) -> Any:
        t = self.tensor()
        source = self.any(lambda other: other.dtype == t.dtype)
        if self.random.random() < 0.5:
            self.say(f"{self.name(t)}.set_({self.name(source)})")
            t.set_(source)
        else:
            self.say(f"{self.name(t)}.data = {self.name(source)}")
            t.data = source

    def change_geometry(self) -> Any:
        t = self.tensor()
        how = self.random.choice(("t_", "squeeze_", "transpose_", "unsqueeze_"))
        self.say(f"{self.name(t)}.{how}")
        {
            "t_": lambda: t.t_(),
            "squeeze_": lambda: t.squeeze_(),
            "transpose_": lambda: t.transpose_(0, -1),
            "unsqueeze_": lambda: t.unsqueeze_(0) if t.dim() < 6 else t,
        }[how]()

    def share(self) -> Any:
        t = self.tensor()
        self.say(f"{self.name(t)}.share_memory_()")
        t.share_memory_()

    def copy(self) -> Any:
        t = self.tensor()
        how = self.random.choice(tuple(COPIES))
        self.say(f"{how} of {self.name(t)}")
        self.keep(COPIES[how](t))

    def write(self) -> Any:
        t = self.tensor()
        other = self.any(lambda o: o.shape == t.shape and o.dtype == t.dtype)
        how = self.random.choice(tuple(WRITES))
        self.say(f"{how} of {self.name(t)} with {self.name(other)}")
        return [t], lambda: WRITES[how](t, other)

    def write_by_index(self) -> Any:
        t = self.any(lambda o: o.dim() == 1)
        index = self.any(lambda o: o.dtype == treadle.int64 and o.dim() == 1)
        source = self.any(lambda o: o.dtype == t.dtype and o.dim() == 1)
        how = self.random.choice(tuple(INDEXED))
        self.say(f"{how} of {self.name(t)} at {self.name(index)} from {self.name(source)}")
        return [t], lambda: INDEXED[how](t, index, source)

    def write_out(self) -> Any:
        a = self.tensor()
        b = self.any(lambda o: o.shape == a.shape)
        out = self.any(lambda o: o.dtype == a.dtype)
        how = self.random.choice(tuple(OUTS))
        self.say(f"{how} of {self.name(a)} and {self.name(b)}, out={self.name(out)}")
        return [out], lambda: OUTS[how](a, b, out)

    def use(self) -> Any:
        t = self.tensor()
        how = self.random.choice(tuple(USES))
        self.say(f"{how} of {self.name(t)}")
        USES[how](t)

    def go_backward(self) -> Any:
        x = self.any(lambda t: t.dtype in (treadle.float32, treadle.float64))
        w = treadle.ones(tuple(x.shape), dtype=treadle.float64, requires_grad=True)
        t = self.tensor()
        between = self.random.choice(("nothing", "resize", "set", "drop", "write"))
        self.say(f"backward through {self.name(x)}, {between} {self.name(t)} in a hook")
        y = w * x.detach() if self.random.random() < 0.7 else w.exp() * x.detach().view_as(x)
        written: list[treadle.Tensor] = []

        def hook(grad: treadle.Tensor) -> None:
            if between == "resize":
                t.untyped_storage().resize_(8)
            elif between == "set":
                t.set_(treadle.zeros(2, dtype=t.dtype))
            elif between == "drop":
                self.drop_a_tensor()
            elif between == "write":
                t.add_(1)

        y.register_hook(hook)
        if self.random.random() < 0.3:
            y.retain_grad()
        if between == "write":
            written.append(t)
        return written, lambda: y.sum().abs().backward()

    def know_weakly(self) -> Any:
        t = self.tensor()
        self.say(f"weakref of {self.name(t)}")
        if self.random.random() < 0.5:
            t.tag = "tag"
        self.weak = [*self.weak[-4:], weakref.ref(t)]
        alive = [ref() for ref in self.weak]
        assert all(a is None or isinstance(a.shape, tuple) for a in alive)

    def collect(self) -> Any:
        self.say("gc.collect()")
        gc.collect()

    # ---- a step with what must hold ----

    def step(self) -> Optional[Finding]:
        if not self.tensors:
            self.tensors.append(treadle.arange(6.0))
        action = self.random.choices(*ACTIONS)[0]
        self.log.append("")
        before = self.memories()
        geometry = [(t, t.shape, t.stride(), t.storage_offset()) for t in self.tensors]
        written: list[treadle.Tensor] = []
        places = np.zeros(0, np.int64)
        try:
            asked = action(self)
            if asked is not None:
                written, act = asked
                places = np.concatenate([places, *map(addresses_of, written)])
                act()
                places = np.concatenate([places, *map(addresses_of, written)])
            failed = False
        except Exception as error:
            failed = True
            first = str(error).splitlines()[0] if str(error) else ""
            self.say(f": {type(error).__name__}: {first}")
            if found := self.judged(error):
                return found
        if failed and action in (Sequence.write, Sequence.write_out, Sequence.write_by_index):
            places = np.zeros(0, np.int64)  # what is refused leaves all as it was
            for t, *was in geometry:
                if [t.shape, t.stride(), t.storage_offset()] != was:
                    return Finding("resizes though it fails", self.log[-1])
        for memory in before:
            beside = np.setdiff1d(memory.changed(), places)
            if beside.size:
                kind = "writes though it fails" if failed else "writes beside"
                return Finding(kind, f"{self.log[-1]}: {beside.size} bytes")
        return self.held_memory_is_there()

    def memories(self) -> list[Memory]:
        made = [Memory(t) for t in self.tensors if t.data_ptr()]
        return list({memory.place: memory for memory in made}.values())

    def judged(self, error: Exception) -> Optional[Finding]:
        if any(text in str(error) for text in CUT) and isinstance(error, RuntimeError):
            return None
        breach = law.breach(error, by_hand=True)
        return Finding(*breach) if breach else None

    def held_memory_is_there(self) -> Optional[Finding]:
        for holder in self.holders:
            if holder.array is not None:
                if holder.array.__array_interface__["data"][0] != holder.address:
                    return Finding("memory moved", holder.what)
                holder.array.sum()  # reads it: under the sanitizers that is the check
        return None

    def run(self, steps: int, show: Callable[[str], None] = lambda text: None) -> Optional[Finding]:
        for _ in range(steps):
            found = self.step()
            show(self.log[-1])
            if found is not None:
                return found
        return None


VIEWS: tuple[tuple[str, Callable[[treadle.Tensor], treadle.Tensor]], ...] = (
    ("[1:]", lambda t: t[1:]),
    ("[:-1]", lambda t: t[:-1]),
    ("[::2]", lambda t: t[::2]),
    ("[..., :2]", lambda t: t[..., :2]),
    ("[0]", lambda t: t[0]),
    (".t()", lambda t: t.t()),
    (".view(-1)", lambda t: t.view(-1)),
    (".view(int32)", lambda t: t.view(treadle.int32)),
    (".view(uint8)", lambda t: t.view(treadle.uint8)),
    (".expand(3, ...)", lambda t: t.expand(3, *t.shape) if t.dim() < 5 else t.view_as(t)),
    (".as_strided((2, 2), (1, 1))", lambda t: t.as_strided((2, 2), (1, 1))),
    (".detach()", lambda t: t.detach()),
    (".data", lambda t: t.data),
    (".unfold(0, 2, 1)", lambda t: t.unfold(0, 2, 1) if t.dim() < 5 else t.view_as(t)),
    (".flip(0)", lambda t: t.flip(0)),
    (".conj()", lambda t: treadle._conj(t) if t.is_complex() else t.view_as(t)),
    (".imag", lambda t: t.imag if t.is_complex() else treadle._neg_view(t)),
    (".real", lambda t: treadle.view_as_real(t) if t.is_complex() else t.view_as(t)),
)
EXPORTS: dict[str, Callable[[treadle.Tensor], tuple[Any, Optional[np.ndarray]]]] = {
    "numpy": lambda t: (None, t.numpy()),
    "asarray": lambda t: (None, np.asarray(t)),
    "memoryview": lambda t: (memoryview(t.untyped_storage()), None),
    "frombuffer": lambda t: (None, np.frombuffer(t.untyped_storage(), np.uint8)),
    "NumPy's from_dlpack": lambda t: (None, np.from_dlpack(t)),
    "from_dlpack": lambda t: (treadle.from_dlpack(t), None),
    "a capsule": lambda t: (t.__dlpack__(), None),
}
COPIES: dict[str, Callable[[treadle.Tensor], treadle.Tensor]] = {
    "clone": lambda t: t.clone(),
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "deepcopy": lambda t: copy.deepcopy([t, t])[1],
    "copy": copy.copy,
    "contiguous": lambda t: t.contiguous(),
    "from_dlpack": lambda t: treadle.from_dlpack(t.detach()),
    "from_numpy of numpy": lambda t: treadle.from_numpy(t.detach().numpy()),
}
WRITES: dict[str, Callable[[treadle.Tensor, treadle.Tensor], Any]] = {
    "add_": lambda t, o: t.add_(o),
    "copy_": lambda t, o: t.copy_(o),
    "mul_": lambda t, o: t.mul_(o),
    "fill_": lambda t, o: t.fill_(1),
    "zero_": lambda t, o: t.zero_(),
    "setitem": lambda t, o: t.__setitem__(slice(1, None), o[1:]),
    "where": lambda t, o: t.masked_fill_(o != 0, 1),
    "foreach_add_": lambda t, o: treadle._C._foreach_add_([t, t[:0]], 1),
    "a fused step": lambda t, o: treadle._C._fused_sgd_(
        [t],
        [o],
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=1.0,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    ),  # fmt: skip
    "sort into itself": lambda t, o: t.copy_(t.sort()[0]),
    "addcmul_": lambda t, o: t.addcmul_(o, o),
    "bernoulli_": lambda t, o: t.bernoulli_(0.5),
}
INDEXED: dict[str, Callable[[treadle.Tensor, treadle.Tensor, treadle.Tensor], Any]] = {
    "scatter_": lambda t, i, s: t.scatter_(0, i, s),
    "scatter_add_": lambda t, i, s: t.scatter_add_(0, i, s),
    "index_put_": lambda t, i, s: t.index_put_((i,), s),
    "index_add_": lambda t, i, s: t.index_add_(0, i, s),
    "index_copy_": lambda t, i, s: t.index_copy_(0, i, s),
    "index_fill_": lambda t, i, s: t.index_fill_(0, i, 1),
    "gather into": lambda t, i, s: treadle.gather(s, 0, i, out=t),
    "take into": lambda t, i, s: treadle.take(s, i, out=t),
    "index_select into": lambda t, i, s: treadle.index_select(s, 0, i, out=t),
}
OUTS: dict[str, Callable[[treadle.Tensor, treadle.Tensor, treadle.Tensor], Any]] = {
    "add": lambda a, b, out: treadle.add(a, b, out=out),
    "mul": lambda a, b, out: treadle.mul(a, b, out=out),
    "cat": lambda a, b, out: treadle.cat([a, b], out=out),
    "stack": lambda a, b, out: treadle.stack([a, b], out=out),
    "matmul": lambda a, b, out: treadle.matmul(a, b, out=out),
    "cumsum": lambda a, b, out: treadle.cumsum(a, 0, out=out),
    "sum": lambda a, b, out: treadle.sum(a, 0, out=out),
    "abs": lambda a, b, out: treadle.abs(a, out=out),
    "arange": lambda a, b, out: treadle.arange(a.numel() + 1, out=out),
    "nonzero": lambda a, b, out: treadle.nonzero(a, out=out),
    "clamp": lambda a, b, out: treadle.clamp(a, 0, 1, out=out),
    "tril": lambda a, b, out: treadle.tril(a, out=out),
}
USES: dict[str, Callable[[treadle.Tensor], Any]] = {
    "sum": lambda t: t.sum(),
    "repr": repr,
    "tolist": lambda t: t.tolist() if t.numel() < 100 else None,
    "matmul": lambda t: t @ t,
    "sort": lambda t: t.sort(),
    "unique": treadle.unique,
    "cat": lambda t: treadle.cat([t, t]),
    "double": lambda t: t.double(),
    "nonzero": lambda t: t.nonzero(),
    "equal": lambda t: treadle.equal(t, t),
    "fft": treadle.fft.fft,
    "conv1d": lambda t: treadle.conv1d(t.view(1, 1, -1), treadle.ones(1, 1, 1, dtype=t.dtype)),
}
ACTIONS: tuple[list[Callable[[Sequence], Any]], list[int]] = (
    [
        Sequence.make, Sequence.make_over_a_buffer, Sequence.make_from_an_array, Sequence.view,
        Sequence.export, Sequence.drop_a_tensor, Sequence.drop_a_holder, Sequence.resize,
        Sequence.resize_the_storage, Sequence.take_other_memory, Sequence.change_geometry,
        Sequence.share, Sequence.copy, Sequence.write, Sequence.write_by_index,
        Sequence.write_out, Sequence.use, Sequence.go_backward, Sequence.know_weakly,
        Sequence.collect,
    ],
    [4, 4, 3, 10, 8, 4, 6, 4, 4, 3, 2, 2, 4, 10, 8, 10, 8, 4, 3, 1],
)  # fmt: skip


def sequence(seed: int, number: int) -> Sequence:
    return Sequence(random.Random(f"{seed} {number}"))
