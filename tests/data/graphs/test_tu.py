import zipfile

import pytest
import torch

from augtree.data import load
from augtree.data.graphs.tu import read_tu, tu_dataset
from augtree.errors import ArgumentError, DataError

FILES = {
    # Two graphs: a triangle with a self-loop and a doubled edge, and an edge listed in one direction only.
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n1, 1\n1, 2\n4, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "7\n-1\n",
    "node_labels": "0\n2\n2\n0\n5\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n",
    "edge_labels": "1\n1\n3\n3\n1\n1\n3\n1\n3\n",
}


def write(folder, changes=None, packed=False):
    files = {**FILES, **(changes or {})}
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        if text is not None:
            (folder / f"TINY_{name}.txt").write_text(text)
    if packed:
        with zipfile.ZipFile(folder / "TINY.zip", "w") as archive:
            for file in folder.glob("*.txt"):
                archive.write(file, f"TINY/{file.name}")
        return folder / "TINY.zip"
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_a_tiny_set_by_hand(tmp_path, packed):
    first, second = read_tu(write(tmp_path / "tiny", packed=packed))
    assert first.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    assert first.edge_attr.tolist() == [[1, 0], [1, 0], [1, 0], [0, 1], [1, 0], [0, 1]]
    assert first.x.tolist() == [[1, 0, 0, 0.5, 1], [0, 1, 0, 1.5, 2], [0, 1, 0, 2.5, 3]]
    assert second.edge_index.tolist() == [[0, 1], [1, 0]]
    assert second.edge_attr.tolist() == [[0, 1], [0, 1]]
    assert (first.y.tolist(), second.y.tolist()) == ([1], [0])
    assert first.x.dtype == torch.float32


def test_a_set_without_features(tmp_path):
    first, second = read_tu(
        write(tmp_path / "tiny", {"node_labels": None, "node_attributes": None, "edge_labels": None})
    )
    assert "x" not in first
    assert "edge_attr" not in first
    assert (first.num_nodes, second.num_nodes) == (3, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": "1, 9\n"}, "TINY_A.txt must have node numbers from 1 to 5"),
        ({"A": "1, 4\n"}, "TINY_A.txt must not have an edge between two graphs"),
        ({"A": "1, x\n"}, "TINY_A.txt must have numbers only"),
        ({"A": "1, 2, 3\n"}, "TINY_A.txt must have two node numbers on each line, got 3"),
        ({"graph_indicator": "1\n2\n1\n2\n2\n"}, "TINY_graph_indicator.txt must rise from 1 to 2"),
        ({"graph_indicator": "1\n1\n1\n2\n3\n"}, "TINY_graph_indicator.txt must rise from 1 to 2"),
        ({"node_labels": "1\n"}, "TINY_node_labels.txt must have a line for each of the 5 nodes, got 1"),
        ({"edge_labels": "1\n"}, "TINY_edge_labels.txt must have a line for each of the 9 edges, got 1"),
        ({"graph_labels": None}, "must have TINY_graph_labels.txt"),
        ({"graph_labels": "0.2\n0.7\n"}, "TINY_graph_labels.txt must have whole numbers"),
        ({"graph_labels": "1\ninf\n"}, "TINY_graph_labels.txt must have whole numbers"),
        ({"A": "1.5, 2\n"}, "TINY_A.txt must have whole numbers"),
    ],
)
def test_broken_sets_are_named(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        read_tu(write(tmp_path / "tiny", changes))


def test_a_set_without_edges(tmp_path):
    first, second = read_tu(write(tmp_path / "tiny", {"A": "", "edge_labels": None}))
    assert (first.num_edges, second.num_edges, first.num_nodes) == (0, 0, 3)


def test_several_columns_of_labels_are_all_kept(tmp_path):
    labels = "0, 1\n2, 1\n2, 1\n0, 4\n5, 4\n"
    first, second = read_tu(write(tmp_path / "tiny", {"node_labels": labels, "node_attributes": None}))
    assert first.x.tolist() == [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 1, 0, 1, 0]]
    assert second.x.tolist() == [[1, 0, 0, 0, 1], [0, 0, 1, 0, 1]]


def test_damaged_zip_files_are_refused(tmp_path):
    path = write(tmp_path / "tiny", packed=True)
    whole = path.read_bytes()
    refused = 0
    for place in range(30, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            assert len(read_tu(path)) == 2
        except DataError:
            refused += 1
    assert refused > 20


def test_what_is_no_set_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"must have a file NAME_A\.txt, got no \.txt file"):
        read_tu(tmp_path)
    with pytest.raises(DataError, match="must be a TU set, a folder or a zip file"):
        read_tu(tmp_path / "missing.zip")
    (tmp_path / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match="must be a TU set"):
        read_tu(tmp_path / "bad.zip")


BARE = {"node_labels": None, "node_attributes": None, "edge_labels": None}
STARS = {
    # Ten stars of 4 nodes and a pair each: degrees 3, 1, 1, 1 and 1, 1.
    "A": "".join(f"{6 * i + 1}, {6 * i + j}\n" for i in range(10) for j in (2, 3, 4))
    + "".join(f"{6 * i + 5}, {6 * i + 6}\n" for i in range(10)),
    "graph_indicator": "".join(f"{2 * i + 1}\n" * 4 + f"{2 * i + 2}\n" * 2 for i in range(10)),
    "graph_labels": "1\n2\n" * 10,
    **BARE,
}


def test_degree_features_for_a_set_without_any(tmp_path):
    path = write(tmp_path / "tiny", STARS)
    data = load(str(path), features="degree")
    assert data.samples[0].x.tolist() == [[0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]]
    assert data.samples[1].x.tolist() == [[0, 1, 0, 0], [0, 1, 0, 0]]
    assert data.samples[1].num_nodes == 2
    assert data.notes[-1] == "node features: the degree, one-hot, the last of 4 columns for 3 and more"
    assert load(**data.source).fingerprint == data.fingerprint != tu_dataset(path).fingerprint


def test_degree_features_are_refused_where_there_are_others(tmp_path):
    path = write(tmp_path / "tiny")
    with pytest.raises(ArgumentError, match="features must be left out for TINY: its nodes have features"):
        tu_dataset(path, features="degree")
    with pytest.raises(ArgumentError, match="features must be one of degree, got 'ones'"):
        tu_dataset(path, features="ones")


def test_a_graph_is_pickled_without_the_others(tmp_path):
    first = read_tu(write(tmp_path / "tiny"))[0]
    for field in (first.x, first.edge_index, first.edge_attr, first.y):
        assert field.untyped_storage().nbytes() == field.numel() * field.element_size()
