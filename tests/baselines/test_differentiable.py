"""Operations with gradients, beside the transforms that have none."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from augtree.baselines.differentiable import GEOMETRY, LIMITS, NAMES, TONES, bilinear, compose
from augtree.transforms import ShearX, ShearY, kernels
from augtree.transforms.pictures import Shape


@pytest.fixture
def noise_of():
    generator = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randint(60, 200, shape, generator=generator, dtype=torch.uint8)


def composed(pictures, fill=128.0, **values):
    """Pictures after some operations alone."""
    row = torch.tensor([values.get(name, 0.0) for name in NAMES])
    return compose(pictures.float(), row.repeat(len(pictures), 1), fill)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_at_value_zero_nothing_changes(channels, noise_of):
    x = noise_of(4, channels, 7, 9)
    assert torch.allclose(composed(x), x.float(), atol=1e-3)


@pytest.mark.parametrize("name", [kind.__name__ for kind in TONES])
@pytest.mark.parametrize("value", [-0.7, 0.4])
def test_tones_are_those_of_the_transforms_but_for_rounding(name, value, noise_of):
    x = noise_of(4, 3, 7, 9)
    kernel = getattr(kernels, name.lower())
    exact = kernel(x, torch.full((4,), 1 + value)).float()
    inner = (..., slice(1, -1), slice(1, -1)) if name == "Sharpness" else ...  # Pillow leaves the border
    assert (composed(x, **{name: value})[inner] - exact[inner]).abs().max() <= 2.5


@pytest.mark.parametrize(
    ("kind", "share"), [(kind, 0.2 if "Translate" in kind.__name__ else 0.9) for kind in GEOMETRY]
)
def test_geometry_moves_pixels_as_the_transforms_do(kind, share):
    """On a slope, nearest and bilinear neighbours differ little; another corner or middle is a step in height."""
    rows, columns = torch.meshgrid(torch.arange(48.0), torch.arange(48.0), indexing="ij")
    x = (30 + 2 * columns + 2 * rows).to(torch.uint8)[None, None]
    value = LIMITS[NAMES.index(kind.__name__)] * share
    coefficients = torch.from_numpy(kind(1.0).coefficients(np.array([value]), Shape(*x.shape)))
    exact = inner(kernels.warp(x, coefficients, torch.tensor([128])).float())
    mine, other = (inner(composed(x, **{kind.__name__: sign * value})) for sign in (1, -1))
    if kind in (ShearX, ShearY):
        exact = exact + (mine - exact).mean()
    assert (mine - exact).abs().max() <= 3  # half a pixel in each direction, and rounding
    assert (other - exact).abs().max() > 7  # the sign matters


def inner(pictures):
    """The middle, which nothing from outside has reached."""
    return pictures[..., 14:-14, 14:-14]


def test_places_between_pixels_are_those_of_torch_and_outside_is_the_fill(noise_of):
    x = noise_of(2, 3, 5, 6).double()
    generator = torch.Generator().manual_seed(1)
    places = torch.rand(2, 30, 2, generator=generator, dtype=torch.float64) * torch.tensor([9.0, 8.0]) - 2
    grid = (places + 0.5) * 2 / torch.tensor([6.0, 5.0]) - 1
    by_torch = F.grid_sample(x - 50, grid.view(2, 5, 6, 2), align_corners=False, padding_mode="zeros") + 50
    assert torch.allclose(bilinear(x, *places.unbind(-1), 50.0), by_torch, atol=1e-9)
