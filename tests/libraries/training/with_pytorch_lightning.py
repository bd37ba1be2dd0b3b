"""pytorch-lightning: the older package of the same library."""

# SPDX-License-Identifier: Apache-2.0

import pytorch_lightning
import torch
from torch.utils.data import DataLoader, TensorDataset
from uses import draw, main, settle, use


class Line(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = settle(torch.nn.Linear(3, 1))
        self.losses = []

    def training_step(self, batch, index):
        loss = (self.line(batch[0]) - batch[0].sum(-1, keepdim=True)).square().mean()
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Data(pytorch_lightning.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(TensorDataset(draw(24, 3)), batch_size=8)


@use("fit from a data module")
def fit():
    pytorch_lightning.seed_everything(2)
    model = Line()
    trainer = pytorch_lightning.Trainer(
        accelerator="cpu",
        max_epochs=3,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, datamodule=Data())
    return model.losses


if __name__ == "__main__":
    main("pytorch-lightning")
