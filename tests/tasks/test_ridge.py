"""Ridge regressions against scikit-learn and against leaving each sample out by hand."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.metrics.pairwise import rbf_kernel

from augtree.tasks import ridge
from augtree.tasks.ridge import Ridge, leave_one_out


def samples(count=40, features=5, columns=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, features)) * rng.choice([1, 10, 0.1, 3], features) + 2
    y = (x[:, :columns] + rng.normal(size=(count, columns)) > 2).astype(float)
    return torch.from_numpy(x), torch.from_numpy(y)


def by_hand(x, y, kernel):
    """Each penalty of the grid with each sample left out, by scikit-learn: the best, fitted to all.

    What a kernel sees are the rows of a root of the matrix of similarities, whichever root it is.
    """
    x, y = x.numpy(), y.numpy()
    gamma = 1 / (x.shape[1] * x.var())
    root = np.linalg.cholesky(rbf_kernel(x, gamma=gamma) + 1e-11 * np.eye(len(x)))

    def seen(new):
        return np.linalg.solve(root, rbf_kernel(x, new, gamma=gamma)).T if kernel else (new - x.mean(0)) / x.std(0)

    mine = seen(x)
    unit = ((mine - mine.mean(0)) ** 2).sum() / mine.shape[1]
    errors = []
    for penalty in ridge.PENALTIES:
        off = []
        for i in range(len(x)):
            rest = np.delete(np.arange(len(x)), i)
            fit = SklearnRidge(alpha=unit * penalty).fit(mine[rest], y[rest])  # with an offset of its own
            off.append(y[i] - fit.predict(mine[[i]])[0])
        errors.append((np.array(off) ** 2).mean())
    best = SklearnRidge(alpha=unit * ridge.PENALTIES[int(np.argmin(errors))]).fit(mine, y)
    return lambda new: best.predict(seen(new.numpy()))


@pytest.mark.parametrize(("count", "features"), [(40, 5), (20, 40), (12, 11)])
@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_scikit_learns_with_the_penalty_that_leaving_one_out_finds(kernel, seed, count, features):
    x, y = samples(count, features, seed=seed)
    new = samples(9, features, seed=9)[0]
    assert Ridge.fitted(x, y, kernel)(new).numpy() == pytest.approx(by_hand(x, y, kernel)(new), abs=1e-5)


def test_what_is_off_without_a_sample_is_what_a_regression_without_it_says():
    """More features than samples, too."""
    for features in (5, 60):
        x, y = samples(features=features)
        x, y = x - x.mean(0), y - y.mean(0)
        values, vectors = torch.linalg.eigh(x.T @ x)
        found = leave_one_out(x @ vectors, values, (x @ vectors).T @ y, y, 0.7)
        for i in range(len(x)):
            rest = np.delete(np.arange(len(x)), i)
            without = SklearnRidge(alpha=0.7).fit(x[rest], y[rest])
            assert found[i].tolist() == pytest.approx((y[i].numpy() - without.predict(x[[i]])[0]).tolist(), abs=1e-9)


def test_the_kernel_sees_how_long_features_are_and_what_is_linear_sees_no_rings():
    """Class 1 lies around class 0."""
    turn = torch.arange(200) * 2.4
    far = 1 + 2.0 * (torch.arange(200) % 2)
    x = far[:, None] * torch.stack([turn.cos(), turn.sin()], 1)
    y = torch.stack([far == 1, far == 3], 1).double()
    right = [((Ridge.fitted(x, y, kernel)(x).argmax(1) == y.argmax(1)).float().mean()) for kernel in (True, False)]
    assert right[0] == 1
    assert right[1] < 0.7


def test_with_fewer_landmarks_than_samples_it_is_nearly_the_same(monkeypatch):
    x, y = samples(400, features=2)
    whole = Ridge.fitted(x, y, kernel=True)(x)
    monkeypatch.setattr(ridge, "LANDMARKS", 60)
    few = Ridge.fitted(x, y, kernel=True)
    assert few.feature_map.landmarks.shape == (60, 2)
    assert (few(x) - whole).abs().mean() < 0.02
    monkeypatch.setattr(ridge, "AT_ONCE", 7)
    assert torch.allclose(few(x), Ridge.fitted(x, y, kernel=True)(x))


@pytest.mark.parametrize("kernel", [True, False])
def test_features_that_are_all_the_same_say_the_mean(kernel):
    _, y = samples()
    predicted = Ridge.fitted(torch.ones(40, 3), y, kernel)(torch.ones(2, 3))
    assert predicted.numpy() == pytest.approx(np.stack([y.mean(0).numpy()] * 2), abs=1e-9)
