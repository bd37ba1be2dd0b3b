"""treadle.viz.graph: what is drawn, that boxes keep apart and lines run down, and the layout."""

# SPDX-License-Identifier: Apache-2.0

import random
import time
import xml.etree.ElementTree as xml

import pytest

import treadle
from treadle import nn
from treadle.viz.history import named_tensors, steps_of
from treadle.viz.layout import _closest, lay_out

SVG = "{http://www.w3.org/2000/svg}"


class Picture:
    """A drawing, read back."""

    def __init__(self, drawing):
        root = xml.fromstring(drawing.svg)
        self.size = float(root.get("width")), float(root.get("height"))
        group = root.find(f"{SVG}g")
        self.boxes = [
            (box.get("class"), *(float(box.get(name)) for name in ("x", "y", "width", "height")))
            for box in group.findall(f"{SVG}rect")
        ]
        self.texts = [text.text for text in group.findall(f"{SVG}text")]
        self.lines = [line.get("d") for line in group.findall(f"{SVG}path")]

    def kinds(self):
        return [box[0] for box in self.boxes]


def test_a_network():
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    loss = net(treadle.ones(2, 4)).pow(2).sum()
    picture = Picture(treadle.viz.graph(loss, net))
    assert {"0.weight", "0.bias", "2.weight", "2.bias", "(3, 4)"} <= set(picture.texts)
    assert {"Relu", "Pow", "Sum", "result", "()"} <= set(picture.texts)
    assert picture.texts.count("Addmm") == 2
    assert picture.kinds().count("parameter") == 4 and picture.kinds()[-1] == "result"
    assert not any(text.endswith("Backward0") for text in picture.texts)


def test_names_of_leaves():
    a, b = treadle.ones(2, requires_grad=True), treadle.ones(2, requires_grad=True)
    loss = (a * b).sum()
    for params in ({"<a&b>": a}, [("<a&b>", a)], iter([("<a&b>", a), ("unused", treadle.ones(1))])):
        picture = Picture(treadle.viz.graph(loss, params))
        assert "<a&b>" in picture.texts and "tensor" in picture.texts
        assert picture.kinds().count("leaf") == 2
    named = Picture(treadle.viz.graph(loss, {"my loss": loss}))
    assert "my loss" in named.texts and "result" not in named.texts


