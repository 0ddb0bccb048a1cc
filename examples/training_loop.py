"""A learned policy in a plain PyTorch training loop: the lines 1, 2 and 3."""

from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import augtree as at  # 1

policy = at.load(Path(__file__).with_name("policy.json"))  # 2: or at.load("runs/mine")

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
data = at.data.load("digits")
train, test = (torch.from_numpy(data.indices(split)) for split in ("train", "test"))
loader = DataLoader(TensorDataset(data.samples[train], data.labels[train]), batch_size=64, shuffle=True)
layers = [torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 8 * 8, 10)]
model = torch.nn.Sequential(*layers).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(5):
    for pictures, labels in loader:  # uint8, [B, C, H, W]
        pictures = policy(pictures.to(device))  # 3: every sample takes its own path
        loss = cross_entropy(model(pictures.float() / 255), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    right = model(data.samples[test].to(device).float() / 255).argmax(1).cpu() == data.labels[test]
print(f"test accuracy {right.float().mean():.3f}")
