"""Samples that the tests share: real pictures that ship with scikit-learn, and small graphs."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import torch
from hypothesis import settings
from PIL import Image

from support.cuts import cut, quick_disk  # noqa: F401 - fixtures
from support.finite import spoil  # noqa: F401 - a fixture

settings.register_profile("augtree", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("augtree")
torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs tests in the background has it ignored
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports Triton


@pytest.fixture(scope="session")
def photos() -> torch.Tensor:
    """Six real RGB pictures, uint8 [6,3,48,48]."""
    from sklearn.datasets import load_sample_images

    parts = []
    for picture in load_sample_images().images:
        image = Image.fromarray(picture)
        for left in (0, 200, 213):
            small = image.crop((left, 0, left + 427, 427)).resize((48, 48), Image.Resampling.BILINEAR)
            parts.append(np.asarray(small).transpose(2, 0, 1).copy())
    return torch.from_numpy(np.stack(parts))


@pytest.fixture(scope="session")
def noise() -> torch.Tensor:
    """Random pictures, uint8 [64,3,32,32]."""
    return torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path_factory):
    """Decoded pictures of real data sets are kept for this run of the tests alone."""
    monkeypatch.setenv("AUGTREE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
