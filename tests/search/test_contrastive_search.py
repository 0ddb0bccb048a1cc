"""Searches for contrastive tasks: the same scorers, other judgements."""

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

import augtree as at
from augtree import Tree
from augtree.errors import ArgumentError
from augtree.search import Cooldown, Density, Retrain, search_tree
from augtree.tasks import Contrastive
from augtree.transforms import Cutout, DropNodes, MaskNodes, Posterize, Rotate, Space
from augtree.transforms.traits import STRONG
from support.damage import write_spec
from support.searches import INVERT, bars, context_on

DATA = bars(0, 0.5, train=64, val=128)
TASK = Contrastive(
    model="cnn", steps=60, batch_size=32, lr=0.05, device="cpu", dim=16, neighbours=9, options={"width": 8}
)
FEW = [Rotate(0.2), Posterize(1.0), INVERT, Cutout(0.2)]
OPTIONS = Retrain(spread=1, repeats=2)
TRUNK = Cooldown(looks=(0.3, 0.6), look=0.1, shortest=4, cool=0.2, renew=4)


def search(out=None, scorer=OPTIONS, task=TASK, space=FEW, data=DATA, **more):
    asked = {"depth": 1, "probabilities": (0.5, 0.75), "check": 0, "out": out, **more}
    return search_tree(data, task, space, scorer=scorer, **asked)


