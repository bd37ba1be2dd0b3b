"""`weights_only`: what is loaded with it and without, that no method of a class runs in either
case, what is refused with which remedy, and the lists of names that programs add to."""

# SPDX-License-Identifier: Apache-2.0

import argparse
import collections
import dataclasses
import decimal
import io
import mmap
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from checkpoints import traps
from checkpoints.gadgets import GADGETS, mutated

import treadle
from treadle import nn

serialization = treadle.serialization


def saved(value, **kwargs):
    file = io.BytesIO()
    treadle.save(value, file, **kwargs)
    file.seek(0)
    return file


def through(value, **kwargs):
    return treadle.load(saved(value), **kwargs)


# ---- the classes of a program --------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.act = nn.functional.relu

    def forward(self, x):
        return self.act(self.layer(x))


@dataclasses.dataclass
class Config:
    lr: float
    layers: list


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = 1, [2]


class Settings(dict):
    pass


Row = collections.namedtuple("Row", "name weight")


@pytest.mark.parametrize("weights_only", [None, False])
def test_a_whole_network_of_the_program(weights_only):
    net = Net()
    loaded = through(net, weights_only=weights_only)
    x = treadle.ones((2, 1))
    assert type(loaded) is Net and treadle.equal(loaded(x), net(x))


def test_layers_of_the_library():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.ModuleList([nn.Dropout(0.1)]))
    loaded = through(net)
    assert repr(loaded) == repr(net)
    assert treadle.equal(loaded[0](treadle.ones((1, 2))), net[0](treadle.ones((1, 2))))


def test_weights_only_takes_no_classes():
    for value, name in ((Net(), "Net"), (nn.Linear(1, 1), "torch.nn.modules.linear.Linear")):
        with pytest.raises(pickle.UnpicklingError, match=f"{name}, which checkpoints may not use"):
            through(value, weights_only=True)


def test_a_layer_of_an_older_version_gets_what_came_later():
    layer = nn.Conv2d(1, 1, 1)
    for name in ("padding_mode", "_forward_hooks_always_called"):
        del layer.__dict__[name]
    loaded = through(layer)
    assert loaded.padding_mode == "zeros" and loaded._forward_hooks_always_called == {}
    x = treadle.ones((1, 1, 2, 2))
    assert treadle.equal(loaded(x), layer.weight * x + layer.bias)


def test_weight_norm_is_a_hook_of_the_library():
    layer = nn.utils.weight_norm(nn.Linear(2, 2))
    loaded = through(layer)
    x = treadle.ones((1, 2))
    assert treadle.equal(loaded(x), layer(x))


def test_optimisers_and_schedulers():
    net = nn.Linear(1, 1)
    optimizer = treadle.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = treadle.optim.lr_scheduler.StepLR(optimizer, 3)
    net(treadle.ones((1, 1))).sum().backward()
    optimizer.step()
    net_again, again = through((net, optimizer))
    assert again.param_groups[0]["params"][0] is net_again.weight
    assert again.param_groups[0]["lr"] == 0.1
    state = through(scheduler.state_dict())
    assert state == scheduler.state_dict()


def test_plain_classes_of_the_program():
    value = {
        "config": Config(0.1, [1, treadle.ones(2)]),
        "slots": Slots(),
        "settings": Settings(a=1),
        "row": Row("x", treadle.zeros(1)),
        "colour": traps.Colour.RED,
        "namespace": argparse.Namespace(epochs=3),
        "path": pathlib.Path("a/b"),
        "decimal": decimal.Decimal("1.5"),
        "array": np.arange(6).reshape(2, 3)[:, ::2],
        "number": np.float32(0.5),
        "text": np.array(["ab", "c"]),
        "slice": slice(1, 2),
    }
    value["queue"] = collections.deque([1, 2], maxlen=3)
    loaded = through(value)
    assert loaded["queue"] == value["queue"] and loaded["queue"].maxlen == 3
    assert [type(loaded[key]) for key in value] == [type(value[key]) for key in value]
    assert loaded["config"].lr == 0.1 and loaded["config"].layers[1].tolist() == [1, 1]
    assert (loaded["slots"].a, loaded["slots"].b) == (1, [2])
    assert loaded["row"].name == "x" and loaded["colour"] is traps.Colour.RED
    for key in ("settings", "namespace", "path", "decimal", "number", "slice"):
        assert loaded[key] == value[key], key
    for key in ("array", "text"):
        np.testing.assert_array_equal(loaded[key], value[key])
    assert np.dtype("f4").byteorder == "="  # NumPy's own types are as they were


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_in_every_protocol(protocol):
    value = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3), "c8")), np.int16(3)]
    file = saved(value, pickle_protocol=protocol)
    for mine, theirs in zip(treadle.load(file), value):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype and np.isfortran(mine) == np.isfortran(theirs)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("fill", [0, 200])
