import csv
import importlib
import json
from dataclasses import replace

import numpy as np
import pytest

import augtree as at
from augtree import Forest, Tree
from augtree.comparison import Longer, Searched, Soup
from augtree.errors import ArgumentError, DataError, TaskError
from augtree.evaluation.leakage import known_to_policies
from augtree.evaluation.protocols import find_protocol, folds_of, judge_fold
from augtree.policies.presets import find
from augtree.runs.events import Planned, RowTrained
from augtree.tasks import Classification
from augtree.transforms import Cutout, DropNodes, wrap
from support.blobs import blobs
from support.contrastive import graphs, task

TREE = Tree().with_node(1, DropNodes(0.2), p=0.5)
GRAPHS = graphs(80)
QUICK = task(model="gin", steps=4, options={"hidden": 8})
PICTURES = task(steps=10)
NONE = np.zeros(0, np.int64)
EVALUATE = importlib.import_module("augtree.evaluation.evaluate")  # beside the function of that name


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
    told = f"{left} of {count} samples are in folds, 40 whose labels a search has seen are in none"
    assert told in found.notes[-1]
    free = at.evaluate(data, QUICK, {"none": None, "tree": TREE}, seeds=1, known_labels=[], protocol="tree-paper")
    assert {row["fitted"] + row["tested"] for row in free.rows} == {count}


# ---- which encoder, which samples


@pytest.fixture
def asked_of_classifiers(monkeypatch):
    """What the classifiers are given, in their order."""
    calls = []

    def recorded(protocol, train, test, workers):
        calls.append((*train, *test))
        return judge_fold(protocol, train, test, workers)

    monkeypatch.setattr(EVALUATE, "judge_fold", recorded)
    return calls


def features(trainer, state):
    return trainer.features(state, np.arange(len(trainer.data))).double().cpu().numpy()


def expected(encoders, protocol, data, seen=NONE):
    """What they should be given: a table's rows with the folds of its seed."""
    labels, how = data.labels.numpy(), find_protocol(protocol)
    for seed, found in encoders:
        for train, test in folds_of(how, data, seen, seed):
            yield found[train], labels[train], found[test], labels[test]


def check_same(calls, wanted):
    for call, each in zip(calls, wanted, strict=True):
        for got, should in zip(call, each, strict=True):
            assert np.array_equal(got, should)


def test_a_classifier_is_fitted_to_its_training_folds_alone(asked_of_classifiers):
    seen, quick = np.arange(0, 80, 4), task(model="gin", steps=2, options={"hidden": 4})
    at.evaluate(GRAPHS, quick, {"tree": TREE}, seeds=2, protocol="tree-paper", known_labels=seen)
    trainer = replace(quick, samples="all").prepare(GRAPHS)
    assert len(trainer.rows) == 80
    by_hand = []
    for seed in (0, 1):
        by_hand += [
            (seed, features(trainer, trainer.fresh(seed))),
            (seed, features(trainer, trainer.fit(TREE, seed))),
        ]
    check_same(asked_of_classifiers, list(expected(by_hand, "tree-paper", GRAPHS, seen)))


def test_random_and_pretrained_encoders_are_what_they_are_called(tmp_path, asked_of_classifiers):
    teacher = Classification(model="cnn", steps=3, batch_size=16, device="cpu", options={"width": 4})
    at.train(blobs(), teacher, out=tmp_path / "t")
    weights = str(tmp_path / "t" / "model.safetensors")
    with_weights = task(options={"width": 4, "weights": weights})
    found = at.evaluate(blobs(), with_weights, {"none": None}, protocol="svm", seeds=2)
    random, pretrained = task().prepare(blobs()), with_weights.prepare(blobs())
    by_hand = []
    for seed in (0, 1):
        by_hand += [(seed, features(trainer, trainer.fresh(seed))) for trainer in (random, pretrained)]
        by_hand.append((seed, features(pretrained, pretrained.fit(find("none"), seed))))
    check_same(asked_of_classifiers, list(expected(by_hand, "svm", blobs())))
    assert [f"{weights} was trained with labels (classification)" in note for note in found.notes].count(True) == 1
    at.train(blobs(), task(steps=3), out=tmp_path / "c")
    assert not any("trained with labels" in note for note in evaluated_with(tmp_path / "c").notes)
    (tmp_path / "c" / "training.json").write_text("[]")
    assert not any("trained with labels" in note for note in evaluated_with(tmp_path / "c").notes)


def evaluated_with(folder):
    options = {"width": 4, "weights": str(folder / "model.safetensors")}
    return at.evaluate(blobs(), task(steps=1, options=options), {"none": None}, protocol="linear", seeds=1)


# ---- forests


