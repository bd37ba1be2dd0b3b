"""`weights_only`: what is loaded with it and without, that no method of a class runs in either
case, and the lists of names that programs add to."""

import argparse
import collections
import dataclasses
import decimal
import io
import mmap
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from checkpoints import traps

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


def test_a_whole_network_of_the_program():
    net = Net()
    file = saved(net)
    with pytest.raises(pickle.UnpicklingError, match="Net, which checkpoints may not use"):
        treadle.load(file)
    file.seek(0)
    loaded = treadle.load(file, weights_only=False)
    x = treadle.ones((2, 1))
    assert type(loaded) is Net and treadle.equal(loaded(x), net(x))


def test_layers_of_the_library_need_weights_only_false():
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.linear.Linear"):
        through(nn.Linear(1, 1))
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.ModuleList([nn.Dropout(0.1)]))
    loaded = through(net, weights_only=False)
    assert repr(loaded) == repr(net)
    assert treadle.equal(loaded[0](treadle.ones((1, 2))), net[0](treadle.ones((1, 2))))


def test_optimisers_and_schedulers():
    net = nn.Linear(1, 1)
    optimizer = treadle.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = treadle.optim.lr_scheduler.StepLR(optimizer, 3)
    net(treadle.ones((1, 1))).sum().backward()
    optimizer.step()
    net_again, again = through((net, optimizer), weights_only=False)
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
    loaded = through(value, weights_only=False)
    assert [type(loaded[key]) for key in value] == [type(value[key]) for key in value]
    assert loaded["config"].lr == 0.1 and loaded["config"].layers[1].tolist() == [1, 1]
    assert (loaded["slots"].a, loaded["slots"].b) == (1, [2])
    assert loaded["row"].name == "x" and loaded["colour"] is traps.Colour.RED
    for key in ("settings", "namespace", "path", "decimal", "number", "slice"):
        assert loaded[key] == value[key], key
    for key in ("array", "text"):
        np.testing.assert_array_equal(loaded[key], value[key])
    assert np.dtype("f4").byteorder == "="  # NumPy's own types are as they were


def test_numpy_needs_to_be_allowed_with_weights_only():
    value = np.float64(0.5)
    with pytest.raises(pickle.UnpicklingError, match="multiarray.scalar"):
        through(value)
    scalar = np.core.multiarray.scalar if np.__version__ < "2" else np._core.multiarray.scalar
    with serialization.safe_globals([scalar, np.dtype, type(np.dtype("f8"))]):
        assert through(value) == value


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
    loaded = treadle.load(file, weights_only=False)
    assert trapped == []
    assert vars(loaded[0]) == {"x": 1} and dict(loaded[1]) == {"a": 1} and list(loaded[2]) == [2]
    assert type(loaded[3]) is traps.Layer


@pytest.mark.parametrize("cls", [traps.Dying, traps.Stateful])
def test_classes_that_do_something_are_not_taken(cls, trapped):
    made = filled(cls, x=1)
    file = saved(made)
    for weights_only in (True, False):
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


def test_functions_are_kept_and_not_called(trapped):
    assert through([traps.run, nn.functional.relu], weights_only=False)[0] is traps.run
    with pytest.raises(pickle.UnpicklingError, match="something that checkpoints may call"):
        through(traps.Run(), weights_only=False)
    with pytest.raises(pickle.UnpicklingError, match="a value of Colour"):
        file = pickled(b"\x80\x02ccheckpoints.traps\nColour\nK\x07\x85R.")
        treadle.load(file, weights_only=False)
    assert trapped == []


def pickled(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("archive/data.pkl", content)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "name",
    ["subprocess\nPopen", "logging\nFileHandler", "os\nsystem", "threading\nThread",
     "tempfile\nTemporaryDirectory", "nowhere\nThing", "checkpoints.traps\nnn", "builtins\nopen",
     "checkpoints.traps\nrun.__globals__", "torch\nload", "torch.serialization\nload"],
)  # fmt: skip
def test_names_that_stay_closed(name):
    for weights_only in (True, False):
        with pytest.raises(pickle.UnpicklingError, match="which checkpoints may not use"):
            content = b"\x80\x02c" + name.encode() + b"\n."
            treadle.load(pickled(content), weights_only=weights_only)


# ---- lists of names ------------------------------------------------------------------------------


def test_classes_of_the_user_are_asked_for():
    file = saved([Net(), Config(1.0, [])])
    with serialization.safe_globals([Net, Config, nn.Linear, nn.functional.relu]):
        assert serialization.get_safe_globals() == [Net, Config, nn.Linear, nn.functional.relu]
        with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.linear.Linear"):
            treadle.load(file)
    assert serialization.get_safe_globals() == []
    file.seek(0)
    names = [
        (nn.Linear, "torch.nn.modules.linear.Linear"),
        (nn.functional.relu, "torch.nn.functional.relu"),
    ]
    serialization.add_safe_globals([Net, Config, *names])
    try:
        net, config = treadle.load(file)
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
