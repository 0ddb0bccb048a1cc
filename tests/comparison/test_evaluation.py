import csv
import json

import numpy as np
import pytest

import augtree as at
from augtree import Tree
from augtree.comparison.evaluation import seen_by_searches
from augtree.errors import ArgumentError, DataError, RunError
from augtree.policies.named import find
from augtree.search import Density
from augtree.tasks import Classification, Contrastive
from augtree.transforms import Cutout, DropNodes
from tasks.small import blobs
from tasks.test_contrastive import graphs, task

TREE = Tree().with_node(1, DropNodes(0.2), p=0.5)
GRAPHS = graphs(80)
QUICK = task(model="gin", steps=4, options={"hidden": 8})
PICTURES = task(steps=10)


def numbers(result):
    return [(row["row"], row["seed"], row["fold"], row["accuracy"]) for row in result.rows]


def test_a_table_for_graphs():
    found = at.evaluate(GRAPHS, QUICK, {"none": None, "graphcl": "graphcl"}, seeds=2, protocol="tree-paper")
    assert [line["row"] for line in found.lines()] == ["random encoder", "none", "graphcl"]
    assert len(found.rows) == 3 * 2 * 10
    assert all(0.6 < line["mean"] <= 1 for line in found.lines())  # rings and stars
    assert found.seen == 0  # nothing here was searched for
    first = [row["accuracy"] for row in found.rows if row["row"] == "none" and row["seed"] == 0]
    second = [row["accuracy"] for row in found.rows if row["row"] == "none" and row["seed"] == 1]
    line = found.lines()[1]
    assert line["mean"] == pytest.approx((np.mean(first) + np.mean(second)) / 2)
    assert line["over_seeds"] == pytest.approx(np.std([np.mean(first), np.mean(second)], ddof=1))
    assert line["over_folds"] == pytest.approx(np.mean([np.std(first, ddof=1), np.std(second, ddof=1)]))
    assert "| random encoder |" in found.to_text()
    assert "Not as the protocol has it: " in found.notes[-1]
    assert len(list(csv.DictReader(found.to_csv().splitlines()))) == 60
    assert json.loads(found.to_json())["protocol"] == "tree-paper"


def test_pictures_and_simclr_s_chain_beside_the_tree():
    tree = Tree().with_node(1, Cutout(0.4), p=0.5)
    found = at.evaluate(blobs(), PICTURES, {"simclr": "simclr", "tree": tree}, protocol="linear", seeds=1)
    text = found.to_text()
    assert "simclr: Chain(RandomCrop, ColorDistortion, GaussianBlur p=0.5)" in text
    assert "tree: Tree(1: Cutout(0.4) p=0.5)" in text
    assert [(row["fitted"], row["tested"]) for row in found.rows] == [(48, 16)] * 3
    assert found.lines()[1]["over_folds"] is None


def test_the_encoder_is_trained_on_all_samples_without_a_label():
    """With labels that mean nothing, an encoder that had seen one of them would come out above chance."""
    one = at.evaluate(GRAPHS, QUICK, {"none": None}, seeds=1, protocol="tree-paper")
    mixed = graphs(80)
    labels = np.random.default_rng(0).permutation(mixed.labels.numpy())
    other = at.data.from_arrays(list(mixed.samples), labels, split=["train"] * 60 + ["test"] * 20)
    chance = at.evaluate(other, QUICK, {"none": None}, seeds=3, protocol="tree-paper")
    assert one.lines()[1]["mean"] > 0.75
    assert all(abs(line["mean"] - 0.5) < 0.2 for line in chance.lines())


def test_labels_that_a_search_has_seen_are_in_no_fold_of_any_row():
    data = graphs(160).few(train=20, val=20)
    count = len(data)
    found = at.evaluate(data, QUICK, {"none": None, "tree": TREE}, seeds=1, protocol="tree-paper")
    left = count - 40
    assert found.seen == 40
    assert {row["fitted"] + row["tested"] for row in found.rows} == {left}  # for none and the random encoder too
    assert f"40 of {count} samples" in found.notes[-1]
    free = at.evaluate(data, QUICK, {"none": None, "tree": TREE}, seeds=1, seen=[], protocol="tree-paper")
    assert {row["fitted"] + row["tested"] for row in free.rows} == {count}