def test_a_forest_s_weights_are_learned_in_every_training(tmp_path, asked_of_classifiers):
    data = at.data.group(GRAPHS, "size:2")
    forest = Forest({"size0": (TREE, 0.5), "size1": (Tree(), 0.5)})
    way = at.Weighted(forest, at.Weighting(alpha=1, eta=2.0))
    found = at.evaluate(data, QUICK, {"f": way, "even": forest}, seeds=1, known_labels=[], protocol="tree-paper",
                        out=tmp_path / "run")  # fmt: skip
    assert found.policies["f"].endswith("with learned weights")
    trainer = replace(QUICK, samples="all").prepare(data)
    at_end = way.fit(trainer, 0)
    assert at_end.w[0] != 0.5
    states = [trainer.fresh(0), at_end.theta, trainer.fit(forest, 0)]
    check_same(asked_of_classifiers, list(expected([(0, features(trainer, s)) for s in states], "tree-paper", data)))
    (tmp_path / "run" / "evaluation.json").unlink()
    again = at.resume(tmp_path / "run", data=data, workers=2)
    assert again.to_json() == found.to_json()


def test_the_run_of_a_forest_stands_for_how_it_trained(tmp_path, asked_of_classifiers):
    data = at.data.group(GRAPHS, "size:2")
    trees = {"size0": TREE, "size1": Tree()}
    at.fit_forest(data, QUICK, trees, alpha=1, eta=2.0, plain=False, out=tmp_path / "f")
    at.evaluate(data, QUICK, {"f": tmp_path / "f"}, seeds=1, known_labels=[], protocol="tree-paper")
    trainer = replace(QUICK, samples="all").prepare(data)
    way = at.Weighted(Forest({name: (tree, 0.5) for name, tree in trees.items()}), at.Weighting(alpha=1, eta=2.0))
    states = [trainer.fresh(0), way.fit(trainer, 0).theta]
    check_same(asked_of_classifiers, list(expected([(0, features(trainer, s)) for s in states], "tree-paper", data)))
    assert known_to_policies({"f": tmp_path / "f"}, {}, data).tolist() == list(range(20, 80))


@pytest.mark.parametrize("wrapped", [at.Weighted, lambda forest: forest])
def test_a_forest_of_other_groups_says_how_to_make_them(wrapped):
    forest = wrapped(Forest({"size0": (TREE, 1.0)}))
    with pytest.raises(
        ArgumentError, match=r"policies/f must be of the groups of the data, which groups=\.\.\. \(--g"
    ):
        at.evaluate(at.data.group(GRAPHS, "size:2"), QUICK, {"f": forest}, seeds=1)
    pictures = wrapped(Forest({"size0": (Tree().with_node(1, Cutout(0.4)), 1.0)}))
    with pytest.raises(ArgumentError, match="policies/f must work on graphs"):
        at.evaluate(GRAPHS, QUICK, {"f": pictures}, seeds=1)


# ---- events


def test_an_evaluation_reports_its_plan_and_each_encoder():
    events = []
    asked = {"fog": FOG, "none": None}
    found = at.evaluate(blobs(), task(steps=2), asked, protocol="linear", seeds=[3, 4], watch=events.append)
    began, plan, *trained, finished = events
    assert (began.spec["kind"], finished.text) == ("evaluate", found.to_text())
    assert plan == Planned(notes=found.notes[:-1], lines=["6 trainings."], trainings=6)  # fog's failure is later
    assert [(event.policy, event.seed) for event in trained] == [
        (name, seed) for seed in (3, 4) for name in ("random encoder", "fog", "none")
    ]
    accuracies = {(row["row"], row["seed"]): row["accuracy"] for row in found.rows if "accuracy" in row}
    for event in trained:
        assert isinstance(event, RowTrained)
        if event.policy == "fog":
            assert (event.figures, event.failed.startswith("TransformError: ")) == ({}, True)
        else:
            assert event == RowTrained(event.policy, event.seed, {"accuracy": accuracies[event.policy, event.seed]})


# ---- what goes wrong


def fog(picture):
    raise ValueError("no such\npicture")


FOG = Tree().with_node(1, wrap(fog, name="Fog"))


def test_a_policy_that_raises_is_marked_and_the_others_go_on(tmp_path):
    asked = {"fog": FOG, "none": None}
    found = at.evaluate(blobs(), task(), asked, protocol="linear", seeds=2, known_labels=[], out=tmp_path)
    random, fog_line, none = found.lines()
    assert (fog_line["mean"], fog_line["seeds"], fog_line["failed"]) == (None, 0, 2)
    assert (none["seeds"], none["failed"], random["failed"]) == (2, 0, 0)
    alone = at.evaluate(blobs(), task(), {"none": None}, protocol="linear", seeds=2, known_labels=[])
    assert none == alone.lines()[1]
    assert "| fog            | failed " in found.to_text()
    assert found.notes[-1].startswith("fog failed with seed 0, 1: TransformError: ")
    assert "no such picture" in found.notes[-1]
    assert [row["failed"] for row in csv.DictReader(found.to_csv().splitlines())].count("") == 4
    assert (tmp_path / "evaluation.json").read_text() == found.to_json()


