"""A learned policy in Hugging Face `datasets` (sample by sample, on the fly) and `Trainer`: the lines 1 and 2.

pip install "augtree[train]" transformers datasets accelerate
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from datasets import Dataset
from PIL import Image
from torch.nn.functional import cross_entropy
from transformers import Trainer, TrainingArguments

import augtree as at

policy = at.load(Path(__file__).with_name("policy.json"))  # 1


def as_dataset(data, split):
    """Digits as a data set of the hub has them: Pillow images."""
    rows = data.indices(split)[:400]
    images = [Image.fromarray(picture[0].numpy()) for picture in data.samples[torch.from_numpy(rows)]]
    return Dataset.from_dict({"image": images, "label": data.labels[torch.from_numpy(rows)].tolist()})


def tensors(rows):
    """Images as uint8 [B, C, H, W]; images of several sizes take one call each."""
    return torch.stack([torch.from_numpy(np.array(image))[None] for image in rows["image"]])


def augmented(rows):
    """A batch for training."""
    return {"pixel_values": policy(tensors(rows)).float() / 255, "labels": rows["label"]}  # 2


def unchanged(rows):
    """A batch for testing."""
    return {"pixel_values": tensors(rows).float() / 255, "labels": rows["label"]}


class Classifier(torch.nn.Module):
    """A small network that answers as the models of transformers do."""

    def __init__(self):
        super().__init__()
        self.model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 8 * 8, 10)
        )

    def forward(self, pixel_values, labels):
        logits = self.model(pixel_values)
        return {"loss": cross_entropy(logits, labels), "logits": logits}


def accuracy(predicted):
    """The share of right answers."""
    return {"accuracy": float((predicted.predictions.argmax(1) == predicted.label_ids).mean())}


digits = at.data.load("digits")
train = as_dataset(digits, "train").with_transform(augmented)
test = as_dataset(digits, "test").with_transform(unchanged)
with TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=6, per_device_train_batch_size=32, learning_rate=0.01, report_to="none",
        remove_unused_columns=False, save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(Classifier(), arguments, train_dataset=train, eval_dataset=test, compute_metrics=accuracy)
    trainer.train()
    print(f"test accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