def shortcut(train=64, val=128):
    """Bars that stand are bright and bars that lie are dark, in training; in validation, half of each are dark."""
    rng, labels = np.random.default_rng(0), np.arange(train + val) % 2
    pictures = rng.integers(0, 60, (train + val, 8, 8))
    for picture, label in zip(pictures, labels, strict=True):
        picture[(slice(None), slice(3, 5)) if label == 0 else (slice(3, 5), slice(None))] += 180
    dark = np.concatenate([labels[:train] == 1, np.arange(val) // 2 % 2 == 1])
    pictures[dark] = 255 - pictures[dark]
    split = ["train"] * train + ["val"] * val
    return at.data.from_arrays(pictures.astype(np.uint8), labels, split=split, name="shortcut")


@pytest.mark.parametrize(("judge", "seed"), [("knn", 0), ("knn", 1), ("ridge", 0)])
def test_the_right_invariance_is_found(judge, seed):
    """Only who does not care for dark or bright has to look how the bars stand."""
    task = Contrastive(**{**vars(TASK), "judge": judge})
    assert search(seed=seed, task=task, data=shortcut()).tree[1].transform == INVERT


def test_a_label_free_search_looks_at_no_label():
    """Labels that mean nothing give the same scores, to the last digit."""
    task = Contrastive(**{**vars(TASK), "judge": "alignment-uniformity", "steps": 20})
    labels = np.random.default_rng(0).permutation(DATA.labels.numpy())
    split = ["train"] * 64 + ["val"] * 128
    other = at.data.from_arrays(DATA.samples.numpy()[:, 0], labels, split=split, name="bars")
    found = [search(data=data, task=task) for data in (DATA, other)]
    rows = [[(row["candidate"], row.get("p"), row["loss"]) for row in one.history] for one in found]
    assert rows[0] == rows[1]
    assert {name for name, _, _ in rows[0]} > {"yardstick", "Invert(0.2)"}


def test_the_contrastive_loss_finds_nothing_better_than_identity():
    """Not even Invert, which is harmless to two views that both meet it, and not to pairs of which one does."""
    task = Contrastive(**{**vars(TASK), "judge": "contrastive", "temperature": 0.1})
    found = search(scorer=Density(rule="sampled"), task=task, space=[Rotate(0.8), Cutout(0.4), Cutout(0.8), INVERT])
    assert len(found.tree) == 0
    assert all(row["gain"] < 0 for row in found.history if row["candidate"] != "yardstick")


@pytest.mark.parametrize("judge", ["alignment-uniformity", "contrastive"])
def test_density_must_draw_pairs_of_views_for_a_judge_that_compares_them(judge, monkeypatch):
    task = Contrastive(**{**vars(TASK), "judge": judge, "steps": 4})
    for views in ("both", "one"):
        found = search(scorer=Density(rule="sampled"), task=Contrastive(**{**vars(task), "views": views}))
        assert not [row for row in found.history if row.get("failed")]
    search(scorer=Density(), task=Contrastive(**{**vars(task), "views": "one"}))
    monkeypatch.setattr(
        "augtree.tasks.trainer.Trainer.train", lambda *_, **__: pytest.fail("nothing must be trained")
    )
    for rule in ("exact", "entropy"):
        with pytest.raises(
            ArgumentError, match=f"rule must be sampled .*views=one, or judge=knn or ridge.*, got '{rule}'$"
        ):
            search(scorer=Density(rule=rule), task=task)


def test_a_rule_that_the_judge_does_not_allow_gets_one_clear_line(tmp_path, monkeypatch):
    from augtree.cli import app

    monkeypatch.chdir(tmp_path)
    asked = "search digits --task contrastive --judge contrastive --scorer density --model cnn --steps 2 --device cpu"
    with pytest.raises(ArgumentError) as caught:
        CliRunner().invoke(app, asked.split(), catch_exceptions=False)
    assert str(caught.value).startswith("rule must be sampled with a judge without labels and both views drawn")
    assert "\n" not in str(caught.value)


def test_what_is_confirmed_is_drawn_as_well():
    """Every score is that of the tree as it is or with the candidate, and not of a single way through it."""
    context = context_on(
        DATA, [INVERT], (0.5,), task=Contrastive(**{**vars(TASK), "judge": "contrastive", "steps": 4})
    )
    judged, losses = [], context.trainer.losses
    context.trainer.losses = lambda state, rows, policy, seed: (
        judged.append((len(rows), policy)) or losses(state, rows, policy, seed)
    )
    tree = Tree().with_node(1, Cutout(0.2), 0.7)
    Density(rule="sampled").scorer(context).build_one_node(2, tree, None)
    both = [tree, tree.with_node(2, INVERT, 0.5)]
    assert judged == [(64, one) for one in both * 2]


def test_density_by_neighbours():
    """The model knows bright bars alone, so that Invert makes all of them dark or bright alike: a score for each."""
    found = search(scorer=Density(train=0.5))
    assert {row["candidate"] for row in found.history} >= {"yardstick", "Invert(0.2)", "Cutout(0.2)"}
    assert not [row for row in found.history if row.get("failed")]


def without_time(out):
    rows = [line.split(",") for line in (out / "history.csv").read_text().splitlines()]
    return [[cell for name, cell in zip(rows[0], row, strict=True) if name != "seconds"] for row in rows]


@pytest.mark.parametrize(
    ("scorer", "place"),
    [(TRUNK, 1), (TRUNK, 12), (OPTIONS, 3), (Density(train=0.5), 3)],
    ids=["trunk", "looks", "retrain", "density"],
)
def test_a_stopped_search_goes_on_to_the_same_bytes(scorer, place, tmp_path, cut):
    task = Contrastive(**{**vars(TASK), "steps": 20})
    whole = search(tmp_path / "whole", scorer, task, check=0.2, budget=6 if scorer == TRUNK else None)
    cut(place, "unit.recorded")
    with pytest.raises(cut.Error):
        search(tmp_path / "cut", scorer, task, check=0.2, budget=6 if scorer == TRUNK else None)
    cut(None)
    parts = at.resume(tmp_path / "cut", data=DATA)
    assert parts.tree == whole.tree
    for name in ["tree.json", *(["mixture.json", "model.safetensors"] if scorer == TRUNK else [])]:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert without_time(tmp_path / "cut") == without_time(tmp_path / "whole")
    assert parts.free == whole.free
    assert (parts.cost.forward, parts.cost.backward) == (whole.cost.forward, whole.cost.backward)


def test_graphs_by_cool_downs_are_judged_by_a_probe():
    """Rings and stars without a label in training; what is looked at is how well neighbours tell them apart."""
    graphs, labels = [], [i % 2 for i in range(96)]
    for i, label in enumerate(labels):
        nodes = 6 + i % 5
        pairs = [(0, j) if label else (j, (j + 1) % nodes) for j in range(label, nodes)]
        edges = torch.tensor(pairs + [(b, a) for a, b in pairs]).T
        graphs.append(Data(x=torch.ones(nodes, 1), edge_index=edges))
    data = at.data.from_arrays(graphs, labels, split=["train", "train", "val", "val"] * 24, name="shapes")
    task = Contrastive(
        model="gin",
        steps=20,
        batch_size=16,
        dim=8,
        neighbours=5,
        device="cpu",
        optimizer="adamw",
        options={"hidden": 8},
    )
    space = Space([DropNodes(0.1), DropNodes(0.4), MaskNodes(0.2)])
    found = search(task=task, data=data, space=space, scorer=TRUNK, budget=8)
    assert {finding["factor"] for finding in found.findings} >= {"DropNodes", STRONG}
    assert found.measures["accuracy"] > 0.9
    assert found.mixture.domain == "graph"


def test_a_run_of_an_unknown_task_is_refused(tmp_path):
    search(tmp_path / "run", Density(train=0.1))
    text = (tmp_path / "run" / "spec.json").read_text()
    write_spec(tmp_path / "run", json.loads(text.replace('"task": "contrastive"', '"task": "guessing"')))
    with pytest.raises(at.errors.RunError, match="must be one of classification, contrastive.* got 'guessing'"):
        at.resume(tmp_path / "run", data=DATA)