def searched(data, out, **more):
    asked = Contrastive(**{**vars(QUICK), **more})
    at.search_tree(data, asked, [DropNodes(0.2)], depth=1, scorer=Density(train=0.5), check=0, out=out)


def test_what_a_run_has_seen(tmp_path):
    data = graphs(160)
    few = data.with_labels(20)
    searched(few, tmp_path / "few")
    searched(few, tmp_path / "free", judge="alignment-uniformity")
    rows = {name: seen_by_searches({"t": str(tmp_path / name)}, {}, few) for name in ("few", "free")}
    assert set(rows["few"]) == set(few.indices("train")) | set(few.indices("val"))
    assert len(rows["free"]) == 0
    of_file = seen_by_searches({"t": str(tmp_path / "few" / "tree.json")}, {}, few)
    assert np.array_equal(of_file, rows["few"])
    with pytest.raises(RunError, match="say which labels it has seen"):
        seen_by_searches({"t": str(tmp_path / "few")}, {}, data)


def test_free_policies_have_seen_nothing():
    for name in ("none", "graphcl"):
        assert len(seen_by_searches({"p": find(name)}, {"p": find(name)}, GRAPHS)) == 0
    assert len(seen_by_searches({"p": TREE}, {"p": TREE}, GRAPHS)) == 60


def test_pretrained_features_have_a_row_of_their_own(tmp_path):
    at.train(blobs(), Classification(model="cnn", steps=3, batch_size=16, device="cpu", options={"width": 4}),
             out=tmp_path / "t")  # fmt: skip
    options = {"width": 4, "weights": str(tmp_path / "t" / "model.safetensors")}
    found = at.evaluate(blobs(), task(options=options), {"none": None}, protocol="svm", seeds=1)
    assert [line["row"] for line in found.lines()] == ["random encoder", "pretrained features", "none"]


def test_an_evaluation_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    asked = {"policies": {"none": None, "graphcl": "graphcl"}, "seeds": 1, "protocol": "tree-paper"}
    whole = at.evaluate(GRAPHS, QUICK, **asked)
    with monkeypatch.context() as patch:
        patch.setattr("augtree.runs.faults.point", stop_at(2))
        with pytest.raises(KeyboardInterrupt):
            at.evaluate(GRAPHS, QUICK, **asked, out=tmp_path / "run")
    found = at.resume(tmp_path / "run", data=GRAPHS)
    assert numbers(found) == numbers(whole)
    assert (tmp_path / "run" / "evaluation.csv").read_text() == whole.to_csv()


def stop_at(count):
    passed = []

    def point(name):
        passed.append(name)
        if passed.count("unit.recorded") == count:
            raise KeyboardInterrupt

    return point


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"task": Classification(device="cpu")}, ArgumentError, "must be a contrastive one"),
        ({"protocol": "mine"}, ArgumentError, "protocol must be one of"),
        ({"policies": {}}, ArgumentError, "policies must be a policy"),
        ({"policies": {"random encoder": None}}, ArgumentError, "none of ours"),
        ({"policies": {"a": "simclr"}}, ArgumentError, "must work on graphs"),
        ({"seen": [99]}, ArgumentError, "seen must be rows from 0 to 79"),
        ({"seen": [0.5]}, ArgumentError, "seen must be a list of rows"),
        ({"seen": np.arange(79)}, DataError, "10 folds need"),
    ],
)
def test_bad_arguments_train_nothing(changes, error, message, tmp_path):
    asked = {"task": QUICK, "policies": {"none": None}, "out": tmp_path / "run", **changes}
    with pytest.raises(error, match=message):
        at.evaluate(GRAPHS, **asked)
    assert not (tmp_path / "run").exists()
