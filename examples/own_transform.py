"""A transform of your own: check it, and let a search try it."""

import torch

import augtree as at


def fog(picture: torch.Tensor, magnitude: float = 1.0) -> torch.Tensor:
    """Mix a picture (uint8, [C, H, W]) with white; random draws of torch, numpy and Python are repeatable."""
    share = magnitude * torch.rand(())
    return (picture * (1 - share) + 255 * share).to(torch.uint8)


transform = at.wrap(fog, name="Fog", magnitude=0.4)
data = at.data.load("digits", train=200, val=200)
at.testing.check_transform(transform, data.samples[0])  # lists every check that fails

task = at.tasks.Classification(model="cnn", options={"width": 8}, steps=60, batch_size=32)
result = at.search_tree(data, task, at.spaces.auto(data) + [transform], scorer=at.search.Cooldown(looks=(0.5,)))
print(result.verdict())
