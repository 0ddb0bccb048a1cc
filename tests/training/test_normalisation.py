import numpy as np
import torch

from augtree.training.normalisation import normalisation


def test_normalisation_gives_mean_0_and_deviation_1():
    pictures = torch.randint(0, 200, (9, 3, 5, 7), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    pictures[:, 1] = pictures[:, 1] // 8 + 30
    pictures[:, 2] = 77
    scale, shift = normalisation(pictures, np.arange(len(pictures)))
    found = pictures.double() * scale + shift
    np.testing.assert_allclose(found.mean((0, 2, 3)), [0, 0, 0], atol=1e-5)
    np.testing.assert_allclose(found.std((0, 2, 3), correction=0), [1, 1, 0], atol=1e-5)
