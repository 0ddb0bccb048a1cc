"""A sequence grown by trainings."""

import pytest

from augtree.baselines.greedy_sequence import GreedySequence
from augtree.baselines.parts import Parts
from augtree.errors import ArgumentError
from augtree.transforms import Chain, Rotate
from augtree.transforms.images import Brightness, Cutout
from support.blobs import blobs, same
from support.methods import task, without_validation

GAINS = {"Rotate": 3, "Brightness": 2, "Cutout": 4}


def gain(chain):
    """Rotate and Brightness help each other, Cutout helps alone, and a fourth step never does."""
    names = [step.name for step, _ in chain.pairs]
    together = 5 * ("Rotate" in names and "Cutout" in names) - 9 * ("Brightness" in names and len(names) > 1)
    return sum(GAINS.get(name, -1) for name in set(names)) + together - 20 * (len(names) > 3)


def test_each_step_is_the_best_and_it_ends_where_none_helps(monkeypatch):
    scored = []
    monkeypatch.setattr(
        GreedySequence, "score", lambda self, trainer, chain, seed, parts: scored.append(chain) or gain(chain)
    )
    trainer = task().prepare(blobs())
    chain = GreedySequence(depth=3).search(trainer, 0, Parts(trainer))
    assert chain == Chain([(Cutout(0.6), 0.5), (Rotate(0.6), 0.5)])
    assert len(scored) == 1 + 3 * 15
    assert GreedySequence(depth=1, p=0.9).search(trainer, 0, Parts(trainer)) == Chain([(Cutout(0.6), 0.9)])


def test_nothing_is_chosen_where_nothing_helps(monkeypatch):
    monkeypatch.setattr(GreedySequence, "score", lambda self, trainer, chain, seed, parts: -len(chain.pairs))
    trainer = task().prepare(blobs())
    state, row = GreedySequence().fit(trainer, 0)
    assert row == {"sequence": "Chain()"}
    assert same(state, trainer.fit(Chain([]), 0))


@pytest.mark.parametrize(("metric", "sign"), [("loss", -1), ("auroc", 1)])
def test_a_score_is_the_metric_on_validation_data_after_a_training(metric, sign):
    data = blobs(val=40)
    trainer, chain = task(metric=metric, steps=12).prepare(data), Chain([(Brightness(0.6), 0.5)])
    measured = trainer.measures(trainer.fit(chain, 2, 6), data.indices("val"))[metric]
    assert GreedySequence(length=0.5).score(trainer, chain, 2, Parts(trainer)) == sign * measured


def test_it_needs_validation_samples():
    with pytest.raises(ArgumentError, match="greedy-sequence must have validation samples to choose by"):
        GreedySequence().check(task(), without_validation())
