"""A learned policy with a timm model and its scheduler: the lines 1 and 2.

pip install "augtree[train]" timm
"""

from pathlib import Path

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

import augtree as at

torch.manual_seed(0)
policy = at.load(Path(__file__).with_name("policy.json"))  # 1
data = at.data.load("digits")
train, test = (torch.from_numpy(data.indices(split)) for split in ("train", "test"))
model = timm.create_model("resnet10t", num_classes=10, in_chans=1)
scale = at.transforms.Normalize(mean=(0.5,), std=(0.5,))
optimizer = create_optimizer_v2(model, opt="adamw", lr=0.005)
scheduler = CosineLRScheduler(optimizer, t_initial=3)
criterion = LabelSmoothingCrossEntropy(0.1)


def enlarged(pictures):
    """Digits of 8 pixels are too small for an ImageNet network."""
    return torch.nn.functional.interpolate(scale(pictures), size=32)


for epoch in range(3):
    for rows in train[torch.randperm(len(train))].split(64):
        pictures = policy(data.samples[rows])  # 2: before normalising, in place of timm's auto_augment
        loss = criterion(model(enlarged(pictures)), data.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step(epoch + 1)

model.eval()
with torch.no_grad():
    right = model(enlarged(data.samples[test])).argmax(1) == data.labels[test]
print(f"test accuracy {right.float().mean():.3f}")
