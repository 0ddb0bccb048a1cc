"""Algorithm 2 with the contrastive loss."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree import Forest, Tree
from augtree.errors import ArgumentError
from augtree.forests import Weighting
from augtree.forests.hypergradient import Hypergradient
from augtree.search import Density
from augtree.tasks.contrastive_losses import nt_xent
from augtree.transforms import Cutout, DropNodes, PermuteEdges, Rotate
from support.blobs import blobs
from support.contrastive import task

DATA = blobs(train=64, val=32, groups=["a", "a", "b", "b"] * 28)
TREES = {"a": Tree().with_node(1, Rotate(0.4), p=0.5), "b": Tree().with_node(1, Cutout(0.4), p=0.5)}
FOREST = Forest({name: (tree, 0.5) for name, tree in TREES.items()})


def looked_at(**more):
    trainer = task(steps=20).prepare(DATA)
    look = Hypergradient(trainer, FOREST, Weighting(batch=8, damping=1.0, iterations=50, tolerance=1e-6, **more), 0)
    return trainer, look, trainer.fit(FOREST, 0)


@pytest.mark.parametrize("product", ["hessian", "gauss-newton"])
def test_the_direction_is_finite_and_solved_for(product):
    _, look, state = looked_at(product=product)
    found = look.estimate(state, np.array([0.5, 0.5]), np.array([0.5, 0.5]), 1, product)
    assert np.isfinite(found.d).all()
    assert np.abs(found.d).max() > 0
    assert found.solution.failed or found.solution.residual < 0.1
    if product == "gauss-newton":
        assert not found.solution.failed  # never negative


def test_a_group_s_loss_is_the_mean_over_its_samples_of_nt_xent():
    trainer, look, state = looked_at()
    trainer.module(state).train()
    inputs, which = look._inner_batch(0)
    _, losses = look._outputs_and_losses(*look._labelled((inputs, which)))
    z = trainer.model(trainer.normalised(inputs.flatten(0, 1)))
    each = nt_xent(z[::2], z[1::2], 0.5)
    assert torch.allclose(losses, each.view(2, 8).mean(1), atol=1e-5)
    assert [DATA.group_names[g] for g in DATA.groups[which]] == ["a"] * 8 + ["b"] * 8


def test_the_outer_loss_is_on_views_that_the_trees_make_of_validation_samples():
    trainer, look, state = looked_at()
    inputs, which = look._outer_batch(1)
    assert set(which) <= set(DATA.indices("val"))
    changed = (inputs != DATA.samples[which][:, None]).flatten(2).any(2)
    assert changed.any(0).all()  # both views are drawn
    assert (changed[:, 0] != changed[:, 1]).any()  # each by itself
    even = np.array([0.5, 0.5])
    found = look.estimate(state, even, even, 1, "gauss-newton").outer_losses
    trainer.module(state).train()
    z = trainer.model(trainer.normalised(inputs.flatten(0, 1)))
    assert found == pytest.approx(nt_xent(z[::2], z[1::2], 0.5).view(2, 8).mean(1).tolist(), abs=1e-5)


def test_a_forest_is_fitted_and_measured():
    found = [at.fit_forest(DATA, task(steps=20), TREES, alpha=4, eta=0.5) for _ in range(2)]
    weights = [{name: member.weight for name, member in one.forest.groups.items()} for one in found]
    assert weights[0] == weights[1]
    assert sum(weights[0].values()) == pytest.approx(1)
    assert weights[0]["a"] != 0.5


def test_graphs_in_half_precision():
    """The networks' sums and their derivatives take what the linear layers give."""
    rng, graphs = np.random.default_rng(0), []
    for i in range(48):
        nodes = 6 + i % 4
        pairs = [(a, b) for a in range(nodes) for b in range(a) if rng.random() < (0.3 if i % 2 else 0.7)]
        edges = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
        graphs.append(Data(x=torch.ones(nodes, 1), edge_index=torch.cat([edges, edges.flip(0)], 1)))
    split, groups = ["train"] * 32 + ["val"] * 16, ["a", "a", "b", "b"] * 12
    data = at.data.from_arrays(graphs, np.arange(48) % 2, split=split, groups=groups)
    trees = {"a": Tree().with_node(1, DropNodes(0.2), p=0.5), "b": Tree().with_node(1, PermuteEdges(0.2), p=0.5)}
    for model in ("gin", "resgcn"):
        asked = at.tasks.Contrastive(
            model=model, steps=4, batch_size=16, dim=8, device="cpu", precision="bfloat16", optimizer="adamw"
        )
        found = at.fit_forest(data, asked, trees, alpha=2, eta=0.5)
        assert not [note for note in found.notes if "skipped" in note]
        assert 0 < found.forest.groups["a"].weight < 1
        assert found.forest.groups["a"].weight != 0.5


@pytest.mark.parametrize(("search", "method"), [(at.search_tree, "greedy"), (at.search_forest, "paper")])
def test_a_rule_that_does_not_suit_the_judge_leaves_no_run_behind(tmp_path, search, method):
    with pytest.raises(ArgumentError, match="rule must be sampled"):
        search(DATA, task(judge="contrastive"), scorer=Density(), method=method, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
