"""All trees of two levels."""

import pytest

from augtree.baselines.exhaustive import Exhaustive
from augtree.errors import ArgumentError, DataError
from augtree.runs.events import silent
from augtree.search import Retrain, search_tree
from augtree.search.exhaustive import count
from augtree.transforms import Posterize, Rotate, Space
from support.blobs import blobs, same
from support.methods import task


def test_it_trains_with_the_tree_that_the_exhaustive_search_finds():
    data, method = blobs(val=32), Exhaustive(("Rotate", "Posterize"), length=0.5)
    trainer = task().prepare(data)
    space = Space([Rotate(0.6), Posterize(0.6)])
    options = {"method": "exhaustive", "scorer": Retrain(train=0.5, repeats=1), "check": 0, "seed": 2}
    result = search_tree(data, task(), space, **options, watch=silent)
    state, row = method.fit(trainer, 2)
    assert row == {"tree": str(result.tree)}
    assert same(state, trainer.fit(result.tree, 2))


def test_its_cost_is_that_of_the_trees():
    assert count(len(Exhaustive().operations)) == 30
    assert Exhaustive.costs.startswith("34: one for each of 30 trees")


def test_what_it_cannot_use_is_refused():
    with pytest.raises(DataError, match="a search needs at least 8 validation samples, got 4"):
        Exhaustive().check(task(), blobs(val=4))
    with pytest.raises(ArgumentError, match=r"exhaustive/operations/0 must be one of .*did you mean Rotate\?"):
        Exhaustive(("Rotat",)).check(task(), blobs())
    with pytest.raises(ArgumentError, match="operations must be at least one, and all different"):
        Exhaustive(())
