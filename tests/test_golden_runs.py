"""Tiny runs whose specification, units and outcome are kept: whatever moves in the code, they stay the same.

A run that somebody began with an older version must be gone on with, so seeds, roles, the names of units and the
forms of files may not change. `python tests/test_golden_runs.py` writes the files anew.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

import augtree as at
from augtree.runs.store import Run

GOLDEN = Path(__file__).parent / "golden" / "runs"
VERSIONS = {"torch": torch.__version__, "numpy": np.__version__}


def data(**more):
    """A bright corner, left or right, in two groups."""
    rng, count = np.random.default_rng(0), 96
    labels = np.arange(count) % 2
    pictures = rng.integers(0, 120, (count, 8, 8))
    for picture, right in zip(pictures, labels, strict=True):
        picture[:4, 4 * right : 4 * right + 4] += 60
    split = ["train"] * 48 + ["val"] * 32 + ["test"] * 16
    groups = ["ab"[i // 2 % 2] for i in range(count)]
    return at.data.from_arrays(pictures.astype(np.uint8), labels, split=split, groups=groups, name="corners", **more)


def task(**more):
    return at.tasks.Classification(model="cnn", steps=12, batch_size=16, lr=0.05, device="cpu", **more)


def space():
    return at.transforms.Space(
        [at.transforms.Identity(), at.transforms.RandAugment(), at.transforms.Posterize(0.2)],
        basics=[at.transforms.Flip(), at.transforms.VerticalFlip()],
    )


PLAIN = [at.transforms.Rotate(0.4), at.transforms.Posterize(1.0), at.transforms.Cutout(0.4)]
RUNS = {
    "search": lambda out: at.search_tree(data(), task(), space(), budget=20, out=out),
    "search by density": lambda out: at.search_tree(
        data(), task(), PLAIN, depth=2, scorer="density", probabilities=(0.5, 1.0), out=out
    ),
    "forest": lambda out: at.search_forest(data(), task(), space(), budget=20, alpha=3, out=out),
    "forest by the paper": lambda out: at.search_forest(
        data(), task(), PLAIN, method="paper", depth=1, probabilities=(0.5, 1.0), alpha=3, out=out
    ),
    "compare": lambda out: at.compare(
        data(), task(), {"none": None, "ra": "randaugment", "mine": at.Tree().with_node(1, PLAIN[0], p=0.5)},
        seeds=2, out=out,
    ),
    "evaluate": lambda out: at.evaluate(
        data(),
        at.tasks.Contrastive(model="cnn", steps=4, batch_size=16, dim=8, device="cpu"),
        {"none": None, "ra": "randaugment"}, protocol="linear", seeds=1, out=out,
    ),
}  # fmt: skip
POLICIES = ("tree.json", "mixture.json", "single.json", "forest.json", "policy.json")
"""Files that a run may end with."""


def kept(folder: Path) -> dict:
    """What of a run in its folder must stay."""
    with Run.open(folder, write=False) as run:
        units = list(run.units())
    return {
        "spec": json.loads((folder / "spec.json").read_text()),
        "units": [unit.key for unit in units],
        "passes": [[unit.forward, unit.backward] for unit in units],
        "losses": {u.key: [round(float(x), 8) for x in u.losses] for u in units if u.losses is not None},
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()),
        "policies": {name: json.loads((folder / name).read_text()) for name in POLICIES if (folder / name).exists()},
        "versions": VERSIONS,
    }


def without_weights(spec: dict) -> dict:
    """A specification without the hash of the first weights, which are drawn by torch's own generator."""
    begins = {name: value for name, value in spec.get("begins", {}).items() if name != "weights"}
    return {**spec, "begins": begins}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_stays_what_it_was(name, tmp_path):
    golden = json.loads((GOLDEN / f"{name.replace(' ', '-')}.json").read_text())
    RUNS[name](tmp_path / "run")
    found = json.loads(json.dumps(kept(tmp_path / "run")))
    assert without_weights(found["spec"]) == without_weights(golden["spec"])
    assert (found["units"], found["passes"], found["files"]) == (golden["units"], golden["passes"], golden["files"])
    if golden["versions"] != VERSIONS:
        pytest.skip(f"losses and policies are those of {golden['versions']}")
    assert found["spec"] == golden["spec"]
    assert found["policies"].keys() == golden["policies"].keys()
    for policy, content in golden["policies"].items():
        assert without_numbers(found["policies"][policy]) == without_numbers(content)
    for key, losses in golden["losses"].items():
        assert found["losses"][key] == pytest.approx(losses, rel=1e-3, abs=1e-4), key  # CPUs round otherwise


def without_numbers(policy):
    """A policy without the learned weights of its groups."""
    if isinstance(policy, dict):
        return {key: without_numbers(value) for key, value in policy.items() if key != "weight"}
    return policy


if __name__ == "__main__":
    torch.set_num_threads(1)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or RUNS:
        with tempfile.TemporaryDirectory() as folder:
            RUNS[name](Path(folder) / "run")
            content = kept(Path(folder) / "run")
        (GOLDEN / f"{name.replace(' ', '-')}.json").write_text(json.dumps(content, indent=1) + "\n")