def test_where_every_row_fails_that_is_an_error(tmp_path, monkeypatch):
    def broken(*_):
        raise ValueError("no folds today")

    monkeypatch.setattr(EVALUATE, "judge_fold", broken)
    with pytest.raises(TaskError, match="every row of the table failed, the first with: ValueError: no folds today"):
        at.evaluate(blobs(), task(), {"none": None}, protocol="linear", seeds=1, out=tmp_path)
    assert (tmp_path / "evaluation.csv").read_text().count("ValueError") == 2


def test_the_protocol_follows_from_the_samples():
    graph = at.evaluate(GRAPHS, QUICK, {"none": None}, seeds=1)
    picture = at.evaluate(blobs(), task(steps=1), {"none": None}, seeds=1)
    assert (graph.protocol, picture.protocol) == ("graphcl", "linear")
    with pytest.raises(
        ArgumentError, match="protocol must be one of linear, svm for images, which the model gin does"
    ):
        at.evaluate(blobs(), None, {"none": None}, protocol="graphcl", seeds=1)
    own = at.evaluate(blobs(), task(steps=1), {"none": None}, protocol="tree-paper", seeds=1)
    assert "model=cnn" in own.notes[-1]


def test_what_is_left_out_is_counted_as_it_is():
    data = graphs(160).with_labels(40)
    how = {"seeds": 1, "protocol": "tree-paper", "known_labels": data.indices("train")}
    found = at.evaluate(data, QUICK, {"tree": TREE}, **how)
    told = "80 of 160 samples are in folds, 40 whose labels a search has seen and 40 unlabelled are in none"
    assert told in found.notes[-1]
    assert found.seen == 40
    assert {row["fitted"] + row["tested"] for row in found.rows} == {80}
    how = {"seeds": 1, "protocol": "linear", "known_labels": np.arange(70)}
    pictures = at.evaluate(blobs(), task(steps=1), {"none": None}, **how)
    assert pictures.seen == 6  # classifiers are fitted to the training samples, seen or not
    assert "; 6 of 16 test samples, whose labels a search has seen, are left out" in pictures.notes[-1]


def test_contrastive_learning_is_never_compared_on_train_and_val():
    with pytest.raises(ArgumentError, match="train_on must be train for a contrastive task"):
        at.compare(blobs(), task(), {"none": None}, seeds=1, train_on="train+val")


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
    with monkeypatch.context() as patch:
        asked_workers = []
        patch.setattr(EVALUATE, "judge_fold", lambda *a: asked_workers.append(a[3]) or judge_fold(*a))
        found = at.resume(tmp_path / "run", data=GRAPHS, workers=2)
    assert asked_workers == [2] * 10  # the last row's folds
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
        ({"policies": {"random encoder": None}}, ArgumentError, "other than random encoder and pretrained features"),
        ({"policies": {"a": "simclr"}}, ArgumentError, "must work on graphs"),
        ({"known_labels": [99]}, ArgumentError, "known_labels must be rows from 0 to 79"),
        ({"known_labels": [0.5]}, ArgumentError, "known_labels must be a list of rows"),
        ({"known_labels": np.arange(79)}, DataError, "10 folds need"),
    ],
)
def test_bad_arguments_train_nothing(changes, error, message, tmp_path):
    asked = {"task": QUICK, "policies": {"none": None}, "out": tmp_path / "run", **changes}
    with pytest.raises(error, match=message):
        at.evaluate(GRAPHS, **asked)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("control", [Longer(2), Soup(2), Searched(at.spaces.graphs())])
def test_controls_are_for_compare(control):
    with pytest.raises(ArgumentError, match=r"policies/a must be a policy, .*: controls are for compare"):
        at.evaluate(GRAPHS, QUICK, {"none": None, "a": control}, seeds=1, protocol="tree-paper")


def test_policies_that_are_asked_for_without_a_name():
    rows = [line["row"] for line in at.evaluate(GRAPHS, QUICK, TREE, seeds=1, protocol="tree-paper").lines()]
    assert rows == ["random encoder", "policy"]
    rows = [line["row"] for line in at.evaluate(GRAPHS, QUICK, "graphcl", seeds=1, protocol="tree-paper").lines()]
    assert rows == ["random encoder", "graphcl"]
    rows = [line["row"] for line in at.evaluate(GRAPHS, QUICK, seeds=1, protocol="tree-paper").lines()]
    assert rows == ["random encoder", "none", "graphcl"]