def test_functions_of_the_program():
    class Double(treadle.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = treadle.ones(2, requires_grad=True)
    assert "Double" in Picture(treadle.viz.graph(Double.apply(x).sum())).texts


def test_what_is_used_twice_is_drawn_once():
    x = treadle.ones(4, requires_grad=True)
    doubled = x * 2
    values, _ = doubled.sort()
    picture = Picture(treadle.viz.graph(doubled.sum() + values.sum() + doubled.prod()))
    assert picture.texts.count("Mul") == 1 and "Sort" in picture.texts
    assert len(picture.lines) == 10 and len(picture.boxes) == 9


def test_a_leaf_alone():
    picture = Picture(treadle.viz.graph(nn.Parameter(treadle.ones(2, 3))))
    assert picture.texts == ["parameter", "(2, 3)"] and picture.lines == []


def test_what_cannot_be_drawn():
    with pytest.raises(RuntimeError, match="does not require grad"):
        treadle.viz.graph(treadle.ones(1))
    with pytest.raises(TypeError, match="expected a tensor, got int"):
        treadle.viz.graph(3)
    with pytest.raises(TypeError, match="expected tensors with names, got int as 'a'"):
        treadle.viz.graph(treadle.ones(1, requires_grad=True) * 2, {"a": 3})


def test_the_object(tmp_path):
    drawing = treadle.viz.graph(treadle.ones(1, requires_grad=True) * 2)
    assert drawing._repr_svg_() == drawing.svg == str(drawing)
    drawing.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == drawing.svg


def test_graphs_deep_and_wide():
    x = y = treadle.ones(1, requires_grad=True)
    for _ in range(1500):
        y = y * 1.001
    wide = sum((x * i for i in range(1, 200)), y)
    started = time.process_time()
    picture = Picture(treadle.viz.graph(wide.sum()))
    assert time.process_time() - started < 20
    assert picture.texts.count("Mul") == 1699


def test_steps_come_after_their_inputs():
    net = nn.TransformerEncoderLayer(8, 2, 16)
    loss = net(treadle.ones(3, 2, 8)).sum()
    steps = steps_of(loss, named_tensors(net))
    for place, step in enumerate(steps):
        assert all(before < place for before in step.inputs)
        assert (step.inputs == ()) == (step.kind != "operator")
    assert {s.name for s in steps if s.kind == "parameter"} == {
        n for n, _ in net.named_parameters()
    }
    assert steps[-1].name == "Sum" and steps[-1].shape == () and steps[-1].dtype == "float32"


# ---- the layout ----------------------------------------------------------------------------------


def random_graph(seed):
    rng = random.Random(seed)
    inputs = []
    for box in range(rng.randint(1, 60)):
        count = min(box, rng.choice([0, 1, 1, 2, 3]))
        inputs.append(tuple(rng.sample(range(max(0, box - 12), box), min(count, min(box, 12)))))
    sizes = [(rng.uniform(40, 200), rng.choice([28, 44])) for _ in inputs]
    return inputs, [w for w, _ in sizes], [h for _, h in sizes]


@pytest.mark.parametrize("seed", range(25))
def test_boxes_keep_apart_and_lines_run_down(seed):
    inputs, widths, heights = random_graph(seed)
    layout = lay_out(inputs, widths, heights)
    spans = [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for (x, y), w, h in zip(layout.centres, widths, heights)
    ]
    for i, (left, top, right, bottom) in enumerate(spans):
        assert -1e-6 <= left and right <= layout.width + 1e-6
        assert -1e-6 <= top and bottom <= layout.height + 1e-6
        for other_left, other_top, other_right, other_bottom in spans[:i]:
            apart = (
                right <= other_left or other_right <= left
                or bottom <= other_top or other_bottom <= top
            )  # fmt: skip
            assert apart
    expected = {(source, box) for box, before in enumerate(inputs) for source in before}
    assert {(source, target) for source, target, _ in layout.lines} == expected
    for source, target, bends in layout.lines:
        heights_on_the_way = [
            layout.centres[source][1], *(y for _, y in bends), layout.centres[target][1]
        ]  # fmt: skip
        assert heights_on_the_way == sorted(heights_on_the_way)
        assert len(set(heights_on_the_way)) == len(heights_on_the_way)


def test_two_chains_do_not_cross():
    """0 -> 2 -> 4 and 1 -> 3 -> 5, with the lists so ordered that the first guess crosses."""
    layout = lay_out([(), (), (1,), (0,), (3,), (2,)], [50] * 6, [30] * 6)
    x = [centre[0] for centre in layout.centres]
    assert (x[0] < x[1]) == (x[3] < x[2]) == (x[4] < x[5])


def test_closest_positions():
    assert _closest([5.0], []) == [5.0]
    assert _closest([0.0, 100.0], [10.0]) == [0.0, 100.0]
    assert _closest([0.0, 0.0], [10.0]) == [-5.0, 5.0]
    assert _closest([10.0, 0.0, 0.0], [2.0, 2.0]) == pytest.approx([4 / 3, 10 / 3, 16 / 3])


# ---- memory ----

MIB = 1 << 20
SEGMENTS = [
    {
        "device": 1, "stream": 0, "segment_type": "large", "address": 1 << 30,
        "total_size": 20 * MIB, "active_size": 15 * MIB,
        "blocks": [
            {"size": 15 * MIB, "state": "active_allocated"},
            {"size": 5 * MIB, "state": "inactive"},
        ],
    },
    {
        "device": 0, "stream": 3, "segment_type": "small", "address": 512, "total_size": 2 * MIB,
        "active_size": 1536,
        "blocks": [
            {"size": 1024, "state": "active_allocated"},
            {"size": 512, "state": "active_pending_free"},
            {"size": 2 * MIB - 1536, "state": "inactive"},
        ],
    },
]  # fmt: skip


def test_segments_of_memory():
    picture = Picture(treadle.viz.memory(SEGMENTS))
    assert picture.texts == [
        "2 segments, 22 MiB, of which 15 MiB in use",
        "device 0, stream 3, small: 1.5 KiB of 2 MiB in use",
        "device 1, stream 0, large: 15 MiB of 20 MiB in use",
    ]
    assert picture.kinds() == ["used", "pending", "kept", "used", "kept"]
    *_, used, kept = picture.boxes
    assert used[1] == 0 and kept[1] == pytest.approx(used[3], abs=0.1)
    assert used[3] == pytest.approx(3 * kept[3], abs=0.1)
    assert kept[1] + kept[3] == pytest.approx(10 * picture.boxes[2][3], rel=0.01)
    assert "at 15728640: 5 MiB, kept for later" in treadle.viz.memory({"segments": SEGMENTS}).svg
    assert treadle.viz.memory([]).svg.count("<text") == 1
    for wrong in (3, [3], [{"address": 1}]):
        with pytest.raises(TypeError, match="expected the segments of memory_snapshot"):
            treadle.viz.memory(wrong)
