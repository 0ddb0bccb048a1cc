import csv
import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from augtree.data.proteins import build_proteins
from augtree.data.proteins.build import pipeline as build_module
from augtree.data.proteins.build.edges import unpacked
from augtree.errors import ArgumentError, DataError
from support.protein_files import (
    MMCIF,
    MMCIF_PAIRS,
    MMCIF_PLDDT,
    MMCIF_TYPES,
    PDB,
    chain_pdb,
    write_inputs,
    write_tar,
)

LINE = [4.0 * i for i in range(250)]
FILES = {
    "P00001.cif.gz": MMCIF,
    "AF-P00002-F1-model_v4.pdb.gz": PDB,
    "AF-P00002-F1-model_v4.cif.gz": MMCIF,
    "AF-P00003-F1-model_v4.pdb": chain_pdb(LINE),
    "AF-P00003-F2-model_v4.pdb": chain_pdb(LINE[:100]),
    "broken.pdb": "no structure",
    "damaged.pdb.gz": b"",
    "other/P00001.cif": MMCIF,
    "README.txt": "not read",
}


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def graph(folder, name):
    ids, nodes, edges = (np.load(folder / f"{part}.npy") for part in ("ids", "num_nodes", "num_edges"))
    i = ids.tolist().index(name)
    node, edge = nodes[:i].sum(), edges[:i].sum()
    of_node = {
        part: np.load(folder / f"{part}.npy")[node : node + nodes[i]] for part in ("residues", "plddt", "up_degree")
    }
    offset = np.load(folder / "offset.npy")[edge : edge + edges[i]]
    return of_node["residues"], of_node["plddt"], unpacked(of_node["up_degree"], offset)


def test_a_small_build(tmp_path):
    inputs = write_inputs(tmp_path, FILES)
    told = []
    built = build_proteins(
        *inputs, tmp_path / "out", min_proteins=1, watch=lambda what, **about: told.append((what, about))
    )
    assert np.load(tmp_path / "out/ids.npy").tolist() == ["P00001", "P00002", "P00003"]
    types, plddt, pairs = graph(built.out, "P00001")
    assert (types.tolist(), plddt.tolist(), pairs.tolist()) == (MMCIF_TYPES, MMCIF_PLDDT, MMCIF_PAIRS)
    # Within the chains 3.8, across 5.0 and (for the diagonal) 6.28.
    assert graph(built.out, "P00002")[2].tolist() == [[0, 0, 1, 2], [1, 2, 3, 3]]
    # Residues 1 to 250 and 201 to 300: a line of 300.
    assert graph(built.out, "P00003")[2].T.tolist() == [[i, i + 1] for i in range(299)]
    reasons = list(csv.reader((tmp_path / "out/bad_files.csv").read_text().splitlines()))
    assert [row[0] for row in reasons] == ["file", "broken.pdb", "damaged.pdb.gz", "other/P00001.cif"]
    assert reasons[1][1] == "must have at least one atom"
    assert reasons[3][1] == "must not be the same protein and fragment as P00001.cif.gz"
    wanted = dict(structure_files=8, set_aside=1, bad_files=3, other_files=1)
    wanted |= dict(graphs=3, proteins=3, joined=1, with_several_chains=1)
    wanted |= dict(residues=310, edges=308, residues_without_calpha=1, unknown_residues=1)
    wanted |= dict(terms=5, labels=7, graphs_without_label=1)
    assert {name: built.counts[name] for name in wanted} == wanted
    assert built.manifest == json.loads((tmp_path / "out/manifest.json").read_text())
    rows = (tmp_path / "out/proteins.csv").read_text().splitlines()
    assert rows[0] == "id,accession,files,chains,residues,edges,no_calpha,unknown,terms"
    assert rows[1] == "P00001,P00001,1,1,6,5,1,1,5"
    assert rows[3] == "P00003,P00003,2,1,300,299,0,0,0"
    assert told[0] == ("plan", {"steps": 6})
    assert sum(about["done"] for what, about in told if what == "part") == 6
    assert sum(about["bad"] for what, about in told if what == "part") == 2
    assert not (tmp_path / "out/.parts").exists()


