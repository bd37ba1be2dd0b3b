"""lightning: the loop of training, written once."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import lightning
import torch
from lightning.pytorch import callbacks
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities.model_summary import ModelSummary
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from uses import draw, main, settle, use


class Net(lightning.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))
        settle(self)
        self.losses = []

    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss, prog_bar=True)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, index):
        self.log("valid", nn.functional.cross_entropy(self.layers(batch[0]), batch[1]))

    def predict_step(self, batch, index):
        return self.layers(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def rows():
    return DataLoader(TensorDataset(draw(32, 4), torch.arange(32) % 2), batch_size=8)


def quiet(folder, **options):
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        log_every_n_steps=1,
        **options,
    )


@use("fit, validate, predict, a checkpoint loaded again")
def fit():
    with tempfile.TemporaryDirectory() as folder:
        kept = callbacks.ModelCheckpoint(folder, monitor="valid", save_top_k=1)
        stop = callbacks.EarlyStopping("valid", patience=5)
        trainer = quiet(
            folder,
            max_epochs=3,
            callbacks=[kept, stop, callbacks.LearningRateMonitor()],
            logger=CSVLogger(folder),
            gradient_clip_val=1.0,
        )
        model, data = Net(), rows()
        trainer.fit(model, data, data)
        found = trainer.validate(model, data, verbose=False)
        predicted = torch.cat(trainer.predict(model, data))
        loaded = Net.load_from_checkpoint(kept.best_model_path)
        again = quiet(folder, max_epochs=4)
        again.fit(Net(), data, data, ckpt_path=kept.best_model_path)
        same = torch.allclose(loaded.layers(torch.ones(1, 4)), model.layers(torch.ones(1, 4)))
    return [model.losses, found[0]["valid"], predicted, same, again.global_step]


@use("mixed precision, accumulated gradients, averaged weights")
def options():
    with tempfile.TemporaryDirectory() as folder:
        model = Net()
        average = callbacks.StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=1)
        trainer = quiet(
            folder,
            max_epochs=3,
            precision="bf16-mixed",
            accumulate_grad_batches=2,
            callbacks=[average],
            logger=False,
            enable_checkpointing=False,
        )
        trainer.fit(model, rows())
    return [[round(loss, 1) for loss in model.losses], trainer.global_step]


@use("manual optimization, a summary of the model")
def manual():
    class Manual(Net):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            loss = self.layers(batch[0]).square().mean()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()
            self.losses.append(loss.item())

    model = Manual()
    with tempfile.TemporaryDirectory() as folder:
        quiet(folder, max_steps=4, logger=False, enable_checkpointing=False).fit(model, rows())
    summary = ModelSummary(model, max_depth=-1)
    return [model.losses, summary.total_parameters, len(str(summary).splitlines()) > 5]


@use("Fabric: a custom training loop")
def fabric():
    runner = lightning.Fabric(accelerator="cpu", devices=1)
    runner.seed_everything(5, verbose=False)
    net = settle(nn.Linear(4, 2))
    model, optimizer = runner.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    losses = []
    for x, y in runner.setup_dataloaders(rows()):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        runner.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as folder:
        runner.save(folder + "/state.ckpt", {"model": model, "step": 4})
        state = {"model": model, "step": 0}
        runner.load(folder + "/state.ckpt", state)
    return [losses, state["step"]]


if __name__ == "__main__":
    main("lightning")
