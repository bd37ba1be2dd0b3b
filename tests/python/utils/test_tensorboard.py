"""Event files for TensorBoard, read back by a decoder of the tests' own (event_files.py)."""

# SPDX-License-Identifier: Apache-2.0

import io
import os
import pathlib
import struct
import subprocess
import sys
import wave

import event_files
import numpy as np
import pytest
from event_files import fields, one, packed, text, values

import treadle
from treadle import nn
from treadle.utils.tensorboard import SummaryWriter
from treadle.utils.tensorboard._crc import crc32c


def files(folder):
    return sorted(path for path in pathlib.Path(folder).iterdir() if "tfevents" in path.name)


@pytest.fixture
def written(tmp_path):
    """Calls a function with a writer and gives the values that are then in the file."""

    def write(function, **kwargs):
        with SummaryWriter(tmp_path / "log", **kwargs) as writer:
            function(writer)
        (path,) = files(tmp_path / "log")
        return values(path)

    return write


def only(found):
    (value,) = found
    return value


# ---- the file ------------------------------------------------------------------------------------


def test_checksums():
    assert crc32c(b"123456789") == 0xE3069283  # of the catalogue of checksums
    rng = np.random.default_rng(0)
    for size in (0, 1, 8, 1023, 1024, 1025, 2048, 5000):
        data = rng.bytes(size)
        assert crc32c(data) == event_files.crc32c(data), size


def test_first_event_and_name(tmp_path):
    with SummaryWriter(tmp_path, filename_suffix=".end", purge_step=7) as writer:
        assert writer.get_logdir() == writer.log_dir == str(tmp_path)
        writer.add_scalar("a", 1, 8, walltime=12.5)
    (path,) = files(tmp_path)
    assert path.name.startswith("events.out.tfevents.") and path.name.endswith(".end")
    first, again, session, event = event_files.events(path)
    assert text(first, 3) == "brain.Event:2" and one(first, 1) > 1.6e9
    assert text(again, 3) == "brain.Event:2" and one(again, 2) == 7
    assert one(session, 7, 1) == 1 and one(session, 2) == 7
    assert one(event, 1) == 12.5 and one(event, 2) == 8


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SummaryWriter(comment="_mine").close()
    (run,) = os.listdir("runs")
    assert run.endswith("_mine") and files(tmp_path / "runs" / run)


def test_flushing(tmp_path):
    writer = SummaryWriter(tmp_path, max_queue=3)
    (path,) = files(tmp_path)
    assert len(event_files.events(path)) == 1
    for step in range(3):
        assert len(event_files.events(path)) == 1
        writer.add_scalar("a", step, step)
    assert len(event_files.events(path)) == 4
    writer.add_scalar("a", 3, 3)
    writer.flush()
    assert len(event_files.events(path)) == 5
    writer.close()
    writer.close()


def test_waiting_events_go_to_the_file_after_a_while(tmp_path):
    writer = SummaryWriter(tmp_path, flush_secs=0, max_queue=100)
    writer.add_scalar("a", 1)
    assert len(event_files.events(files(tmp_path)[0])) == 2


