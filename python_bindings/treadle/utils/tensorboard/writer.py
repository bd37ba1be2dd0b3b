"""SummaryWriter: what a program wants to see in TensorBoard, by name and step."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from typing import Any, Optional, Union

import numpy as np

from . import _arrays, _embedding, _hparams, _summaries
from .records import FileWriter


class SummaryWriter:
    """Writes event files to a folder.

    log_dir: the folder, "runs/DATE_HOST" unless given; `comment` is added to that. purge_step:
    TensorBoard forgets what an earlier run wrote from that step on. max_queue, flush_secs: how many
    events, and for how long, may wait before they are in the file. filename_suffix: the end of the
    file's name.

    All methods take the `global_step` that the value belongs to, and `walltime`, the time in
    seconds, the present unless given. Tensors, NumPy arrays and lists are taken alike.
    """

    def __init__(
        self,
        log_dir: Optional[Union[str, os.PathLike]] = None,
        comment: str = "",
        purge_step: Optional[int] = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self.all_writers: dict[str, FileWriter] = {}
        self.file_writer = self._get_file_writer()
        if purge_step is not None:
            self.file_writer.restart(purge_step)

    def _get_file_writer(self) -> FileWriter:
        self.file_writer = self._writer_of(self.log_dir)
        return self.file_writer

    def _writer_of(self, folder: str) -> FileWriter:
        if folder not in self.all_writers:
            self.all_writers[folder] = FileWriter(folder, *self._options)
        return self.all_writers[folder]

    def get_logdir(self) -> str:
        """The folder that the files are in."""
        return self.log_dir

    def flush(self) -> None:
        """Bring everything that was added to the files."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Bring everything to the files and close them."""
        for writer in self.all_writers.values():
            writer.close()

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def _add(self, summary: bytes, step: Optional[int], walltime: Optional[float]) -> None:
        self.file_writer.add_summary(summary, step, walltime)

    # ---- numbers -----------------------------------------------------------------------------

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number: a point of the curve `tag`. AssertionError for more than one number."""
        number = _arrays.to_number(scalar_value)
        self._add(
            _summaries.scalar(tag, number, new_style, double_precision), global_step, walltime
        )

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """Several numbers, as curves in one picture. Each curve has a folder of its own beside the
        event file."""
        for tag, number in tag_scalar_dict.items():
            name = f"{main_tag.replace('/', '_')}_{tag}"
            writer = self._writer_of(os.path.join(self.log_dir, name))
            summary = _summaries.scalar(main_tag, _arrays.to_number(number), False, False)
            writer.add_summary(summary, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Optional[int] = None,
        bins: Union[str, int, list] = "tensorflow",
        walltime: Optional[float] = None,
        max_bins: Optional[int] = None,
    ) -> None:
        """How values of any shape are distributed. `bins`: "tensorflow", a number, limits, or the
        name of a rule of numpy.histogram."""
        self._add(_summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: list,
        bucket_counts: list,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """A histogram that is counted already: the right limit of each bucket, and how many values
        lie in it."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                "len(bucket_limits) != len(bucket_counts), see the document."
                f" Got {len(bucket_limits)} and {len(bucket_counts)}"
            )
        summary = _summaries.histogram_of_buckets(
            tag, min, max, num, sum, sum_squares, list(bucket_limits), list(bucket_counts)
        )
        self._add(summary, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Optional[int] = None,
        num_thresholds: int = 127,
        weights: Optional[Any] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """Precision against recall, for predictions in [0, 1] of labels 0 and 1, at
        `num_thresholds` thresholds."""
        summary = _summaries.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(summary, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Optional[int] = None,
        num_thresholds: int = 127,
        weights: Optional[Any] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """A curve that is computed already: each argument has a number for each threshold."""
        rows = [
            _arrays.to_array(row).astype(np.float64)
            for row in (true_positive_counts, false_positive_counts, true_negative_counts,
                        false_negative_counts, precision, recall)
        ]  # fmt: skip
        summary = _summaries.pr_curve_of_counts(tag, np.stack(rows), num_thresholds)
        self._add(summary, global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Optional[Mapping[str, list]] = None,
        run_name: Optional[str] = None,
        global_step: Optional[int] = None,
    ) -> None:
        """The settings of a run and the numbers that came of them, for a comparison of runs. They
        go to a folder `run_name` of their own."""
        made = _hparams.summaries(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for summary in made:
                writer._add(summary, None, None)
            for name, number in metric_dict.items():
                writer.add_scalar(name, number, global_step)

    # ---- pictures, sounds, text --------------------------------------------------------------

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: bytes, or numbers from 0 to 1, with 1, 3 or 4 channels. `dataformats` says
        what its dimensions are: "CHW", "HWC", "HW", ..."""
        self._add(
            _summaries.image(tag, _arrays.picture(img_tensor, dataformats)), global_step, walltime
        )

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Several pictures, eight in a row."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Optional[int] = None,
        close: bool = True,
        walltime: Optional[float] = None,
    ) -> None:
        """A figure of matplotlib, or a list of them; each is closed after it is drawn unless
        close=False."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for each in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(each)
        self.add_image(tag, np.stack(drawn), global_step, walltime, dataformats="NHWC")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
        sample_rate: int = 44100,
    ) -> None:
        """A sound: numbers from -1 to 1 at `sample_rate` a second."""
        self._add(_summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """Text in Markdown."""
        self._add(_summaries.text(tag, text_string), global_step, walltime)

    # ---- networks and embeddings -------------------------------------------------------------

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """The operators of a network and the layers they belong to, as one call with
        `input_to_model` (a tensor or a tuple of arguments) runs them."""
        from . import _graph

        self.file_writer.add_graph(_graph.graph_def(model, input_to_model))

    def add_embedding(
        self,
        mat: Any,
        metadata: Optional[list] = None,
        label_img: Optional[Any] = None,
        global_step: Optional[int] = None,
        tag: str = "default",
        metadata_header: Optional[list] = None,
    ) -> None:
        """Points (a row each), with labels and small pictures (NCHW), for the projector.
        metadata_header: names of columns, where each label is a list."""
        step = f"{0 if global_step is None else int(global_step):05d}"
        name = "".join(f"%{ord(c):02x}" if c in "%/\\" else c for c in tag)
        folder = f"{step}/{name}"
        _embedding.write(
            self.log_dir, folder, f"{tag}:{step}", mat, metadata, metadata_header, label_img
        )