def test_fragments_apart(tmp_path):
    inputs = write_inputs(tmp_path, FILES)
    built = build_proteins(*inputs, tmp_path / "out", min_proteins=1, fragments="apart")
    assert np.load(tmp_path / "out/ids.npy").tolist() == ["P00001", "P00002", "P00003-F1", "P00003-F2"]
    assert graph(built.out, "P00003-F2")[2].T.tolist() == [[i, i + 1] for i in range(99)]
    assert (built.counts["graphs"], built.counts["proteins"], built.counts["joined"]) == (4, 3, 0)


def test_fragments_that_cannot_be_joined_are_bad(tmp_path):
    files = {"P1.pdb": PDB, "AF-P2-F1-model_v4.pdb": PDB, "AF-P2-F2-model_v4.pdb": PDB}
    built = build_proteins(*write_inputs(tmp_path, files), tmp_path / "out")
    assert (built.counts["graphs"], built.counts["bad_files"]) == (1, 2)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_gives_the_graphs_of_its_folder(tmp_path, mode):
    folder, *others = write_inputs(tmp_path, FILES)
    one = build_proteins(folder, *others, tmp_path / "a", min_proteins=1)
    two = build_proteins(write_tar(folder, tmp_path / "x.tar", mode), *others, tmp_path / "b", min_proteins=1)
    first, second = contents(one.out), contents(two.out)
    for name in first:
        if name not in ("manifest.json", "bad_files.csv"):
            assert first[name] == second[name], name
    assert one.counts == two.counts


@pytest.mark.parametrize("stop", range(1, 7))
def test_a_build_that_was_stopped_goes_on_with_the_same_bytes(tmp_path, monkeypatch, stop):
    monkeypatch.setattr(build_module, "PART_FILES", 1)
    inputs = write_inputs(tmp_path, FILES)
    whole = build_proteins(*inputs, tmp_path / "whole", min_proteins=1)
    seen = []

    def watch(what, **about):
        seen.append(what)
        if len(seen) == stop + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_proteins(*inputs, tmp_path / "out", min_proteins=1, watch=watch)
    assert not (tmp_path / "out/manifest.json").exists()
    told = []
    build_proteins(
        *inputs, tmp_path / "out", min_proteins=1, watch=lambda what, **about: told.append(about.get("done"))
    )
    assert told[1] == stop
    assert contents(tmp_path / "out") == contents(whole.out)


@pytest.mark.parametrize("writes", range(4))
def test_a_build_that_was_stopped_at_its_end_goes_on(tmp_path, monkeypatch, writes):
    inputs = write_inputs(tmp_path, FILES)
    whole = build_proteins(*inputs, tmp_path / "whole", min_proteins=1)
    write, done = build_module.write_atomically, []

    def dying(path, content):
        if path.parent.name == "out" and len(done) == writes:
            raise KeyboardInterrupt
        done.extend([path] * (path.parent.name == "out"))
        write(path, content)

    monkeypatch.setattr(build_module, "write_atomically", dying)
    with pytest.raises(KeyboardInterrupt):
        build_proteins(*inputs, tmp_path / "out", min_proteins=1)
    monkeypatch.setattr(build_module, "write_atomically", write)
    build_proteins(*inputs, tmp_path / "out", min_proteins=1)
    assert contents(tmp_path / "out") == contents(whole.out)


KILLED = """
import os, signal, sys
from augtree.data.proteins import build_proteins
from augtree.data.proteins.build import pipeline

def watch(what, done=0, **about):
    if what == "part":
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    build.PART_FILES = 1
    build_proteins(*sys.argv[1:], min_proteins=1, workers=2, watch=watch)
"""


def test_a_killed_build_with_workers_goes_on_with_the_same_bytes(tmp_path, monkeypatch):
    inputs = write_inputs(tmp_path, FILES)
    monkeypatch.setattr(build_module, "PART_FILES", 1)
    whole = build_proteins(*inputs, tmp_path / "whole", min_proteins=1)
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, str(tmp_path / "killed.py"), *map(str, inputs), str(tmp_path / "out")]
    assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
    parts = list((tmp_path / "out/.parts").glob("part-*.npz"))
    assert 0 < len(parts) <= 6
    assert not (tmp_path / "out/manifest.json").exists()
    build_proteins(*inputs, tmp_path / "out", min_proteins=1)
    assert contents(tmp_path / "out") == contents(whole.out)


