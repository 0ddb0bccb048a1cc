"""A learned policy as the transform of a data set, sample by sample, in the processes of a DataLoader.

On batches (training_loop.py) it is faster; here it stands where torchvision's transforms stand.
"""

from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

import augtree as at


class Digits(Dataset):
    """Pictures and labels, with a transform of one picture as any data set has it."""

    def __init__(self, split, transform=None):
        data = at.data.load("digits")
        rows = torch.from_numpy(data.indices(split))
        self.pictures, self.labels, self.transform = data.samples[rows], data.labels[rows], transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = self.pictures[index]  # uint8, [C, H, W]
        return (picture if self.transform is None else self.transform(picture)), self.labels[index]


if __name__ == "__main__":
    policy = at.load(Path(__file__).with_name("policy.json"))
    dataset = Digits("train", transform=policy)
    torch.manual_seed(0)  # the draws come from torch's generators, which a DataLoader seeds in each worker
    changed = sum(
        int((batch != dataset.pictures[64 * i : 64 * (i + 1)]).any((1, 2, 3)).sum())
        for i, (batch, _) in enumerate(DataLoader(dataset, batch_size=64, num_workers=1))
    )
    print(f"{changed} of {len(dataset)} pictures were changed")