def test_arrays_that_are_most_of_a_file(protocol, fill):
    value = {"whole": np.full(100_000, fill, dtype=np.uint8), "waves": np.sin(np.arange(5000.0))}
    loaded = treadle.load(saved(value, pickle_protocol=protocol))
    for key in value:
        np.testing.assert_array_equal(loaded[key], value[key])


def test_numpy_needs_to_be_allowed_with_weights_only():
    value = np.float64(0.5)
    with pytest.raises(pickle.UnpicklingError, match="multiarray.scalar"):
        through(value, weights_only=True)
    scalar = np.core.multiarray.scalar if np.__version__ < "2" else np._core.multiarray.scalar
    with serialization.safe_globals([scalar, np.dtype, type(np.dtype("f8"))]):
        assert through(value, weights_only=True) == value


# ---- nothing runs --------------------------------------------------------------------------------


@pytest.fixture
def trapped():
    """Objects of classes that leave traces; those of making them do not count."""
    traps.ran.clear()
    yield traps.ran
    traps.ran.clear()


def filled(cls, **attributes):
    made = cls.__new__(cls)
    made.__dict__.update(attributes)
    return made


def test_instances_are_filled_without_their_methods(trapped):
    mapping, row = traps.Mapping(), traps.Row()
    dict.__setitem__(mapping, "a", 1)
    list.append(row, 2)
    layer = nn.Linear(2, 2)
    layer.__class__ = traps.Layer
    file = saved([filled(traps.Plain, x=1), mapping, row, layer])
    trapped.clear()
    loaded = treadle.load(file)
    assert trapped == []
    assert vars(loaded[0]) == {"x": 1} and dict(loaded[1]) == {"a": 1} and list(loaded[2]) == [2]
    assert type(loaded[3]) is traps.Layer


@pytest.mark.parametrize("cls", [traps.Dying, traps.Stateful])
def test_classes_that_do_something_are_not_taken(cls, trapped):
    made = filled(cls, x=1)
    file = saved(made)
    for weights_only in (True, False, None):
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match=f"{cls.__name__}, which checkpoints"):
            treadle.load(file, weights_only=weights_only)
    assert trapped == []


def test_keys_that_compare_themselves_are_not_taken(trapped):
    for value in ({filled(traps.Plain): 1}, {(1, filled(traps.Plain)): 1}, {filled(traps.Plain)}):
        file = saved(value)
        trapped.clear()
        with pytest.raises(pickle.UnpicklingError, match="expected plain keys"):
            treadle.load(file, weights_only=False)
        assert trapped == []


def test_functions_of_the_library_are_kept_and_not_called(trapped):
    kept = [nn.functional.relu, treadle.relu, nn.functional.gelu]
    assert through(kept) == kept
    with pytest.raises(pickle.UnpicklingError, match="run, which checkpoints may not use"):
        through(traps.Run())
    assert trapped == []


def test_an_object_that_watches_itself_is_filled_unseen(trapped):
    content = b"\x80\x02ccheckpoints.traps\nWatchful\n)\x81}X\1\0\0\0aK\1sb."
    loaded = treadle.load(pickled(content))
    assert trapped == []
    assert object.__getattribute__(loaded, "__dict__") == {"a": 1}


@pytest.mark.parametrize("weights_only", [None, True, False])
@pytest.mark.parametrize("what", GADGETS)
def test_gadgets_are_refused(what, weights_only, trapped):
    file = pickled(GADGETS[what], {"data/0": bytes(24)})
    trapped.clear()
    with pytest.raises(pickle.UnpicklingError):
        treadle.load(file, weights_only=weights_only)
    assert trapped == []