def test_a_closed_writer_goes_on_in_a_new_file(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("a", 1)
    writer.close()
    writer.add_scalar("a", 2)
    writer.close()
    assert [len(values(path)) for path in files(tmp_path)] == [1, 1]


def test_the_end_of_the_program_loses_nothing(tmp_path):
    code = (
        "import sys, treadle\n"
        "w = treadle.utils.tensorboard.SummaryWriter(sys.argv[1])\n"
        "for i in range(25): w.add_scalar('a', i, i)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert [step for _, step, _ in values(files(tmp_path)[0])] == list(range(25))


# ---- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number",
    [
        1,
        2.5,
        True,
        np.float32(0.5),
        treadle.tensor([-3.0]),
        treadle.tensor(4),
        [7.0],
        treadle.ones(1).bfloat16(),
    ],
)
def test_scalar(written, number):
    tag, step, value = only(written(lambda w: w.add_scalar("loss/train", number, 5)))
    assert (tag, step) == ("loss/train", 5)
    expected = number[0] if isinstance(number, list) else float(number)
    assert one(value, 2) == float(expected)


def test_scalars_of_the_new_style(written):
    def write(w):
        w.add_scalar("a", 0.1, new_style=True)
        w.add_scalar("b", 0.1, new_style=True, double_precision=True)

    (_, _, a), (_, _, b) = written(write)
    assert one(a, 8, 1) == 1 and packed(one(a, 8, 5), "f") == [np.float32(0.1)]
    assert one(b, 8, 1) == 2 and packed(one(b, 8, 6), "d") == [0.1]
    assert text(a, 9, 1, 1) == text(b, 9, 1, 1) == "scalars"


def test_what_is_no_scalar(written):
    for bad, error in ((treadle.ones(2), AssertionError), ("text", NotImplementedError)):
        with pytest.raises(error):
            written(lambda w: w.add_scalar("a", bad))


def test_large_numbers(written):
    found = written(lambda w: [w.add_scalar("a", x) for x in (1e39, -1e39, float("nan"))])
    assert [one(v, 2) for _, _, v in found[:2]] == [float("inf"), float("-inf")]
    assert np.isnan(one(found[2][2], 2))


def test_several_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("both/of", {"x": 1, "y": treadle.tensor(2.0)}, 3)
    for name, number in (("x", 1), ("y", 2)):
        tag, step, value = only(values(files(tmp_path / f"both_of_{name}")[0]))
        assert (tag, step, one(value, 2)) == ("both/of", 3, number)


def test_histogram(written):
    x = treadle.tensor(np.random.default_rng(0).normal(size=(10, 20)).astype(np.float32))
    _, _, value = only(written(lambda w: w.add_histogram("h", x, 1, bins=10)))
    low, high, count, total, squares = (one(value, 5, field) for field in range(1, 6))
    numbers = x.numpy().astype(np.float64)
    assert (low, high, count) == (numbers.min(), numbers.max(), 200)
    assert total == pytest.approx(numbers.sum()) and squares == pytest.approx((numbers**2).sum())
    limits, counts = packed(one(value, 5, 6), "d"), packed(one(value, 5, 7), "d")
    expected, edges = np.histogram(numbers, 10)
    assert limits == pytest.approx(edges.tolist()) and counts == [0, *expected.tolist()]


def test_histogram_of_tensorboard(written):
    _, _, value = only(written(lambda w: w.add_histogram("h", [1.0, 1.0, -2.0, 0.0])))
    limits, counts = packed(one(value, 5, 6), "d"), packed(one(value, 5, 7), "d")
    assert len(limits) == len(counts) and counts[0] == 0 and sum(counts) == 4
    for number, times in ((-2.0, 1), (0.0, 1), (1.0, 2)):
        bucket = int(np.searchsorted(limits, number, side="right"))
        assert counts[bucket] == times
    ratios = [b / a for a, b in zip(limits, limits[1:]) if a > 0]
    assert ratios == pytest.approx([1.1] * len(ratios))


def test_histogram_with_fewer_bins(written):
    x = np.arange(100.0)
    _, _, value = only(written(lambda w: w.add_histogram("h", x, bins=50, max_bins=7)))
    counts = packed(one(value, 5, 7), "d")
    assert len(counts) <= 10 and sum(counts) == 100


def test_raw_and_empty_histograms(written):
    _, _, value = only(
        written(lambda w: w.add_histogram_raw("h", 0, 1, 3, 1.5, 2.5, [0.5, 1], [1, 2]))
    )
    assert packed(one(value, 5, 6), "d") == [0.5, 1] and packed(one(value, 5, 7), "d") == [1, 2]
    for bad in (treadle.ones(0), [5.0]):
        with pytest.raises(ValueError, match="expected values"):
            written(lambda w: w.add_histogram("h", bad, bins=[0, 1]))
    with pytest.raises(ValueError, match="bucket_limits"):
        written(lambda w: w.add_histogram_raw("h", 0, 1, 3, 1.5, 2.5, [0.5], [1, 2]))


def test_precision_and_recall(written):
    labels, predictions = [1, 0, 1, 1], [0.9, 0.6, 0.4, 0.1]
    _, _, value = only(
        written(lambda w: w.add_pr_curve("pr", labels, predictions, num_thresholds=5))
    )
    assert text(value, 9, 1, 1) == "pr_curves"
    assert one(fields(one(value, 9, 1, 2)), 2) == 5
    shape = [one(fields(dim), 1) for dim in fields(one(value, 8, 2))[2]]
    assert shape == [6, 5]
    rows = np.array(packed(one(value, 8, 5), "f")).reshape(6, 5)
    for place, threshold in enumerate(np.linspace(0, 1, 5)):
        chosen = np.array(predictions) >= threshold
        tp = sum(c and y for c, y in zip(chosen, labels))
        fp = sum(c and not y for c, y in zip(chosen, labels))
        assert rows[0, place] == tp and rows[1, place] == fp
        assert rows[4, place] == pytest.approx(tp / max(tp + fp, 1e-7))
        assert rows[5, place] == pytest.approx(tp / 3)


def test_raw_precision_and_recall(written):
    rows = ([1, 2], [0, 1], [1, 1], [0, 0], [0.5, 0.25], [0.75, 1])
    _, _, value = only(written(lambda w: w.add_pr_curve_raw("pr", *rows, num_thresholds=2)))
    assert packed(one(value, 8, 5), "f") == [x for row in rows for x in row]


def test_settings_of_a_run(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        settings = {"lr": 0.1, "name": "sgd", "size": treadle.tensor(3), "none": None}
        writer.add_hparams(settings, {"acc": 0.5}, {"name": ["sgd", "adam"]}, "run", 4)
    found = values(files(tmp_path / "run")[0])
    assert [tag for tag, _, _ in found] == [
        "_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc"
    ]  # fmt: skip
    assert found[3][1] == 4 and one(found[3][2], 2) == 0.5
    experiment, start, end = (fields(one(v, 9, 1, 2)) for _, _, v in found[:3])
    assert all(text(v, 9, 1, 1) == "hparams" for _, _, v in found[:3])
    infos = [fields(info) for info in fields(one(experiment, 2))[4]]
    assert [(text(info, 1), one(info, 4)) for info in infos] == [
        ("lr", 3),
        ("name", 1),
        ("size", 3),
    ]
    choices = [text(fields(item), 3) for item in fields(one(infos[1], 5))[1]]
    assert choices == ["sgd", "adam"]
    assert text(fields(one(experiment, 2)), 5, 1, 2) == "acc"
    chosen = {text(fields(e), 1): fields(one(fields(e), 2)) for e in fields(one(start, 3))[1]}
    assert one(chosen["lr"], 2) == 0.1 and text(chosen["name"], 3) == "sgd"
    assert one(chosen["size"], 2) == 3 and one(fields(one(end, 4)), 1) == 1
    with pytest.raises(TypeError, match="should be a dictionary"):
        writer.add_hparams([1], {})
    with pytest.raises(TypeError, match="values of one type"):
        writer.add_hparams({"a": 1.0}, {}, {"a": ["x"]})


# ---- pictures, sounds, text ----------------------------------------------------------------------


def picture_of(found):
    _, _, value = only(found)
    shown = event_files.picture(one(value, 4, 4))
    assert [one(value, 4, n) for n in (1, 2, 3)] == list(shown.shape)
    return shown


@pytest.mark.parametrize("dims", ["CHW", "HWC", "CWH", "WHC"])
def test_picture(written, dims):
    rng = np.random.default_rng(0)
    shape = {"C": 3, "H": 4, "W": 5}
    array = rng.random([shape[d] for d in dims]).astype(np.float32)
    shown = picture_of(written(lambda w: w.add_image("i", treadle.tensor(array), dataformats=dims)))
    expected = (array.transpose([dims.index(d) for d in "HWC"]) * 255).astype(np.uint8)
    np.testing.assert_array_equal(shown, expected)


def test_grey_transparent_and_byte_pictures(tmp_path):
    grey = np.array([[0.0, 0.5], [1.0, 2.0]])
    four = np.random.default_rng(0).integers(0, 255, (4, 2, 3)).astype(np.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("hw", grey, dataformats="HW")
        writer.add_image("wh", grey, dataformats="WH")
        writer.add_image("chw", grey[None])
        writer.add_image("four", treadle.tensor(four))
    shown = {
        tag: event_files.picture(one(value, 4, 4)) for tag, _, value in values(files(tmp_path)[0])
    }
    for channel in range(3):
        assert shown["hw"][..., channel].tolist() == [[0, 127], [255, 255]]
    np.testing.assert_array_equal(shown["wh"], shown["hw"].transpose(1, 0, 2))
    np.testing.assert_array_equal(shown["chw"], shown["hw"])
    np.testing.assert_array_equal(shown["four"], four.transpose(1, 2, 0))


def test_several_pictures(written):
    array = np.arange(10 * 3 * 2 * 2).reshape(10, 3, 2, 2).astype(np.uint8)
    shown = picture_of(written(lambda w: w.add_images("i", treadle.tensor(array))))
    assert shown.shape == (4, 16, 3)
    for n in range(10):
        row, column = divmod(n, 8)
        part = shown[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        np.testing.assert_array_equal(part, array[n].transpose(1, 2, 0))
    assert not shown[2:, 4:].any()


@pytest.mark.parametrize(
    "shape, dims", [((3, 4), "CHW"), ((3, 4, 5), "CHX"), ((3, 4, 5), "CHH"), ((3, 4), "CW")]
)
def test_what_is_no_picture(written, shape, dims):
    with pytest.raises(AssertionError, match="add_image"):
        written(lambda w: w.add_image("i", np.zeros(shape), dataformats=dims))


def test_two_channels_are_no_picture(written):
    with pytest.raises(ValueError, match="1, 3 or 4 channels"):
        written(lambda w: w.add_image("i", np.zeros((2, 4, 5))))


def test_figure(written):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure = pyplot.figure(figsize=(1, 0.5), dpi=40, facecolor=(1, 0, 0))
    shown = picture_of(written(lambda w: w.add_figure("f", figure)))
    assert shown.shape == (20, 40, 3) and (shown == [255, 0, 0]).all()
    assert figure.number not in pyplot.get_fignums()


def test_sound(written):
    sound = treadle.tensor([0.0, 0.5, -1.0, 3.0])
    _, _, value = only(written(lambda w: w.add_audio("a", sound, sample_rate=8000)))
    assert (one(value, 6, 1), one(value, 6, 2), one(value, 6, 3)) == (8000, 1, 4)
    assert text(value, 6, 5) == "audio/wav"
    with wave.open(io.BytesIO(one(value, 6, 4))) as file:
        assert file.getframerate() == 8000 and file.getnchannels() == 1
        assert struct.unpack("<4h", file.readframes(4)) == (0, 16383, -32767, 32767)


def test_text(written):
    tag, _, value = only(written(lambda w: w.add_text("notes", "**bold** ü", 2)))
    assert tag == "notes/text_summary" and text(value, 9, 1, 1) == "text"
    assert one(value, 8, 1) == 7 and text(value, 8, 8) == "**bold** ü"


# ---- networks and embeddings ---------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x) * 2)


def test_graph(tmp_path):
    net = Net()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(net, treadle.ones(2, 3))
    graph = [e for e in event_files.events(files(tmp_path)[0]) if 4 in e]
    nodes = {}
    for node in fields(one(only(graph), 4))[1]:
        node = fields(node)
        nodes[text(node, 1)] = (text(node, 2), [name.decode() for name in node.get(3, [])])
    kinds = {kind for kind, _ in nodes.values()}
    assert {"parameter", "leaf", "Addmm", "Relu", "Mul", "output"} <= kinds
    assert {"Net/head/weight", "Net/body/0/bias", "input_0"} <= set(nodes)
    assert "Net/body/0/Addmm" in nodes and "Net/body/1/Relu" in nodes and "Net/Mul" in nodes
    assert nodes["Net/Mul"][1] == ["Net/body/1/Relu"]
    assert nodes["Net/body/1/Relu"][1] == ["Net/body/0/Addmm"]
    assert nodes["output_0"][1] == ["Net/head/Addmm"]
    assert all(name in nodes for _, before in nodes.values() for name in before)
    assert net.body[0]._forward_hooks == {} and net.head.weight.grad is None


def test_embedding(tmp_path):
    points = np.arange(6.0).reshape(3, 2)
    pictures = np.random.default_rng(0).random((3, 3, 2, 2)).astype(np.float32)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(
            treadle.tensor(points), ["a", 2, "c"], treadle.tensor(pictures), 5, "x/y"
        )
        writer.add_embedding(points, [["a", 1], ["b", 2], ["c", 3]], metadata_header=["n", "i"])
    folder = tmp_path / "00005" / "x%2fy"
    assert (folder / "tensors.tsv").read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert (folder / "metadata.tsv").read_text() == "a\n2\nc\n"
    sheet = event_files.picture((folder / "sprite.png").read_bytes())
    assert sheet.shape == (4, 4, 3) and not sheet[2:, 2:].any()
    expected = (pictures[1] * 255).astype(np.uint8).transpose(1, 2, 0)
    np.testing.assert_array_equal(sheet[:2, 2:], expected)
    assert (
        tmp_path / "00000" / "default" / "metadata.tsv"
    ).read_text() == "n\ti\na\t1\nb\t2\nc\t3\n"
    listed = (tmp_path / "projector_config.pbtxt").read_text()
    assert listed.count("embeddings {") == 2 and 'tensor_path: "00005/x%2fy/tensors.tsv"' in listed
    for bad in ({"mat": np.ones(3)}, {"mat": points, "metadata": ["a"]},
                {"mat": points, "label_img": pictures[:1]}):  # fmt: skip
        with pytest.raises(AssertionError):
            writer.add_embedding(**bad)
