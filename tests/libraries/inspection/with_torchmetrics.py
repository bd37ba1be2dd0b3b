"""torchmetrics: how good a model is."""

# SPDX-License-Identifier: Apache-2.0

import torch
import torchmetrics
from torchmetrics import functional, image, text
from uses import draw, main, uniform, use


@use("classification, alone and in a collection")
def classification():
    scores = draw(50, 4).softmax(-1)
    labels = torch.arange(50) % 4
    options = {"task": "multiclass", "num_classes": 4}
    many = torchmetrics.MetricCollection(
        {
            "accuracy": torchmetrics.Accuracy(**options),
            "f1": torchmetrics.F1Score(average="macro", **options),
            "auroc": torchmetrics.AUROC(**options),
            "confusion": torchmetrics.ConfusionMatrix(**options),
            "calibration": torchmetrics.CalibrationError(**options),
        }
    )
    for part in range(0, 50, 10):
        many.update(scores[part : part + 10], labels[part : part + 10])
    curve = functional.precision_recall_curve(scores[:, 0], (labels == 0).int(), task="binary")
    return [many.compute(), [x.sum() for x in curve]]


@use("regression and retrieval")
def regression():
    x, y = draw(40), draw(40)
    ranked = torchmetrics.RetrievalMAP()(x, y > 0, indexes=torch.arange(40) // 10)
    return [
        torchmetrics.MeanSquaredError()(x, y),
        torchmetrics.R2Score()(x, y),
        torchmetrics.SpearmanCorrCoef()(x, y),
        torchmetrics.PearsonCorrCoef()(x, y),
        functional.kendall_rank_corrcoef(x, y),
        ranked,
    ]


@use("images, text and sound")
def others():
    a, b = uniform(2, 3, 48, 48), uniform(2, 3, 48, 48)
    sound = draw(2, 200)
    return [
        image.StructuralSimilarityIndexMeasure(data_range=1.0)(a, b),
        image.PeakSignalNoiseRatio(data_range=1.0)(a, b),
        image.TotalVariation()(a),
        text.BLEUScore()(["the red house stands here"], [["the red house is here"]]),
        text.WordErrorRate()(["a red house"], ["a small house"]),
        torchmetrics.ScaleInvariantSignalNoiseRatio()(sound, sound + 0.1 * draw(2, 200)),
    ]


@use("detection, saved and averaged metrics")
def wrapped():
    metric = torchmetrics.MeanMetric()
    metric.update(torch.tensor([1.0, 2.0]), weight=torch.tensor([1.0, 3.0]))
    metric.persistent(True)
    other = torchmetrics.MeanMetric()
    other.persistent(True)
    other.load_state_dict(metric.state_dict())
    running = torchmetrics.wrappers.Running(torchmetrics.SumMetric(), window=2)
    sums = [running(torch.tensor(float(i))) for i in range(4)]
    boot = torchmetrics.BootStrapper(torchmetrics.MeanAbsoluteError(), num_bootstraps=5)
    boot.update(torch.arange(6.0), torch.zeros(6))
    overlap = functional.detection.intersection_over_union(
        torch.tensor([[0.0, 0, 10, 10]]), torch.tensor([[5.0, 5, 15, 15]])
    )
    return [other.compute(), sums, running.compute(), sorted(boot.compute()), overlap]


if __name__ == "__main__":
    main("torchmetrics")
