import numpy as np
import pytest
import torch

from augtree.errors import ArgumentError, InputError
from augtree.keys import Key
from augtree.transforms import ColorDistortion, GaussianBlur, GaussianNoise, Rotation, Sobel, kernels
from augtree.transforms.pictures import Shape
from support import pillow_reference as pillow


def test_quarter_turns(noise):
    done = Rotation()(noise, seed=0)
    turns = []
    for before, after in zip(noise, done, strict=True):
        turns.append([k for k in (1, 2, 3) if torch.equal(torch.rot90(before, k, (1, 2)), after)])
    assert all(len(found) == 1 for found in turns)
    assert {found[0] for found in turns} == {1, 2, 3}


def test_pictures_that_are_not_square_are_turned_by_half():
    pictures = torch.randint(0, 256, (9, 3, 5, 8), dtype=torch.uint8)
    assert torch.equal(Rotation()(pictures, seed=0), pictures.flip((2, 3)))


def test_blur_is_pillows_at_the_deviation_drawn(photos):
    transform = GaussianBlur((0.3, 3.0))
    sigma = 0.3 + 2.7 * Key.of(4, range(len(photos))).uniform()
    done = transform(photos, seed=4)
    for picture, deviation, ours in zip(photos, sigma, done, strict=True):
        assert torch.equal(ours, pillow.tensor(pillow.operate("GaussianBlur", pillow.image(picture), deviation)))


def test_colour_distortion_does_four_things_in_any_order(photos):
    transform = ColorDistortion(jitter_p=1.0, grey_p=0.0)
    plan = transform.draw(Key.of(0, range(600)), Shape(600, 3, 4, 4))
    assert len(plan) == 5
    names = {kernel: name for name, kernel in vars(kernels).items() if callable(kernel)}
    seen = [dict() for _ in range(600)]
    for place, slot in enumerate(plan[:4]):
        for work in slot:
            for row in work.rows:
                seen[row][names[work.kernel]] = place
    assert all(sorted(order) == ["brightness", "color", "contrast", "hue"] for order in seen)
    assert len({tuple(sorted(order.items())) for order in seen}) == 24
    assert transform(photos, seed=0).shape == photos.shape


def test_colour_distortion_draws_its_factors_from_simclrs_ranges():
    plan = ColorDistortion(strength=0.5, jitter_p=1.0).draw(Key.of(0, range(4000)), Shape(4000, 3, 4, 4))
    for kernel, low, high in ((kernels.brightness, 0.6, 1.4), (kernels.color, 0.6, 1.4), (kernels.hue, -25, 25)):
        found = np.concatenate([w.params[0] for slot in plan for w in slot if w.kernel is kernel])
        assert len(found) == 4000
        assert low <= found.min() < low + 0.02 * (high - low)
        assert high - 0.02 * (high - low) < found.max() <= high


def test_the_draws_of_colour_distortion_are_independent():
    plan = ColorDistortion(jitter_p=0.9).draw(Key.of(0, range(4000)), Shape(4000, 3, 4, 4))
    kinds = (kernels.brightness, kernels.contrast, kernels.color, kernels.hue)
    columns = np.full((4, 4000), np.nan)
    first = np.full(4000, np.nan)
    for place, slot in enumerate(plan[:4]):
        for work in slot:
            columns[kinds.index(work.kernel), work.rows] = work.params[0]
            if place == 0:
                first[work.rows] = kinds.index(work.kernel)
    jittered = ~np.isnan(first)
    assert abs(jittered.mean() - 0.9) < 0.02
    together = np.vstack([columns, first])[:, jittered]
    assert np.abs(np.corrcoef(together) - np.eye(5)).max() < 0.06
    for values, low, high in zip(columns, (0.2, 0.2, 0.2, -51), (1.8, 1.8, 1.8, 51), strict=True):
        assert np.nanmin(values) < low + 0.03 * (high - low)
        assert np.nanmax(values) > high - 0.03 * (high - low)
    assert np.abs(np.bincount(first[jittered].astype(int)) / jittered.sum() - 0.25).max() < 0.03


def test_a_fifth_of_the_pictures_become_grey(photos):
    done = ColorDistortion(jitter_p=0.0)(photos.repeat(200, 1, 1, 1), seed=0)
    grey = ((done[:, 0] == done[:, 1]) & (done[:, 1] == done[:, 2])).flatten(1).all(1)
    assert 180 < int(grey.sum()) < 300
    assert torch.equal(done[~grey], photos.repeat(200, 1, 1, 1)[~grey])


def test_colours_need_colour_pictures():
    with pytest.raises(InputError, match="ColorDistortion needs pictures of 1 or 3 channels, got 2"):
        ColorDistortion()(torch.zeros(1, 2, 4, 4, dtype=torch.uint8))


def test_noise_has_the_deviation_drawn():
    pictures = torch.full((200, 1, 40, 40), 128, dtype=torch.uint8)
    done = GaussianNoise((0.05, 0.05))(pictures, seed=0).double()
    assert abs(float(done.std()) - 0.05 * 255) < 0.1
    assert len({tuple(row.flatten().tolist()) for row in done}) == 200
    spread = GaussianNoise((0.02, 0.1))(pictures, seed=0).double().flatten(1).std(1) / 255
    assert 0.018 < float(spread.min()) < 0.025
    assert 0.092 < float(spread.max()) < 0.102
    assert abs(float(spread.mean()) - 0.06) < 0.004


def test_sobel_draws_nothing(photos):
    assert torch.equal(Sobel()(photos, seed=0), Sobel()(photos, seed=1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ColorDistortion(strength=0),
        lambda: ColorDistortion(grey_p=2),
        lambda: GaussianNoise((0.2, 0.1)),
        lambda: GaussianBlur((0, 17)),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(ArgumentError):
        make()
