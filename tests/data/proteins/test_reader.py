import gzip
import json
import os
import pickle

import numpy as np
import pytest
import torch

from augtree.data import load
from augtree.data.proteins import build_proteins, read_human_proteins, read_proteins
from augtree.data.proteins.reader import is_proteins
from augtree.errors import ArgumentError, DataError
from support.protein_files import MMCIF, MMCIF_PLDDT, MMCIF_TYPES, PDB, chain_pdb, gaf_line, write_inputs

PROCESS, GROWTH, PART, FUNCTION, BINDING = (f"GO:000000{i}" for i in (1, 2, 3, 4, 6))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """P00001 has all five terms, P00002 the first two, P00003 none."""
    place = tmp_path_factory.mktemp("built")
    files = {"P00001.cif": MMCIF, "P00002.pdb": PDB, "P00003.pdb": chain_pdb([0.0, 50.0])}
    build_proteins(*write_inputs(place, files), place / "out", min_proteins=1)
    return place / "out"


def test_a_built_folder_as_a_data_set(folder):
    data = read_proteins(folder)
    assert data.classes == (PROCESS, GROWTH, PART, FUNCTION, BINDING)
    assert data.labels.tolist() == [[1] * 5, [1, 1, 0, 0, 0], [0] * 5]
    assert data.columns == {"id": ("P00001", "P00002", "P00003")}
    assert data.group_names == ("all",)
    assert data.counts == {"train": 1, "val": 1, "test": 1}
    first, second, third = data.samples
    assert first.x[:, :21].argmax(dim=1).tolist() == MMCIF_TYPES
    assert first.x[:, :21].sum(dim=1).tolist() == [1] * 6
    assert torch.equal(first.x[:, 21], torch.tensor(MMCIF_PLDDT) / 100)
    assert first.x.dtype == torch.float32
    assert first.edge_index.tolist() == [[0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]]
    assert second.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2]]
    assert third.edge_index.shape == (2, 0)
    assert "1 proteins have none of the terms: all their labels are 0" in data.notes


@pytest.mark.parametrize(
    ("options", "classes", "ids"),
    [
        ({"terms": 2}, (PROCESS, GROWTH), ("P00001", "P00002", "P00003")),
        ({"namespace": "F"}, (FUNCTION, BINDING), ("P00001", "P00002", "P00003")),
        ({"namespace": "molecular_function", "annotated": True}, (FUNCTION, BINDING), ("P00001",)),
        ({"terms": 1, "annotated": True}, (PROCESS,), ("P00001", "P00002")),
    ],
)
def test_some_terms_and_some_proteins(folder, options, classes, ids):
    data = read_proteins(folder, **options)
    assert (data.classes, data.columns["id"]) == (classes, ids)
    assert load(**data.source).fingerprint == data.fingerprint


def test_without_plddt(folder):
    data = read_proteins(folder, plddt=False)
    assert data.samples[0].x.shape == (6, 21)
    assert data.source["plddt"] is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"terms": 6}, "terms must be a whole number from 1 to 5, got 6"),
        ({"namespace": "X"}, "namespace must be one of P, F, C"),
        ({"namespace": "C"}, "namespace must be one that has terms here"),
        ({"limit": 4}, "limit must be a whole number from 1 to 3, got 4"),
    ],
)
def test_bad_options(folder, options, message):
    with pytest.raises(ArgumentError, match=message):
        read_proteins(folder, **options)


def test_what_is_no_built_folder(folder, tmp_path):
    assert is_proteins(folder)
    assert not is_proteins(tmp_path)
    with pytest.raises(DataError, match="must be a folder that `augtree data build proteins` has finished"):
        read_proteins(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "format": 2}))
    with pytest.raises(DataError, match="must have format 1, got 2"):
        read_proteins(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="has finished .*ids.npy"):
        read_proteins(tmp_path)
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    np.save(tmp_path / "offset.npy", np.zeros(3, np.int32))
    with pytest.raises(DataError, match="offset must have 9 values, got 3"):
        read_proteins(tmp_path)


def test_fragments_of_a_protein_stay_in_one_split(tmp_path):
    line = [4.0 * i for i in range(40)]
    files = {f"AF-P{i:05d}-F{k}-model_v4.pdb": chain_pdb(line[3 * i + k :]) for i in range(12) for k in (1, 2, 3)}
    structures, gaf, obo = write_inputs(tmp_path, files)
    gaf.write_text("\n".join(["!gaf-version: 2.2", *(gaf_line(f"P{i:05d}", GROWTH) for i in range(12))]))
    build_proteins(structures, gaf, obo, tmp_path / "out", min_proteins=12, fragments="apart")
    data = read_proteins(tmp_path / "out")
    assert len(data) == 36
    splits = {}
    for name, split in zip(data.columns["id"], data.split.tolist(), strict=True):
        splits.setdefault(name[:6], set()).add(split)
    assert all(len(one) == 1 for one in splits.values())
    assert data.counts == {"train": 21, "val": 9, "test": 6}


