import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from augtree.data.named.digits import read_digits
from augtree.errors import MissingExtraError


def test_the_digits():
    data = read_digits()
    assert data.samples.shape == (1797, 1, 8, 8)
    assert data.classes == tuple("0123456789")
    assert data.labels.tolist() == load_digits().target.tolist()
    assert np.abs(data.samples[:, 0].numpy() / 255 * 16 - load_digits().images).max() < 1 / 16
    assert (int(data.samples.min()), int(data.samples.max())) == (0, 255)
    assert data.preprocess is None
    assert data.source == {"source": "digits", "seed": 0}
    shares = np.array(list(data.counts.values())) / 1797
    assert np.abs(shares - [0.6, 0.2, 0.2]).max() < 0.005
    assert (read_digits(seed=1).split != data.split).any()


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r'this needs sklearn, .*pip install "augtree\[train\]"'):
        read_digits()
