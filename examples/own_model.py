"""A model of your own: a function that makes a torch.nn.Module."""

import torch

import augtree as at


def make_model() -> torch.nn.Module:
    """Takes pictures [B, C, H, W], normalised by the training set; gives [B, classes]."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 8 * 8, 10)
    )


data = at.data.load("digits", train=200, val=200)
task = at.tasks.Classification(model=make_model, steps=60, batch_size=32, optimizer="adamw", lr=0.01)
result = at.search_tree(data, task)
print(type(result.model).__name__, f"accuracy {result.measures['accuracy']:.3f}")  # the finished model, in eval mode

mean, std = (torch.tensor(each).view(1, -1, 1, 1) for each in (result.mean, result.std))
with torch.no_grad():
    predicted = result.model((data.samples[data.indices("test")] / 255 - mean) / std).argmax(1)
print(f"test accuracy {(predicted == data.labels[data.indices('test')]).float().mean():.3f}")