def test_identical_graphs_stay_in_one_split(tmp_path):
    # Twenty proteins of different lengths, each of them twice; pLDDT does not make a difference.
    line = [chain_pdb([4.0 * i for i in range(length)]) for length in range(1, 21)]
    files = {f"P{i:05d}.pdb": line[i % 20].replace(" 50.00", f" {i:5.2f}") for i in range(40)}
    structures, gaf, obo = write_inputs(tmp_path, files)
    gaf.write_text("\n".join(["!gaf-version: 2.2", *(gaf_line(f"P{i:05d}", GROWTH) for i in range(40))]))
    data = read_proteins(build_proteins(structures, gaf, obo, tmp_path / "out", min_proteins=1).out)
    assert data.split[:20].tolist() == data.split[20:].tolist()
    assert data.counts == {"train": 24, "val": 8, "test": 8}
    assert "20 graphs are in the split of one that is identical" in data.notes[-1]


HUMAN = {
    # A triangle of three residues and a fourth one at its end; two residues with an edge; a residue alone.
    "ids": np.array(["P1", "P2", "P3"]),
    "num_nodes": np.array([4, 2, 1], np.int32),
    "num_edges": np.array([4, 1, 0], np.int32),
    "up_degree": np.array([2, 1, 1, 0, 1, 0, 0], np.uint8),
    "offset": np.array([1, 2, 1, 1, 1], np.uint16),
}
GO = {
    "ids": HUMAN["ids"],
    "terms": np.array([PROCESS, FUNCTION]),
    "namespace": np.array(["biological_process", "molecular_function"]),
    "indptr": np.array([0, 2, 3, 3]),
    "indices": np.array([0, 1, 0], np.int32),
}


def write_human(folder, graphs=None, labels=None, sequences=">P1 a protein\nAC\nUX\n>P9\nAAA\n>P3\nw\n"):
    folder.mkdir(exist_ok=True)
    np.savez(folder / "graphs_ca10A.npz", **{**HUMAN, **(graphs or {})})
    np.savez(folder / "go_labels.npz", **{**GO, **(labels or {})})
    (folder / "sequences.fasta.gz").write_bytes(gzip.compress(sequences.encode()))


@pytest.mark.parametrize("below", ["", "proteins"])
def test_the_prebuilt_human_form(tmp_path, below):
    write_human(tmp_path / below)
    data = read_human_proteins(tmp_path)
    assert data.name == "human-proteins"
    assert data.labels.tolist() == [[1, 1], [1, 0], [0, 0]]
    one, two, three = data.samples
    assert one.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 2, 3], [1, 2, 0, 2, 0, 1, 3, 2]]
    assert two.edge_index.tolist() == [[0, 1], [1, 0]]
    assert three.edge_index.shape == (2, 0)
    assert one.x.shape == (4, 21)
    assert [sample.x.argmax(dim=1).tolist() for sample in data.samples] == [[0, 1, 1, 20], [20, 20], [18]]
    assert data.source == {"source": "human-proteins", "root": str(tmp_path), "seed": 0}
    assert read_human_proteins(tmp_path).fingerprint == data.fingerprint


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"graphs": {"offset": np.array([1], np.uint16)}}, "offset must have 5 values, got 1"),
        ({"graphs": {"up_degree": np.array([2, 1, 0, 0, 1, 0, 0])}}, "P1: up_degree must sum to its 4 edges, got 3"),
        ({"graphs": {"offset": np.array([1, 2, 1, 9, 1])}}, "P1: edges must end below node 4, got 11"),
        ({"labels": {"ids": np.array(["P1", "P2", "P4"])}}, "go_labels.npz must have the ids of graphs_ca10A.npz"),
        ({"sequences": ">P1\nACU\n"}, "P1 must have 4 residues, got 3"),
        ({"sequences": "ACU\n"}, "must be a FASTA file, got text before the first > at line 1"),
    ],
)
def test_broken_human_files(tmp_path, broken, message):
    write_human(tmp_path, **broken)
    with pytest.raises(DataError, match=message):
        read_human_proteins(tmp_path)


def test_missing_human_files(tmp_path):
    with pytest.raises(DataError, match="must have graphs_ca10A.npz, go_labels.npz and sequences.fasta.gz"):
        read_human_proteins(tmp_path)


def test_a_graph_is_pickled_without_the_others(tmp_path):
    counts = {"ids": np.array(["P1", "P2"]), "num_nodes": np.array([2, 5000]), "num_edges": np.array([1, 0])}
    edges = {"up_degree": np.array([1] + [0] * 5001, np.uint8), "offset": np.array([1], np.uint16)}
    labels = {"ids": counts["ids"], "indptr": np.array([0, 1, 2]), "indices": np.array([0, 0])}
    write_human(tmp_path, {**counts, **edges}, labels, sequences=">P1\nAA\n")
    assert len(pickle.dumps(read_human_proteins(tmp_path).samples[0])) < 5000


@pytest.mark.skipif(not os.environ.get("AUGTREE_DATA"), reason="AUGTREE_DATA is not set")
def test_some_real_human_proteins():
    data = read_human_proteins(os.environ["AUGTREE_DATA"], limit=200, terms=1198, annotated=True)
    assert (len(data), data.num_classes) == (200, 1198)
    assert bool(data.labels.any(dim=1).all())
    assert (
        data.counts == read_human_proteins(os.environ["AUGTREE_DATA"], limit=200, terms=1198, annotated=True).counts
    )
    for graph in data.samples:
        assert graph.edge_index.max() < graph.num_nodes
        assert bool((graph.edge_index[0] != graph.edge_index[1]).all())
