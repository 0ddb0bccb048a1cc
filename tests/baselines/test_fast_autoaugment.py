"""Fast AutoAugment: folds, density matching, and the merging of what is found."""

import logging
import sys

import numpy as np
import pytest
import torch.nn.functional as F

from augtree.baselines import fast_autoaugment
from augtree.baselines.fast_autoaugment import FastAutoAugment, folds_of, proposed, score
from augtree.errors import ArgumentError, MissingExtraError
from augtree.tasks.trainer import Trainer
from augtree.training.state import seed_of
from augtree.transforms import Chain, Identity, OneOf
from support.blobs import blobs, by_hand, same
from support.methods import grouped, quick, task


class Trial:
    """Proposes what it is given, or the middle."""

    def __init__(self, **given):
        self.given = given

    def suggest_categorical(self, name, choices):
        return self.given.get(name, choices[0])

    def suggest_float(self, name, low, high):
        return self.given.get(name, (low + high) / 2)


def test_folds_share_the_samples_and_their_labels():
    data = blobs(60, 20, 10)
    rows = data.indices("train")
    parts = folds_of(data, rows, 5, 1)
    assert sorted(np.concatenate(parts).tolist()) == rows.tolist()
    assert [len(part) for part in parts] == [12] * 5
    assert all(data.labels[part].sum() == 6 for part in parts)
    assert not np.array_equal(folds_of(data, rows, 5, 2)[0], parts[0])


def test_the_score_is_the_mean_cross_entropy_of_augmented_samples():
    data = grouped()
    trainer = task().prepare(data)
    state, rows = trainer.fit(Identity(), 0), data.indices("train")[:20]
    given = {"0/0/operation": "Rotate", "0/0/p": 1.0, "0/0/magnitude": 0.9, "0/1/operation": "Invert", "0/1/p": 0.4}
    policy = proposed(Trial(**given), 1, data)
    assert score(trainer, state, rows, policy, 7) == pytest.approx(
        F.cross_entropy(
            trainer.module(state)(by_hand(policy(data.samples[rows], seed=7, index=rows), data)), data.labels[rows]
        ).item(),
        abs=1e-5,
    )
    assert score(trainer, state, rows, policy, 7) != score(trainer, state, rows, Identity(), 7)


def test_a_proposal_is_pairs_of_operations_with_probabilities_and_magnitudes():
    policy = proposed(Trial(**{"1/0/operation": "Cutout", "1/0/p": 0.25, "1/0/magnitude": 0.75}), 3, grouped())
    assert isinstance(policy, OneOf)
    assert policy.shares == pytest.approx([1 / 3] * 3)
    assert all(isinstance(chain, Chain) and len(chain.pairs) == 2 for chain, _ in policy.pairs)
    step, p = policy.pairs[1][0].pairs[0]
    assert (step.name, step.magnitude, p) == ("Cutout", 0.75, 0.25)
    names = []
    trial = Trial()
    trial.suggest_categorical = lambda name, choices: names.extend(choices) or choices[0]
    proposed(trial, 1, blobs(channels=2))
    assert "Color" not in names  # not for two channels
    assert "SamplePairing" not in names


def test_the_best_of_a_search_have_the_lowest_scores(monkeypatch):
    pytest.importorskip("optuna")
    data = grouped()
    trainer = task().prepare(data)
    state, rows = trainer.fit(Identity(), 0), data.indices("train")[:16]
    seen, plain = [], fast_autoaugment.score

    def kept(*arguments):
        seen.append((plain(*arguments), str(arguments[3])))
        return seen[-1][0]

    monkeypatch.setattr(fast_autoaugment, "score", kept)
    found = FastAutoAugment(trials=12, keep=3, pairs=2).best_policies(trainer, state, rows, 5)
    assert len(seen) == 12
    assert [str(policy) for policy in found] == [text for _, text in sorted(seen)[:3]]
    assert [score(trainer, state, rows, policy, 5) for policy in found] == [value for value, _ in sorted(seen)[:3]]


def test_a_search_that_ctrl_c_ends_logs_no_traceback(monkeypatch):
    pytest.importorskip("optuna")
    logged = []

    class Kept(logging.Handler):
        def emit(self, record):
            logged.append(record.getMessage())

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fast_autoaugment, "score", interrupted)
    monkeypatch.setattr(logging.getLogger("optuna"), "handlers", [Kept()])
    with pytest.raises(KeyboardInterrupt):
        FastAutoAugment(trials=2).best_policies(task().prepare(grouped()), {}, None, 5)
    assert logged == []


def test_models_are_of_the_other_folds_and_the_last_is_trained_with_all_that_was_found(monkeypatch):
    pytest.importorskip("optuna")
    data, fits, fit, judged, losses = grouped(), [], Trainer.fit, [], Trainer.losses

    def told(self, policy, seed, steps=None, rows=None):
        fits.append((policy, seed, rows))
        return fit(self, policy, seed, steps, rows)

    def judge(self, state, rows, policy=None, seed=0):
        judged.append(rows)
        return losses(self, state, rows, policy, seed)

    monkeypatch.setattr(Trainer, "fit", told)
    monkeypatch.setattr(Trainer, "losses", judge)
    method = FastAutoAugment(folds=3, rounds=2, trials=2, keep=1, pairs=2)
    trainer = task().prepare(data)
    state, row = method.fit(trainer, 1)
    parts = folds_of(data, trainer.rows, 3, 1)
    *known, (policy, seed, rows) = fits
    for i, (plain, fold_seed, trained) in enumerate(known):
        assert plain == Identity()
        assert fold_seed == seed_of(1, "fold", i)
        assert sorted([*trained, *parts[i]]) == trainer.rows.tolist()
        assert all(np.array_equal(parts[i], rows) for rows in judged[4 * i : 4 * i + 4])
    assert len(known) == 3
    assert (seed, rows, len(policy.pairs)) == (1, None, 3 * 2 * 1)
    assert row == {"sub-policies": 12}
    assert same(state, fit(task().prepare(data), policy, 1))


def test_without_optuna_it_says_how_to_get_it_before_anything_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r'this needs optuna.*pip install "augtree\[methods\]"'):
        FastAutoAugment().check(task(), grouped())


def test_its_options_are_checked():
    for name in ("rounds", "trials", "keep", "pairs"):
        with pytest.raises(ArgumentError, match=f"{name} must be a whole number from 1"):
            FastAutoAugment(**{name: 0})
    with pytest.raises(ArgumentError, match="folds must be a whole number from 2 to 100, got 1"):
        FastAutoAugment(folds=1)
    with pytest.raises(ArgumentError, match="keep must be at most 256, folds x rounds x keep: .*, got 300"):
        FastAutoAugment(folds=5, rounds=6, keep=10)
    pytest.importorskip("optuna")
    with pytest.raises(ArgumentError, match="fast-autoaugment/folds must be a whole number from 2 to 48, got 50"):
        FastAutoAugment(folds=50, rounds=1, keep=1).check(task(), grouped())
    quick("fast-autoaugment").check(task(), grouped())
