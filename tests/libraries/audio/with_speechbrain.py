"""speechbrain: speech."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import speechbrain
import torch
from speechbrain.dataio.dataloader import SaveableDataLoader
from speechbrain.lobes.features import MFCC, Fbank
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
from speechbrain.nnet.losses import ctc_loss
from speechbrain.utils.checkpoints import Checkpointer
from uses import draw, main, settle, use


@use("features, a speaker recognition network, a loss")
def voices():
    sound = draw(2, 1600)
    features = Fbank(n_mels=20)(sound)
    model = settle(
        ECAPA_TDNN(
            20,
            lin_neurons=8,
            channels=[8] * 5,
            kernel_sizes=[3] * 5,
            dilations=[1] * 5,
            attention_channels=8,
        )
    ).eval()
    scores, words = torch.log_softmax(draw(2, 10, 5), -1), torch.tensor([[1, 2], [3, 4]])
    loss = ctc_loss(scores, words, torch.ones(2), torch.ones(2), 0)
    return [features, model(features), loss, MFCC()(sound)]


class Fit(speechbrain.Brain):
    def compute_forward(self, batch, stage):
        return self.modules.model(batch[0])

    def compute_objectives(self, predictions, batch, stage):
        return (predictions - batch[1]).square().mean()


@use("a training loop")
def loop():
    model = settle(torch.nn.Linear(4, 2))
    data = torch.utils.data.TensorDataset(draw(8, 4), draw(8, 2))
    settings = {"device": "cpu", "noprogressbar": True}
    brain = Fit({"model": model}, lambda p: torch.optim.SGD(p, 0.1), run_opts=settings)
    brain.fit(range(2), data, train_loader_kwargs={"batch_size": 4})
    return model.weight


@use("resume in the middle of an epoch")
def epoch():
    model, numbers = settle(torch.nn.Linear(4, 2)), list(range(10))
    with tempfile.TemporaryDirectory() as folder:
        loader = SaveableDataLoader(numbers, batch_size=2)
        batches = iter(loader)
        next(batches)
        next(batches)
        Checkpointer(folder, {"model": model, "loader": loader}).save_checkpoint()
        again, later = torch.nn.Linear(4, 2), SaveableDataLoader(numbers, batch_size=2)
        Checkpointer(folder, {"model": again, "loader": later}).recover_if_possible()
        return [[batch.tolist() for batch in later], torch.equal(again.weight, model.weight)]


if __name__ == "__main__":
    main("speechbrain")
