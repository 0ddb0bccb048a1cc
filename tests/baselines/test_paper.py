"""The paper's forest, as a row of a comparison."""

import numpy as np
import pytest

import augtree as at
from augtree.baselines.paper import Paper
from augtree.errors import ArgumentError
from augtree.runs.events import silent
from support.blobs import blobs
from support.methods import grouped, task


def test_it_is_the_model_of_a_search_for_a_forest_by_the_papers_method():
    data, asked = blobs(48, 48, 16, groups=np.where(np.arange(112) % 3 == 0, "a", "b")), task()
    space = at.spaces.images(fill=data.fill)
    options = {"method": "paper", "depth": 1, "alpha": 3, "seed": 2, "watch": silent}
    result = at.search_forest(data, asked, space, **options)
    trainer = asked.prepare(data)
    state, row = Paper(depth=1, alpha=3).fit(trainer, 2)
    assert row == pytest.approx({f"weight {name}": weight for name, weight in result.weights.items()})
    assert row["weight a"] != 0.5
    found = trainer.measures(state, data.indices("test", "a"))["loss"]
    assert found == pytest.approx(result.measures["test"]["a"]["loss"])


def test_each_group_needs_validation_samples():
    with pytest.raises(ArgumentError, match="paper must have 8 validation samples of each group, here a, got 4"):
        Paper().check(task(), grouped(val=8))