def test_mutated_gadgets_run_nothing(trapped):
    rng = random.Random(0)
    for turn in range(4000):
        file = pickled(mutated(rng.choice(list(GADGETS.values())), rng), {"data/0": bytes(24)})
        trapped.clear()
        loaded = None
        try:
            loaded = [treadle.load(file, weights_only=(None, False)[turn % 2])]
        except (RuntimeError, pickle.UnpicklingError, EOFError):
            pass
        assert trapped == []
        del loaded


def pickled(content, members=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("archive/data.pkl", content)
        for name, data in dict(members).items():
            zipped.writestr(f"archive/{name}", data)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "name",
    ["subprocess\nPopen", "logging\nFileHandler", "os\nsystem", "threading\nThread",
     "tempfile\nTemporaryDirectory", "nowhere\nThing", "checkpoints.traps\nnn", "builtins\nopen",
     "checkpoints.traps\nrun.__globals__", "torch\nload", "torch.serialization\nload"],
)  # fmt: skip
def test_names_that_stay_closed(name):
    for weights_only in (True, False, None):
        with pytest.raises(pickle.UnpicklingError, match="which checkpoints may not use"):
            content = b"\x80\x02c" + name.encode() + b"\n."
            treadle.load(pickled(content), weights_only=weights_only)


# ---- what is refused, and the remedy -------------------------------------------------------------

ALLOW = (
    "If it is harmless whatever it is called with, allow it with\n"
    "treadle.serialization.add_safe_globals([...])."
)


