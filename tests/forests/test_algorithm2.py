"""Algorithm 2 on problems whose answer is known."""

import numpy as np
import pytest
import torch

from augtree.errors import TaskError
from augtree.forests import Weighting
from augtree.forests.algorithm2 import WeightedTraining
from augtree.forests.implicit_gradient import vjp
from augtree.forests.linear_solvers import solve_cg
from augtree.tasks import Contrastive
from support.logistic import Logistic, inner_of
from support.two_groups import forest, normed, task, two_groups


def trained(data, options, seed=0, **more):
    trainer = task(**more).prepare(data)
    training = WeightedTraining(trainer, forest(data), options, seed)
    return trainer, training.run(range(training.rounds))


def accuracy(trainer, at_, group, split="test"):
    return trainer.measures(at_.theta, trainer.data.indices(split, group))["accuracy"]


@pytest.mark.parametrize("solver", ["cg", "series"])
@pytest.mark.parametrize("d", ["raw", "cosine"])
def test_a_group_with_noise_for_labels_loses_weight(solver, d):
    data = two_groups(noise=True)
    found = [trained(data, Weighting(alpha=10, eta=0.5, solver=solver, d=d), seed)[1].w[1] for seed in range(3)]
    assert max(found) < 0.3
    even = two_groups()
    still = [trained(even, Weighting(alpha=10, eta=0.5, solver=solver, d=d), seed)[1].w[1] for seed in range(3)]
    assert min(still) > max(found) + 0.1


def test_equal_groups_stay_equal_within_noise():
    found = [trained(two_groups(seed=seed), Weighting(alpha=10, eta=0.1), seed)[1].w[0] for seed in range(5)]
    assert abs(np.mean(found) - 0.5) < 0.06
    assert max(abs(w - 0.5) for w in found) < 0.15


def test_worst_raises_the_worst_group():
    """Group b is one in ten, and a line that serves a does not serve b."""
    data = two_groups(sizes=(270, 30), sides=(0, 1), strength=25)
    gains, weights = [], []
    for seed in range(3):
        found = {}
        for target in ("average", "worst"):
            options = Weighting(alpha=10, eta=0.5, start="proportions", target=target)
            trainer, at_ = trained(data, options, seed)
            found[target] = min(accuracy(trainer, at_, group) for group in "ab")
            weights.append((target, at_.w[1]))
        gains.append(found["worst"] - found["average"])
    assert np.mean(gains) > 0.03
    assert min(w for target, w in weights if target == "worst") > 0.2


def test_with_the_training_loss_outside_the_proportions_are_optimal_already():
    """The paper's form: at the minimum for w = q, d is zero for all groups; elsewhere it leads back to q."""
    problem, q = Logistic(3, decay=0.0, points=60), torch.full((3,), 1 / 3, dtype=torch.float64)
    how = {"damping": 0.0, "iterations": 50, "tolerance": 1e-10}
    for w, zero in ((q, True), (torch.tensor([0.6, 0.2, 0.2], dtype=torch.float64), False)):
        theta, inner = inner_of(problem, w)
        v = vjp(q @ problem.losses(theta), [theta])
        d = -inner.dot_gradients(solve_cg(inner.hessian, v, **how).x)
        assert (float(d.abs().max()) < 1e-9) == zero
        if not zero:
            assert float((w - q) @ d) > 0  # the multiplicative update goes against d
            clean = vjp(problem.outer(theta), [theta])
            assert float(inner.dot_gradients(solve_cg(inner.hessian, clean, **how).x).abs().max()) > 1e-3


def test_without_eta_the_weights_stay_and_nothing_is_looked_at():
    data = two_groups(sizes=(90, 30))
    trainer, at_ = trained(data, Weighting(eta=0, start="uniform"))
    assert at_.w.tolist() == [0.5, 0.5]
    assert at_.history == ()
    assert trainer.passes.forward == 200 * 32
    assert trained(data, Weighting(eta=0, start="proportions"))[1].w.tolist() == [0.75, 0.25]


def test_a_solve_that_fails_is_told_and_moves_nothing():
    _, at_ = trained(two_groups(), Weighting(alpha=50, solver="series", scale=1e-6))
    assert at_.w.tolist() == [0.5, 0.5]
    assert len(at_.history) == 3
    assert all("no limit" in row["skipped"] and row["d"] is None for row in at_.history)


def test_a_training_that_diverges_is_an_error():
    with pytest.raises(TaskError, match=r"the losses must be finite, but the training diverged with lr=1000"):
        trained(two_groups(), Weighting(alpha=20), model=normed, lr=1000.0, momentum=0.99)


@pytest.mark.parametrize("sizes", [(20, 40), (33, 100), (5, 90)])
def test_a_contrastive_training_s_batches_hold_no_sample_twice(sizes, monkeypatch):
    trainer = Contrastive(model="cnn", options={"width": 4}, steps=13, batch_size=10, device="cpu", lr=0.01).prepare(
        two_groups(sizes=sizes)
    )
    seen = {"train": [], "look": []}
    augmented = trainer.augmented

    def watched(policy, which, where, seed):
        kind = "train" if seed == 0 else "look"
        seen[kind] += which.reshape(-1, 10).tolist() if kind == "train" else which.reshape(-1, 4).tolist()
        return augmented(policy, which, where, seed)

    monkeypatch.setattr(trainer, "augmented", watched)
    training = WeightedTraining(trainer, forest(trainer.data), Weighting(alpha=3, eta=0.1, batch=4), 0)
    training.run(range(training.rounds))
    assert len(seen["train"]) == 13
    assert len(seen["look"]) == 2 + 4 * 2 * 2  # inner and outer, two groups each; before, one to try forward mode
    for batch in [*seen["train"], *seen["look"]]:
        assert len(set(batch)) == len(batch)


def test_an_encoder_that_is_trained_without_labels_sees_the_unlabelled_samples_of_its_groups():
    data = two_groups().with_labels(40, seed=0)
    for samples, split in (("train", ("train", "unlabelled")), ("all", (None,))):
        ready = Contrastive(model="cnn", steps=2, samples=samples, device="cpu").prepare(data)
        training = WeightedTraining(ready, forest(data), Weighting(), 0)
        for rows, group in zip(training.rows, "ab", strict=True):
            assert sorted(rows) == sorted(np.concatenate([data.indices(part, group) for part in split]))
        assert training.counts.sum() == len(ready.rows)


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    data = two_groups()
    one, two, other = (trained(data, Weighting(alpha=20), seed, steps=60)[1] for seed in (0, 0, 1))
    assert torch.equal(one.theta.tensors["weights"], two.theta.tensors["weights"])
    assert one.w.tolist() == two.w.tolist()
    assert other.w.tolist() != one.w.tolist()