def test_a_finished_build_is_not_done_again(tmp_path):
    inputs = write_inputs(tmp_path, FILES)
    one = build_proteins(*inputs, tmp_path / "out")
    before = (tmp_path / "out/manifest.json").stat().st_mtime_ns
    assert build_proteins(*inputs, tmp_path / "out", watch=lambda *_, **__: 1 / 0).manifest == one.manifest
    assert (tmp_path / "out/manifest.json").stat().st_mtime_ns == before


def test_a_folder_with_another_build_or_other_things_is_refused(tmp_path, monkeypatch):
    inputs = write_inputs(tmp_path, FILES)
    build_proteins(*inputs, tmp_path / "out")
    with pytest.raises(ArgumentError, match=r"out must be a new folder: its build has other options/cutoff"):
        build_proteins(*inputs, tmp_path / "out", cutoff=8)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").touch()
    with pytest.raises(ArgumentError, match="out must be a new or an empty folder"):
        build_proteins(*inputs, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["x"]


def test_a_build_does_not_go_on_with_changed_structures(tmp_path):
    inputs = write_inputs(tmp_path, FILES)

    def watch(what, **about):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_proteins(*inputs, tmp_path / "out", watch=watch)
    os.utime(inputs[0] / "P00001.cif.gz", (1, 1))
    with pytest.raises(ArgumentError, match="its build has other changed"):
        build_proteins(*inputs, tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoff": 0}, "cutoff must be a number in (0, 100], got 0"),
        ({"fragments": "both"}, "fragments must be join or apart, got 'both'"),
        ({"evidence": "IDEA"}, "evidence must be of"),
        ({"min_proteins": 0}, "min_proteins must be a whole number from 1"),
        ({"workers": 0}, "workers must be a whole number from 1"),
        ({"aspects": ""}, "aspects must be some of"),
    ],
)
def test_bad_arguments_make_no_folder(tmp_path, options, message):
    with pytest.raises(ArgumentError) as caught:
        build_proteins(*write_inputs(tmp_path, {"a.pdb": PDB}), tmp_path / "out", **options)
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "out").exists()


def test_nothing_that_can_be_read(tmp_path):
    with pytest.raises(
        DataError, match=r"must have a structure that can be read; x\.pdb must have at least one atom"
    ):
        build_proteins(*write_inputs(tmp_path, {"x.pdb": "hello"}), tmp_path / "out")
    assert not (tmp_path / "out/manifest.json").exists()


def calpha_by_columns(text):
    """Calpha atoms of a PDB file by its columns alone: the fuller of alternatives, nothing behind a chain's TER."""
    ended, best, last = set(), {}, ""
    for line in text.splitlines():
        if line.startswith("TER"):
            ended.add(last)
        elif line.startswith(("ATOM", "HETATM")):
            last = line[21]
            if line[21] not in ended and line[12:16] == " CA ":
                key, occupancy = (line[21], line[22:27]), float(line[54:60])
                if key not in best or occupancy > best[key][0]:
                    best[key] = occupancy, [float(line[i : i + 8]) for i in (30, 38, 46)], line[60:66]
    points = np.array([point for _, point, _ in best.values()])
    return points, [float(b) for *_, b in best.values()]


@pytest.mark.skipif(not os.environ.get("AUGTREE_DATA"), reason="AUGTREE_DATA is not set")
def test_the_sample_structures_agree_with_a_distance_matrix(tmp_path):
    sample = Path(os.environ["AUGTREE_DATA"]) / "proteins/structures_sample.tar.gz"
    if not sample.exists():
        pytest.skip(f"there is no {sample}")
    _, *others = write_inputs(tmp_path, {"a.pdb": PDB})
    built = build_proteins(sample, *others, tmp_path / "out", min_proteins=1)
    assert (built.counts["graphs"], built.counts["bad_files"]) == (39, 0)
    with tarfile.open(sample) as tar:
        for member in tar:
            points, b_factors = calpha_by_columns(tar.extractfile(member).read().decode())
            square = sum((points[:, None, axis] - points[None, :, axis]) ** 2 for axis in range(3))
            wanted = np.argwhere(np.triu(square < 36, 1))
            _, plddt, pairs = graph(built.out, member.name[:-4])
            assert np.array_equal(pairs.T, wanted), member.name
            assert np.allclose(plddt, b_factors), member.name
