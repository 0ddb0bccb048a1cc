"""A learned policy in Lightning: the lines 1 and 2.

pip install "augtree[train]" lightning
"""

from pathlib import Path

import lightning
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import augtree as at


class Classifier(lightning.LightningModule):
    """A small network."""

    def __init__(self, policy):
        super().__init__()
        self.augment = policy.module()  # 1: a module, which does nothing in eval mode
        self.model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 8 * 8, 10)
        )

    def forward(self, pictures):
        return self.model(self.augment(pictures).float() / 255)  # 2: on the device, the whole batch at once

    def training_step(self, batch, _):
        pictures, labels = batch
        return cross_entropy(self(pictures), labels)

    def validation_step(self, batch, _):
        pictures, labels = batch
        self.log("accuracy", (self(pictures).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
data = at.data.load("digits")
sets = {split: torch.from_numpy(data.indices(split)) for split in ("train", "test")}
loaders = [
    DataLoader(TensorDataset(data.samples[rows], data.labels[rows]), batch_size=64, shuffle=split == "train")
    for split, rows in sets.items()
]
trainer = lightning.Trainer(
    max_epochs=3, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
)
trainer.fit(Classifier(at.load(Path(__file__).with_name("policy.json"))), *loaders)
print(f"test accuracy {trainer.callback_metrics['accuracy']:.3f}")
