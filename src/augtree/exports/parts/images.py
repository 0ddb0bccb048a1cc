"""What an exported torchvision transform begins with: it takes a Pillow image, or a uint8 tensor."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image
from torch import nn
from torchvision.transforms.v2 import functional as vision

from augtree.exports.parts.draws import Draws, draws_of, new_seed


def augment(picture: Any, draws: Draws, group: str | None = None) -> Any:
    """Every export writes its own."""
    raise NotImplementedError


def finish(picture: Any) -> Any:
    """Every export writes its own."""
    raise NotImplementedError


class Policy(nn.Module):
    """Augments one picture, for the transform of a data set."""

    def forward(
        self, picture: Any, group: str | None = None, *, seed: int | None = None, index: int = 0, step: int = 0
    ) -> Any:
        """Augment a Pillow image (L or RGB), or a uint8 tensor [C,H,W] of 1 or 3 channels.

        A policy for groups takes the name of the picture's group; without it, a tree is drawn by its weight.
        With a seed the result can be repeated: sample `index` in pass `step` over the data always gets the same.
        Without one, a seed is drawn from torch's generator.
        """
        image = picture if isinstance(picture, Image.Image) else as_image(picture)
        if image.mode not in ("L", "RGB"):
            raise ValueError(f"an image must have the mode L or RGB, got {image.mode}: picture.convert('RGB')")
        image = augment(image, draws_of(new_seed() if seed is None else seed, step, index), group)
        return finish(image if isinstance(picture, Image.Image) else vision.pil_to_tensor(image))


def as_image(picture: Any) -> Any:
    """A tensor as a Pillow image."""
    if not isinstance(picture, torch.Tensor) or picture.dtype != torch.uint8 or picture.ndim != 3:
        got = (
            f"{picture.dtype} {list(picture.shape)}" if isinstance(picture, torch.Tensor) else type(picture).__name__
        )
        raise ValueError(f"a picture must be a Pillow image or a uint8 tensor [C,H,W], got {got}")
    if picture.shape[0] not in (1, 3):
        raise ValueError(f"a picture must have 1 or 3 channels, got {picture.shape[0]}")
    return vision.to_pil_image(picture)


def normalized(picture: Any, mean: tuple[float, ...], std: tuple[float, ...]) -> torch.Tensor:
    """A tensor of floats: minus the mean, over the standard deviation."""
    values = vision.to_dtype(vision.to_image(picture), torch.float32, scale=True).as_subclass(torch.Tensor)
    every = len(values) // len(mean)
    done: torch.Tensor = vision.normalize(values, list(mean) * every, list(std) * every)
    return done
