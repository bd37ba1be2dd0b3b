"""Pickles that reach for code through what a checkpoint may have: names with dots that lead through
modules, objects whose methods are called while others are filled, hooks that would run later.

`GADGETS` are pickles by what they try; each must be refused. `mutated` damages one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
import struct

# Functions, and other things that are no class of their own name, behind names that exist.
REACHED = [
    ("torch.serialization._safe_globals", "builtins.eval"),
    ("torch.serialization._safe_globals", "builtins.exec"),
    ("torch.serialization._safe_globals", "contextlib"),
    ("torch.serialization", "os.system"),
    ("torch.serialization", "io.open"),
    ("torch.serialization", "pickle.loads"),
    ("torch.serialization", "load"),
    ("torch.serialization", "CheckpointUnpickler.load"),
    ("torch.nn.modules.module", "OrderedDict"),
    ("torch.hub", "load_state_dict_from_url"),
    ("torch.nn", "Module.load_state_dict"),
    ("torch", "load"),
    ("torch", "_C._operator_names"),
    ("checkpoints.traps", "run"),
    ("checkpoints.traps", "enum.Enum"),
    ("checkpoints.traps", "nn.Linear"),
    ("checkpoints.traps", "Alias"),
    ("checkpoints.traps", "Plain.__call__"),
    ("checkpoints.traps", "Plain.__init__.__globals__"),
    ("copyreg", "_reconstructor"),
    ("copyreg", "__newobj__"),
    ("functools", "partial"),
]


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(module: str, dotted: str) -> bytes:
    return text(module) + text(dotted) + b"\x93"


def dictionary(**items: bytes) -> bytes:
    return b"}(" + b"".join(text(key) + value for key, value in items.items()) + b"u"


def made(module: str, cls: str, state: bytes = b"}") -> bytes:
    """An instance of a class, filled with a state."""
    return name(module, cls) + b")\x81" + state + b"b"


def trap(cls: str, **attributes: bytes) -> bytes:
    return made("checkpoints.traps", cls, dictionary(**attributes))


def layer(**attributes: bytes) -> bytes:
    return made("torch.nn.modules.linear", "Linear", dictionary(**attributes))


def optimizer(**parts: bytes) -> bytes:
    state = {"defaults": b"}", "state": b"}", "param_groups": b"]", **parts}
    return made("torch.optim.sgd", "SGD", dictionary(**state))


def tensor(size: bytes, stride: bytes) -> bytes:
    storage = b"(" + text("storage") + name("torch", "FloatStorage") + text("0") + text("cpu")
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"(" + storage + b"K\x06tQ" + b"K\x00" + size + stride + b"\x89NtR"
    )  # fmt: skip


PLAIN = trap("Plain")
OPERATOR = name("torch", "relu")
_HOOKED = b"}K\x01" + PLAIN + b"s"

GADGETS: dict[str, bytes] = {
    **{f"{module} {dotted}": name(module, dotted) for module, dotted in REACHED},
    "a call of what exists": name("torch", "relu") + b"K\x01\x85R",
    "a layer that is called": name("torch.nn.modules.linear", "Linear") + b"K\x01K\x01\x86R",
    "groups with methods": optimizer(
        defaults=dictionary(lr=b"K\x01"),
        param_groups=b"]" + trap("Plain", setdefault=OPERATOR) + b"a",
    ),
    "defaults with methods": optimizer(
        defaults=trap("Plain", items=OPERATOR), param_groups=b"]}a"
    ),
    "a state with methods": optimizer(state=trap("Plain", values=OPERATOR)),
    "a group that is a dictionary of the program": optimizer(
        param_groups=b"]" + trap("LoudMapping") + b"a"
    ),
    "a number of steps that is converted": optimizer(
        state=b"}K\x00" + dictionary(step=trap("Plain")) + b"s"
    ),
    "hooks of an optimizer": optimizer(_optimizer_step_pre_hooks=b"}K\x01" + PLAIN + b"s"),
    **{
        f"{hooks} of a layer": layer(**{hooks: _HOOKED})
        for hooks in (
            "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
            "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
        )
    },
    "an operator as a hook": layer(_forward_hooks=b"}K\x01" + OPERATOR + b"s"),
    "parameters with methods": layer(_parameters=trap("LoudMapping")),
    "modules with methods": layer(_modules=PLAIN),
    "a layer with a state of its own": made("checkpoints.traps", "StatefulLayer", dictionary()),
    "a class with a state of its own": trap("Stateful"),
    "a class that dies": trap("Dying"),
    "a property": trap("Watchful")[:-1] + b"N" + dictionary(value=b"K\x01") + b"\x86b",
    "a method as a slot": trap("Plain")[:-1] + b"N" + dictionary(__call__=b"K\x01") + b"\x86b",
    "a class as an attribute of the state": PLAIN[:-1]
    + b"N" + dictionary(__class__=b"K\x01") + b"\x86b",
    "a factory of the program": name("collections", "defaultdict")
    + name("checkpoints.traps", "Plain") + b"\x85R",
    "a factory that is called": name("collections", "defaultdict") + OPERATOR + b"\x85R",
    "a key": b"}" + PLAIN + b"K\x01s",
    "a key in a tuple": b"}" + PLAIN + b"\x85K\x01s",
    "a key that is a tuple of the program": b"}" + name("checkpoints.traps", "Pair")
    + b"K\x01\x85\x85\x81K\x01s",
    "an element of a set": name("builtins", "set") + b"]" + PLAIN + b"a\x85R",
    "a counter of a dictionary of the program": name("collections", "Counter")
    + trap("LoudMapping") + b"\x85R",
    "a list from a list of the program": name("builtins", "list") + trap("LoudRow") + b"\x85R",
    "sizes that iterate": tensor(trap("LoudRow"), b"K\x01\x85"),
    "a size that compares": tensor(PLAIN + b"\x85", b"K\x01\x85"),
    "a device of the program": name("torch", "device") + PLAIN + b"\x85R",
    "a date of the program": name("datetime", "date") + PLAIN + b"K\x01K\x01\x87R",
    "an array of objects": name("numpy", "dtype") + text("O8") + b"\x89\x88\x87R",
    "a tensor of a function of the program": name("torch._tensor", "_rebuild_from_type_v2")
    + b"(" + PLAIN + name("torch", "Tensor") + b")}tR",
    "a member that is missing": name("checkpoints.traps", "Colour") + b"K\x07\x85R",
    "a member of the program's value": name("checkpoints.traps", "Colour") + PLAIN + b"\x85R",
    "an operator by a private name": name("builtins", "getattr")
    + name("torch._C", "_VariableFunctionsClass") + text("_operator_names") + b"\x86R",
    "an attribute of anything": name("builtins", "getattr")
    + name("torch", "Tensor") + text("__init__") + b"\x86R",
}  # fmt: skip

GADGETS = {what: b"\x80\x04" + pickled + b"." for what, pickled in GADGETS.items()}


def mutated(pickled: bytes, rng: random.Random) -> bytes:
    """The pickle with a few parts changed, moved or repeated."""
    data = bytearray(pickled)
    for _ in range(rng.randint(1, 4)):
        place, length = rng.randrange(2, len(data)), rng.randint(0, 8)
        part = bytes(data[place : place + length])
        change = rng.randrange(4)
        if change == 0:
            data[place : place + 1] = bytes([rng.randrange(256)])
        elif change == 1:
            del data[place : place + length]
        elif change == 2:
            data[place:place] = part * 2
        else:
            other = rng.choice(list(GADGETS.values()))
            start = rng.randrange(2, len(other))
            data[place:place] = other[start : start + rng.randint(1, 60)]
    return bytes(data)
