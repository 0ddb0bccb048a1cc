"""Searches on graphs."""

import pytest
import torch
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.tasks import Classification
from augtree.transforms import DropNodes, MaskNodes, Space
from augtree.transforms.traits import EVERY_SAMPLE, STRONG
from support.tree_runs import search

pytestmark = pytest.mark.usefixtures("full_trees")


def ring(nodes, label):
    """A ring of nodes, with a chord where the label is 1."""
    ends = torch.arange(nodes)
    chord = torch.tensor([[0, nodes // 2], [nodes // 2, 0]]) if label else torch.empty(2, 0, dtype=torch.long)
    around = [torch.stack([ends, (ends + 1) % nodes]), torch.stack([(ends + 1) % nodes, ends])]
    return Data(x=torch.ones(nodes, 1), edge_index=torch.cat([*around, chord], 1), num_nodes=nodes)


LABELS = [i % 2 for i in range(40)]
RINGS = at.data.from_arrays(
    [ring(6 + i % 5, label) for i, label in enumerate(LABELS)],
    LABELS,
    split=["train", "train", "val", "val"] * 10,
    name="rings",
)
GIN = Classification(steps=10, batch_size=16, device="cpu", options={"hidden": 4})


def test_graphs_have_their_own_space_and_rival():
    result = search(data=RINGS, task=GIN, space=at.spaces.graphs()[:4], depth=1)
    assert set(result.free) == {"tree", "none"}
    assert {row["candidate"] for row in result.history} == {"yardstick", *map(str, at.spaces.graphs()[1:4])}


def test_graphs_by_cool_downs(tmp_path):
    """All of it: the mixture, the looks by traits, a finished model, and the same again from a half-done folder."""
    few = Space([DropNodes(0.1), DropNodes(0.4), MaskNodes(0.1), MaskNodes(0.4)])
    how = {"data": RINGS, "task": GIN, "space": few, "scorer": "cooldown", "budget": 12, "depth": 1}
    result = search(tmp_path / "a", **how)
    assert {finding["factor"] for finding in result.findings} == {"DropNodes", "MaskNodes", STRONG, EVERY_SAMPLE}
    assert result.mixture.domain == "graph"
    assert at.load(tmp_path / "a" / "mixture.json") == result.mixture
    logits = result.model(Batch.from_data_list([RINGS.samples[i] for i in RINGS.indices("val")]))
    accuracy = (logits.argmax(1) == RINGS.labels[RINGS.indices("val")]).float().mean()
    assert float(accuracy) == pytest.approx(result.measures["accuracy"])
    (tmp_path / "a" / "result.json").unlink()
    resumed = at.resume(tmp_path / "a", data=RINGS)
    assert resumed.mixture == result.mixture
    assert resumed.cost.forward == result.cost.forward
