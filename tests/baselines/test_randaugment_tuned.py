"""RandAugment at the magnitude that validation data prefers."""

import pytest

from augtree.baselines.randaugment_tuned import RandAugmentTuned
from augtree.errors import ArgumentError
from augtree.transforms import RandAugment
from support.blobs import blobs, same
from support.methods import task, without_validation


@pytest.mark.parametrize("metric", ["loss", "auroc"])
def test_it_is_the_best_of_whole_trainings_on_validation_data(metric):
    data = blobs(val=40)
    trainer = task(metric=metric, steps=12).prepare(data)
    states = {m: trainer.fit(RandAugment(1, m), 3) for m in (30, 2, 9)}
    values = {m: trainer.measures(state, data.indices("val"))[metric] for m, state in states.items()}
    best = (min if metric == "loss" else max)(values, key=values.get)
    assert len(set(values.values())) > 1
    state, row = RandAugmentTuned((30, 2, 9), n=1).fit(trainer, 3)
    assert row == {"m": best}
    assert same(state, states[best])


def test_it_needs_validation_samples_and_magnitudes():
    with pytest.raises(ArgumentError, match="randaugment-tuned must have validation samples to choose by, got "):
        RandAugmentTuned().check(task(), without_validation())
    with pytest.raises(ArgumentError, match="m must be a whole number from 0 to 30, got 31"):
        RandAugmentTuned((9, 31))
    for wrong in ((), (9, 9)):
        with pytest.raises(ArgumentError, match="magnitudes must be at least one, and all different"):
            RandAugmentTuned(wrong)
    assert RandAugmentTuned([5, 9]) == RandAugmentTuned((5, 9))
