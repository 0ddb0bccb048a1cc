"""What an exported module for tensors of pictures begins with: it takes a batch apart, and puts it together again."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from augtree.exports.parts.draws import Draws, draws_of, new_seed
from augtree.transforms.kernels import normalize, to_bytes

CHANNELS: tuple[int, ...] = ()
"""The numbers of channels that the operations work on; none: any."""


def augment(picture: Tensor, draws: Draws, group: str | None = None) -> Tensor:
    """Every export writes its own."""
    raise NotImplementedError


def finish(picture: Tensor) -> Tensor:
    """Every export writes its own."""
    raise NotImplementedError


class Policy(nn.Module):
    """Augments pictures while training; in eval mode it returns them as they are."""

    @torch.no_grad()
    def forward(
        self,
        pictures: Tensor,
        groups: Sequence[str] | str | None = None,
        *,
        seed: int | None = None,
        index: int | Sequence[int] = 0,
        step: int = 0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Augment uint8 pictures, or floats within [0, 1]: [N,C,H,W], or [C,H,W].

        A policy for groups takes the name of each picture's group; without them, trees are drawn by their weights.
        With a seed the result can be repeated: sample `index` (that of the first, or of each) in pass `step` over
        the data always gets the same. Without one, a seed is drawn from the generator, or torch's own.
        """
        if not self.training:
            return pictures
        check(pictures)
        given = pictures if pictures.ndim == 4 else pictures[None]
        batch, count = as_bytes(given), len(given)
        numbers = range(index, index + count) if isinstance(index, int) else index
        names = [groups] * count if groups is None or isinstance(groups, str) else groups
        if len(numbers) != count or len(names) != count:
            raise ValueError(f"index and groups must have an entry for each of the {count} pictures")
        seed = new_seed(generator) if seed is None else seed
        out = []
        for row, picture in enumerate(batch):
            done = augment(picture, draws_of(seed, step, int(numbers[row]), row, batch), names[row])
            out.append(finish(in_type(done, given[row], untouched=done is picture)))
        return torch.stack(out) if pictures.ndim == 4 else out[0]


def check(pictures: Tensor) -> None:
    """Raise for what are no pictures that the policy can take."""
    shape = list(pictures.shape)
    if pictures.ndim not in (3, 4) or max(shape[-2:]) > 8192:
        raise ValueError(f"pictures must be [N,C,H,W] or [C,H,W] with sides up to 8192 pixels, got shape {shape}")
    if CHANNELS and shape[-3] not in CHANNELS:
        raise ValueError(f"pictures must have {' or '.join(map(str, CHANNELS))} channels, got {shape[-3]}")
    if pictures.is_floating_point():
        if pictures.numel() and not (pictures.min() >= 0 and pictures.max() <= 1):
            raise ValueError("float pictures must lie in [0, 1]: apply the policy before normalising")
    elif pictures.dtype != torch.uint8:
        raise ValueError(f"pictures must be uint8 or float, got {pictures.dtype}")


def as_bytes(pictures: Tensor) -> Tensor:
    """The pictures in 256 steps, rounded."""
    if pictures.is_floating_point():
        pictures = to_bytes((pictures.float() * 255).add_(0.5))
    return pictures.contiguous()


def in_type(picture: Tensor, given: Tensor, *, untouched: bool) -> Tensor:
    """An augmented picture in the type that it came in; one that nothing was done to as it came."""
    if given.is_floating_point():
        return given if untouched else picture.to(given.dtype) / given.new_full((), 255)
    return picture


def normalized(picture: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    """Floats: minus the mean, over the standard deviation."""
    return normalize(picture[None], *(picture.new_tensor(each, dtype=torch.float32) for each in (mean, std)))[0]
