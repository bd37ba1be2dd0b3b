"""Summaries: the messages in which values have their tags. Each function returns one, encoded.

The numbers of the fields are those of TensorFlow's summary.proto and tensor.proto.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import wave
from typing import Any, Optional, Union

import numpy as np

from . import _png, _wire
from ._arrays import to_array

_FLOAT, _DOUBLE, _STRING = 1, 2, 7  # of DataType


def value(tag: str, *content: bytes) -> bytes:
    """A summary of one value."""
    return _wire.data(1, _wire.message(_wire.text(1, tag), *content))


def plugin(name: str, content: bytes = b"") -> bytes:
    """Metadata that say which part of TensorBoard shows the value."""
    named = _wire.data(1, _wire.text(1, name) + (_wire.data(2, content) if content else b""))
    return _wire.data(9, named)


def tensor(dtype: int, shape: tuple, content: bytes) -> bytes:
    """A tensor of numbers or text."""
    dims = b"".join(_wire.data(2, _wire.integer(1, size)) for size in shape)
    return _wire.data(8, _wire.integer(1, dtype) + _wire.data(2, dims) + content)


# ---- numbers -------------------------------------------------------------------------------------


def scalar(tag: str, number: float, new_style: bool, double_precision: bool) -> bytes:
    """One number: of 32 bits, or of the new style as a tensor of 32 or 64 bits."""
    if not new_style:
        return value(tag, _wire.single(2, number))
    if double_precision:
        held = _wire.integer(1, _DOUBLE) + _wire.doubles(6, [number])
    else:
        held = _wire.integer(1, _FLOAT) + _wire.singles(5, [number])
    return value(tag, _wire.data(8, held), plugin("scalars"))


def _tensorflow_bins() -> np.ndarray:
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return np.array([-x for x in reversed(limits)] + [0.0] + limits)


_BINS = _tensorflow_bins()


def histogram(
    tag: str, values: Any, bins: Union[str, int, list, np.ndarray], max_bins: Optional[int]
) -> bytes:
    """How many of the values lie where. `bins`: "tensorflow" for limits that grow by a tenth, or
    what numpy.histogram takes."""
    array = to_array(values).astype(np.float64).reshape(-1)
    if array.size == 0:
        raise ValueError("add_histogram: expected values, got none")
    counts, limits = np.histogram(
        array, _BINS if isinstance(bins, str) and bins == "tensorflow" else bins
    )
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        missing = -len(counts) % step
        counts = np.pad(counts, (0, missing)).reshape(-1, step).sum(1)
        limits = np.append(limits[:-1:step], limits[-1])
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("add_histogram: expected values inside the bins, got none")
    # A bucket is known by its right limit, so an empty one before the first says where that begins.
    first, last = filled[0], filled[-1]
    buckets = np.concatenate([[0], counts[first : last + 1]])
    return histogram_of_buckets(
        tag, array.min(), array.max(), array.size, array.sum(), array.dot(array),
        limits[first : last + 2].tolist(), buckets.tolist(),
    )  # fmt: skip


def histogram_of_buckets(
    tag: str,
    low: float,
    high: float,
    count: int,
    total: float,
    total_of_squares: float,
    limits: list,
    counts: list,
) -> bytes:
    """A histogram that is counted already: right limits of buckets, and how many lie in each."""
    numbers = (low, high, count, total, total_of_squares)
    fields = [_wire.double(field, float(n)) for field, n in enumerate(numbers, 1)]
    return value(
        tag,
        _wire.data(5, _wire.message(*fields, _wire.doubles(6, limits), _wire.doubles(7, counts))),
    )


def pr_curve(
    tag: str, labels: Any, predictions: Any, thresholds: int, weights: Optional[Any]
) -> bytes:
    """Precision and recall of predictions in [0, 1] against labels 0 and 1, at `thresholds` numbers
    from 0 to 1."""
    thresholds = min(thresholds, 127)  # more is too much for TensorBoard
    labels = to_array(labels).astype(np.float64).reshape(-1)
    predictions = to_array(predictions).astype(np.float64).reshape(-1)
    weights = np.ones_like(labels) if weights is None else to_array(weights).reshape(-1)
    # The last threshold that each prediction reaches.
    reached = np.floor(predictions * (thresholds - 1)).astype(np.int64)
    edges = (0, thresholds - 1)
    counts = [
        np.histogram(reached, thresholds, edges, weights=weights * truth)[0]
        for truth in (labels, 1.0 - labels)
    ]
    true_positive, false_positive = (np.cumsum(c[::-1])[::-1] for c in counts)
    true_negative = false_positive[0] - false_positive
    false_negative = true_positive[0] - true_positive
    tiny = 1e-7
    precision = true_positive / np.maximum(tiny, true_positive + false_positive)
    recall = true_positive / np.maximum(tiny, true_positive + false_negative)
    rows = (true_positive, false_positive, true_negative, false_negative, precision, recall)
    return pr_curve_of_counts(tag, np.stack(rows), thresholds)


def pr_curve_of_counts(tag: str, rows: np.ndarray, thresholds: int) -> bytes:
    """A curve that is computed already: six rows (true and false positives, true and false
    negatives, precision, recall)."""
    content = _wire.integer(2, thresholds)
    held = tensor(_FLOAT, rows.shape, _wire.singles(5, rows.reshape(-1).tolist()))
    return value(tag, held, plugin("pr_curves", content))


# ---- pictures, sounds, text ----------------------------------------------------------------------


def image(tag: str, picture: np.ndarray) -> bytes:
    """A picture of shape (height, width, channels) of uint8."""
    height, width, channels = picture.shape
    held = _wire.message(
        _wire.integer(1, height),
        _wire.integer(2, width),
        _wire.integer(3, channels),
        _wire.data(4, _png.encode(picture)),
    )
    return value(tag, _wire.data(4, held))


def audio(tag: str, sound: Any, sample_rate: int) -> bytes:
    """A sound: numbers from -1 to 1, one channel."""
    array = to_array(sound).astype(np.float64).reshape(-1).clip(-1, 1)
    samples = (array * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(sample_rate)
        written.writeframes(samples.tobytes())
    held = _wire.message(
        _wire.single(1, float(sample_rate)),
        _wire.integer(2, 1),
        _wire.integer(3, len(samples)),
        _wire.data(4, file.getvalue()),
        _wire.text(5, "audio/wav"),
    )
    return value(tag, _wire.data(6, held))


def text(tag: str, content: str) -> bytes:
    """Text in Markdown."""
    held = tensor(_STRING, (1,), _wire.data(8, content.encode("utf-8")))
    return value(f"{tag}/text_summary", held, plugin("text"))