def refusal(name, **kwargs):
    with pytest.raises(pickle.UnpicklingError) as caught:
        treadle.load(pickled(b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n."), **kwargs)
    text = str(caught.value)
    begin = f"load: expected only data, got the name {name.replace(' ', '.')}, which checkpoints"
    assert text.startswith(f"{begin} may not use.\n") and text.count("\n") < 6
    return text.partition("\n")[2]


def test_remedies():
    assert refusal("checkpoints.traps Plain", weights_only=True) == (
        "weights_only=True takes tensors and containers. Without it, layers, NumPy's values and\n"
        f"classes that the program has are loaded, too. {ALLOW}"
    )
    assert refusal("checkpoints.traps run") == (
        f"A class must have this name itself, and functions are not loaded. {ALLOW}"
    )
    assert refusal("nowhere.models Net") == (
        "Where it is a class of yours, import nowhere.models before the file is loaded."
    )
    assert refusal("subprocess Popen") == f"It is a class of Python's own library. {ALLOW}"
    assert refusal("torch.no_such_module Queue") == (
        f"A class must have this name itself, and functions are not loaded. {ALLOW}"
    )
    assert refusal("torch.autograd.function FunctionCtx") == (
        f"It is no data that programs save. {ALLOW}"
    )
    assert refusal("checkpoints.traps Stateful") == (
        f"Its class Stateful has a method __setstate__, which would run. {ALLOW}"
    )
    assert refusal("checkpoints.traps Dying") == (
        f"Its class Dying has a method __del__, which would run. {ALLOW}"
    )
    assert refusal("numpy memmap") == ALLOW


def test_classes_of_installed_packages():
    name = "_pytest.mark.structures MarkDecorator"
    assert refusal(name) == (
        f"Classes of installed packages are loaded with weights_only=False. {ALLOW}"
    )
    content = b"\x80\x02c" + name.replace(" ", "\n").encode() + b"\n)\x81."
    loaded = treadle.load(pickled(content), weights_only=False)
    assert type(loaded).__name__ == "MarkDecorator"


def test_hooks_are_refused_by_name():
    layer = nn.Linear(1, 1)
    layer.register_forward_hook(nn.functional.relu)
    with pytest.raises(
        pickle.UnpicklingError,
        match="expected a layer without hooks, got _forward_hooks; remove them before saving, and "
        "register them again after loading",
    ):
        through(layer)


# ---- lists of names ------------------------------------------------------------------------------


def test_classes_of_the_user_are_asked_for():
    file = saved([Net(), Config(1.0, [])])
    with serialization.safe_globals([Net, Config, nn.Linear, nn.functional.relu]):
        assert serialization.get_safe_globals() == [Net, Config, nn.Linear, nn.functional.relu]
        with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.linear.Linear"):
            treadle.load(file, weights_only=True)
    assert serialization.get_safe_globals() == []
    file.seek(0)
    names = [
        (nn.Linear, "torch.nn.modules.linear.Linear"),
        (nn.functional.relu, "torch.nn.functional.relu"),
    ]
    serialization.add_safe_globals([Net, Config, *names])
    try:
        net, config = treadle.load(file, weights_only=True)
    finally:
        serialization.clear_safe_globals()
    assert isinstance(net.layer, nn.Linear) and config.lr == 1.0


def test_what_can_never_be_allowed():
    for given in (eval, exec, __import__, 3):
        with pytest.raises((TypeError, AttributeError)):
            serialization.add_safe_globals([given])
    with serialization.safe_globals([(os.getcwd, "os.getcwd"), (os.getcwd, "posix.getcwd")]):
        for name in (b"os", b"posix"):
            with pytest.raises(pickle.UnpicklingError, match="getcwd"):
                treadle.load(pickled(b"\x80\x02c" + name + b"\ngetcwd\n)R."))


def test_unsafe_names_in_a_checkpoint(tmp_path):
    path = tmp_path / "net.pt"
    treadle.save([Net(), treadle.ones(1)], path)
    names = serialization.get_unsafe_globals_in_checkpoint(path)
    assert set(names) == {
        f"{__name__}.Net",
        "torch.nn.modules.linear.Linear",
        "torch.nn.functional.relu",
    }
    with serialization.safe_globals([Net]):
        assert len(serialization.get_unsafe_globals_in_checkpoint(str(path))) == 2
    treadle.save([Config(1.0, [])], path, pickle_protocol=4)
    assert serialization.get_unsafe_globals_in_checkpoint(path) == [f"{__name__}.Config"]
    with pytest.raises(ValueError, match="zip format"):
        old = saved(1, _use_new_zipfile_serialization=False)
        serialization.get_unsafe_globals_in_checkpoint(old)


def test_modes_of_loading(monkeypatch):
    file = saved(1)
    with pytest.raises(RuntimeError, match="no pickle_module where weights_only=True"):
        treadle.load(file, pickle_module=pickle, weights_only=True)
    assert treadle.load(file, pickle_module=pickle) == 1
    net = saved(nn.ReLU())
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        assert isinstance(treadle.load(net), nn.ReLU)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="got both"):
        treadle.load(file)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    net.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        treadle.load(net, weights_only=False)
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    net.seek(0)
    assert isinstance(treadle.load(net), nn.ReLU)


def test_text_of_python_2():
    old = b"\x80\x02U\x02\xe4b."
    assert treadle.load(pickled(old), encoding="latin1") == "äb"
    assert treadle.load(pickled(old), encoding="bytes") == b"\xe4b"
    assert treadle.load(pickled(b"\x80\x02c__builtin__\nset\n]K\x01a\x85R.")) == {1}


# ---- files ---------------------------------------------------------------------------------------


def test_shared_mapping_writes_to_the_file(tmp_path):
    path = tmp_path / "shared.pt"
    treadle.save(treadle.zeros(100), path)
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        treadle.load(path, mmap=True)[3] = 7.0
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    private = treadle.load(path, mmap=True)
    private[4] = 8.0
    assert treadle.load(path, mmap=True)[:6].tolist() == [0, 0, 0, 7, 0, 0]
    with pytest.raises(ValueError, match="MAP_SHARED"):
        serialization.set_default_mmap_options(12345)


def test_what_cannot_be_mapped(tmp_path):
    path = tmp_path / "old.pt"
    treadle.save(treadle.ones(1), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="zip format where mmap=True"):
        treadle.load(path, mmap=True)
    with pytest.raises(ValueError, match="a path where mmap=True"):
        treadle.load(saved(1), mmap=True)


SAVE_FOR_EVER = """
import sys, treadle
state = {"a": treadle.zeros(50_000), "turn": 0}
print("begun", flush=True)
while True:
    state["turn"] += 1
    state["a"].fill_(state["turn"])
    treadle.save(state, sys.argv[1])
"""


def test_a_killed_save_leaves_a_whole_file(tmp_path):
    path = tmp_path / "net.pt"
    treadle.save({"a": treadle.zeros(50_000), "turn": 0}, path)
    for turn in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOR_EVER, str(path)], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(0.05 + 0.013 * turn)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        state = treadle.load(path)
        assert (state["a"] == state["turn"]).all()
