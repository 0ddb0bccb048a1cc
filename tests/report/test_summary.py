import json

import numpy as np
import torch
from torch_geometric.data import Data

from augtree.data import Dataset, from_arrays, load
from augtree.report.summary import summary, summary_lines, table


def ring(nodes, chords=()):
    """A ring of nodes and some more edges, both ways."""
    pairs = [(i, (i + 1) % nodes) for i in range(nodes)] + list(chords)
    edges = torch.tensor(pairs + [(b, a) for a, b in pairs]).t()
    return Data(x=torch.ones(nodes, 2), edge_index=edges)


def small():
    """Two rings and a ring with a chord: 3, 4, 5 nodes; 3, 4, 6 edges; degrees 2, 2, 2.4."""
    graphs = [ring(3), ring(4), ring(5, [(0, 2)])]
    return from_arrays(graphs, [0, 1, 1], split=["train", "val", "test"], groups=["a", "b", "b"])


def test_graphs_by_hand():
    about = summary(small())
    assert about["classes"] == {"0": {"train": 1, "val": 0, "test": 0}, "1": {"train": 0, "val": 1, "test": 1}}
    assert about["groups"] == {"a": {"train": 1, "val": 0, "test": 0}, "b": {"train": 0, "val": 1, "test": 1}}
    assert about["sizes"] == {
        "nodes": {"min": 3, "median": 4, "mean": 4, "max": 5},
        "edges": {"min": 3, "median": 4, "mean": 4.3333, "max": 6},
        "average_degree": {"min": 2, "median": 2, "mean": 2.1333, "max": 2.4},
        "node_features": 2,
        "edge_features": 0,
    }
    assert json.loads(json.dumps(about)) == about


def test_what_people_read():
    lines = summary_lines(summary(small()))
    assert lines[0] == "arrays: 3 graphs; train 1, val 1, test 1"
    assert lines[1] == "nodes: 3 to 5 (median 4.0, mean 4.0)"
    assert lines[3] == "average degree: 2.0 to 2.4 (median 2.0, mean 2.1)"
    assert "group       train         val        test" in lines
    assert lines[-1].startswith("fingerprint ")


def test_graphs_without_features():
    bare = [Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2) for _ in range(3)]
    sizes = summary(from_arrays(bare, [0, 1, 1], split=["train", "val", "test"]))["sizes"]
    assert (sizes["node_features"], sizes["edge_features"]) == (0, 0)


def test_labels_of_unlabelled_samples_are_not_counted():
    data = load("digits").with_labels(20)
    about = summary(data)
    assert sum(row["train"] for row in about["classes"].values()) == 20
    assert about["counts"]["unlabelled"] == about["groups"]["all"]["unlabelled"] == 1058
    assert "unlabelled" not in about["classes"]["0"]
    assert "pictures: 8x8, grey" in summary_lines(about)


def test_several_labels():
    data = Dataset(
        name="many",
        samples=torch.zeros(3, 3, 5, 6, dtype=torch.uint8),
        labels=torch.tensor([[1, 1], [0, 1], [0, 0]], dtype=torch.uint8),
        classes=("mass", "edema"),
        split=np.array([0, 0, 2], np.int8),
        groups=np.zeros(3, np.int64),
        group_names=("all",),
    )
    about = summary(data)
    assert about["classes"] == {"mass": {"train": 1, "val": 0, "test": 0}, "edema": {"train": 2, "val": 0, "test": 0}}
    assert "pictures: 6x5, RGB" in summary_lines(about)


def test_pictures_that_are_neither_grey_nor_coloured_have_channels():
    data = from_arrays(np.zeros((3, 4, 6, 5), np.uint8), [0, 1, 1], split=["train", "val", "test"])
    assert "pictures: 5x6, 4 channels" in summary_lines(summary(data))


def test_of_many_rows_the_largest_are_shown():
    rows = {f"class {i}": {"train": i} for i in range(50)}
    lines = table("class", rows, ("train",))
    assert lines[1] == "class 49" + f"{49:>12}"
    assert (len(lines), lines[-1]) == (22, "and 30 more")
