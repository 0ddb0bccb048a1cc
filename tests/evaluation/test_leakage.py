"""Which labels have played a part in finding a policy."""

import json
from dataclasses import replace

import numpy as np
import pytest

import augtree as at
from augtree import Tree
from augtree.baselines.lisa import Lisa
from augtree.baselines.scale import Scale
from augtree.errors import ArgumentError, DataError, RunError
from augtree.evaluation.leakage import (
    find_known_labels,
    known_to_policies,
    known_to_run,
    known_to_runs,
    labelled_training,
    note_of_label_readers,
    note_of_optimistic_rows,
    run_of,
    with_all_labels,
)
from augtree.evaluation.protocols import PROTOCOLS, find_protocol
from augtree.policies.presets import find
from augtree.search import Density
from augtree.tasks import Classification, Contrastive
from augtree.transforms import Cutout, DropNodes
from support.blobs import blobs
from support.contrastive import graphs, task

TREE = Tree().with_node(1, DropNodes(0.2), p=0.5)
GRAPHS = graphs(80)
QUICK = task(model="gin", steps=4, options={"hidden": 8})


def searched(data, out, **more):
    asked = Contrastive(**{**vars(QUICK), **more})
    at.search_tree(data, asked, [DropNodes(0.2)], depth=1, scorer=Density(train=0.5), check=0, out=out)


def test_the_policy_of_a_training_counts_as_a_file(tmp_path):
    """Its run tells what a model was trained on, not how its policy was found."""
    data, mine = blobs(), Tree().with_node(1, Cutout(0.4))
    at.train(blobs(train=50), Classification(model="cnn", steps=2, batch_size=16, device="cpu"), mine, out=tmp_path)
    for policy in (tmp_path, tmp_path / "policy.json"):
        assert run_of(policy) is None
        known = known_to_policies({"t": policy}, {"t": mine}, data)
        assert known.tolist() == sorted([*data.indices("train"), *data.indices("val")])


def test_what_a_run_has_seen(tmp_path):
    data = graphs(160)
    few = data.with_labels(20)
    searched(few, tmp_path / "few")
    searched(few, tmp_path / "free", judge="alignment-uniformity", views="one")
    rows = {name: known_to_policies({"t": str(tmp_path / name)}, {}, few) for name in ("few", "free")}
    assert set(rows["few"]) == set(few.indices("train")) | set(few.indices("val"))
    assert len(rows["free"]) == 0
    of_file = known_to_policies({"t": str(tmp_path / "few" / "tree.json")}, {}, few)
    assert np.array_equal(of_file, rows["few"])
    with pytest.raises(RunError, match="say which labels it has used"):
        known_to_policies({"t": str(tmp_path / "few")}, {}, data)


def test_free_policies_have_seen_nothing():
    for name in ("none", "graphcl"):
        assert len(known_to_policies({"p": find(name)}, {"p": find(name)}, GRAPHS)) == 0
    assert len(known_to_policies({"p": TREE}, {"p": TREE}, GRAPHS)) == 60


def a_run(folder, data, kind="search", judge="knn"):
    """The folder of a run, as far as it says what labels were read."""
    folder.mkdir()
    about = {"name": data.name, "source": data.source and dict(data.source), "fingerprint": data.fingerprint}
    spec = {"version": 1, "kind": kind, "data": about, "task": replace(QUICK, judge=judge).spec()}
    (folder / "spec.json").write_text(json.dumps(spec))
    at.save(TREE, folder / "tree.json")
    return folder


def test_rows_of_a_run_are_known_only_where_the_samples_are_the_same(tmp_path):
    few = {"train": 60, "val": 20}
    searched = at.data.load("digits", **few, labels=30)
    folder = a_run(tmp_path / "run", searched)
    whole = at.data.load("digits", **few)
    rows = known_to_run(folder, whole)
    assert len(rows) == 50
    assert set(rows) == {*searched.indices("train"), *searched.indices("val")}
    others = at.data.load("digits", **few, seed=1)
    assert len(others) == len(searched)
    turned = whole.take(np.arange(len(whole))[::-1])
    relabelled = replace(whole, labels=whole.labels.roll(1))
    for data in (others, turned, relabelled, whole.take(np.arange(50))):
        with pytest.raises(DataError, match="not the same in the same order.*known_labels=rows"):
            known_to_run(folder, data)


def test_a_label_free_judge_is_trusted_only_where_the_run_itself_searched(tmp_path):
    for kind, count in (("search", 0), ("forest", 0), ("fit", 60)):
        assert len(known_to_run(a_run(tmp_path / kind, GRAPHS, kind, "alignment-uniformity"), GRAPHS)) == count


def test_runs_whose_labels_are_judged_by_are_named(tmp_path):
    one = a_run(tmp_path / "one", GRAPHS)
    given = ["graphcl", str(one), a_run(tmp_path / "free", GRAPHS, judge="contrastive"), one / "tree.json", TREE]
    (note,) = note_of_optimistic_rows(given, find_protocol("graphcl"), GRAPHS)
    assert note.startswith(f"{one} were made with labels that this judges by")
    assert note_of_optimistic_rows(given, find_protocol("linear"), GRAPHS) == []  # a search sees no test sample
    strange = a_run(tmp_path / "strange", graphs(40))
    assert str(strange) in note_of_optimistic_rows([strange], find_protocol("linear"), GRAPHS)[0]


def test_names_are_no_paths(tmp_path, monkeypatch):
    a_run(tmp_path / "none", GRAPHS, "fit")
    (tmp_path / "spec.json").write_text((tmp_path / "none" / "spec.json").read_text())
    monkeypatch.chdir(tmp_path)
    assert run_of("none") is None
    assert run_of("GraphCL") is None
    assert run_of("tree.json") is not None
    found = at.evaluate(GRAPHS, QUICK, {"n": "none"}, seeds=1, protocol="tree-paper")
    assert (found.seen, found.policies) == (0, {"n": "Identity"})


def test_weights_from_weights_from_labels(tmp_path):
    """As long as the chain of contrastive trainings is, and without end where it goes round."""
    for name, kind, before in [("a", "classification", None), ("b", "contrastive", "a"), ("c", "contrastive", "b")]:
        (tmp_path / name).mkdir()
        options = {} if before is None else {"weights": str(tmp_path / before / "model.safetensors")}
        (tmp_path / name / "training.json").write_text(json.dumps({"task": {"task": kind, "options": options}}))

    def found(name):
        return labelled_training({"weights": tmp_path / name / "model.safetensors"})

    assert [found(name) for name in "abc"] == ["classification"] * 3
    options = {"weights": str(tmp_path / "c" / "model.safetensors")}
    (tmp_path / "b" / "training.json").write_text(json.dumps({"task": {"task": "contrastive", "options": options}}))
    assert [found(name) for name in "bc"] == [None, None]
    assert labelled_training({}) is None


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Label-free searches on few labels, begun with weights that were trained with all labels, and without any."""
    place, data = tmp_path_factory.mktemp("begun"), blobs(train=100, val=40, test=40)
    few = data.with_labels(20)
    width = {"width": 4}
    at.train(
        data, Classification(model="cnn", steps=3, batch_size=16, device="cpu", options=width), out=place / "with"
    )
    at.train(data, task(steps=3), out=place / "without")
    for name in ("with", "without"):
        asked = task(
            steps=3,
            judge="alignment-uniformity",
            views="one",
            options={**width, "weights": str(place / name / "model.safetensors")},
        )
        out = place / f"search {name}"
        at.search_tree(few, asked, [Cutout(0.4)], depth=1, scorer=Density(train=0.5), check=0, out=out)
    return place, few


def test_a_search_that_began_with_weights_from_labels_is_not_label_free(begun):
    place, few = begun
    found = {name: known_to_policies({"t": str(place / f"search {name}")}, {}, few) for name in ("with", "without")}
    assert np.array_equal(found["with"], np.setdiff1d(np.arange(len(few)), few.indices("test")))
    assert len(found["without"]) == 0
    (place / "with" / "training.json").rename(place / "with" / "hidden.json")
    assert len(known_to_policies({"t": str(place / "search with")}, {}, few)) == 0  # nobody tells
    (place / "with" / "hidden.json").rename(place / "with" / "training.json")


def test_that_a_search_began_with_weights_from_labels_is_told(begun, tmp_path):
    place, few = begun
    asked = {"seeds": 1, "protocol": "tree-paper"}
    run = place / "search with"
    found = at.evaluate(few, task(steps=1), {"t": str(run), "none": None}, **asked, out=tmp_path / "e")
    weights = place / "with" / "model.safetensors"
    told = f"{run} began with {weights}, which was trained with labels (classification): all but its test samples"
    assert [note for note in found.notes if told in note] == [f"{told} count as seen."]
    assert {row["fitted"] + row["tested"] for row in found.rows} == {40}
    assert at.resume(tmp_path / "e", data=few).notes == found.notes
    for name, known in (("without", "auto"), ("with", [])):
        other = at.evaluate(few, task(steps=1), {"t": str(place / f"search {name}")}, known_labels=known, **asked)
        assert not any("count as seen" in note for note in other.notes)


# ---- the samples that `known_labels` means


@pytest.fixture
def few_and_other(tmp_path):
    """Two runs, each on 20 labels, and the data with all labels."""
    source = {"train": 60, "val": 20}
    data = at.data.load("digits", **source)
    made = {name: at.data.load("digits", **source, labels=count) for name, count in (("few", 20), ("more", 30))}
    return {name: a_run(tmp_path / name, part) for name, part in made.items()}, made, data


def meaning(known_labels, given, data, protocol="graphcl"):
    """Rows and notes, for policies of which none is free."""
    methods = {name: find(policy) if policy == "none" else TREE for name, policy in given.items()}
    found = find_known_labels(known_labels, given, methods, data, find_protocol(protocol))
    return set(found.rows), list(found.notes)


def of(data):
    return {*data.indices("train"), *data.indices("val")}


def test_without_a_word_the_runs_among_the_policies_say_it(few_and_other):
    runs, made, data = few_and_other
    assert meaning("auto", {"t": runs["few"]}, data) == (of(made["few"]), [])
    assert meaning("auto", {"t": runs["few"], "n": "none"}, data)[0] == of(made["few"])
    assert meaning("auto", {"n": "none"}, data)[0] == set()
    assert meaning("auto", {"t": TREE}, data)[0] == of(data)  # found nobody knows where
    both = of(made["few"]) | of(made["more"])
    assert meaning("auto", {"a": runs["few"], "b": runs["more"]}, data)[0] == both
    assert set(known_to_runs(runs.values(), data)) == both


def test_none_leaves_nothing_out_and_names_the_runs_that_this_flatters(few_and_other):
    runs, _, data = few_and_other
    rows, (note,) = meaning("none", {"t": runs["few"], "n": "none"}, data)
    assert rows == set()
    assert note == f"{runs['few']} were made with labels that this judges by: their rows are optimistic."
    assert meaning("none", {"t": TREE, "n": "none"}, data) == (set(), [])
    assert meaning("none", {"t": runs["few"]}, data, "linear") == (set(), [])  # judged on test samples


def test_none_names_the_methods_whose_encoders_are_trained_with_labels_that_this_judges_by():
    data, given = at.data.load("digits", train=60, val=20), {"l": "lisa", "s": "scale", "n": "none"}
    methods = {"l": Lisa(), "s": Scale(), "n": find("none")}
    assert set(known_to_policies(given, methods, data)) == of(data)
    assert known_to_policies({"s": "scale"}, methods, data).tolist() == []
    told = {name: find_known_labels("none", given, methods, data, find_protocol(name)).notes for name in PROTOCOLS}
    assert told.pop("graphcl") == told.pop("tree-paper")
    assert told == {"linear": [], "svm": []}  # judged on test samples
    (note,) = find_known_labels("none", given, methods, data, find_protocol("graphcl")).notes
    assert note == "l were made with labels that this judges by: their rows are optimistic."
    assert note_of_label_readers(methods) == [
        "l: trained with the labels of the training samples, unlike other rows."
    ]
    assert note_of_label_readers({"s": Scale(), "n": find("none")}) == []


def test_train_and_val_and_a_folder_are_beside_what_the_runs_used(few_and_other):
    runs, made, data = few_and_other
    assert meaning("train+val", {"n": "none"}, data) == (of(data), [])
    assert meaning("train+val", {"t": runs["few"]}, data) == (of(data) | of(made["few"]), [])
    both = of(made["few"]) | of(made["more"])
    for folder in (runs["more"], str(runs["more"])):
        assert meaning(folder, {"t": runs["few"]}, data) == (both, [])
        assert meaning(folder, {"t": TREE}, data) == (of(made["more"]), [])  # the tree's own are not asked for


def test_rows_are_those_alone(few_and_other):
    runs, _, data = few_and_other
    for rows in ([3, 1, 3], np.array([1, 3]), (1, 3)):
        assert meaning(rows, {"t": runs["few"]}, data) == ({1, 3}, [])
    assert meaning([], {"t": runs["few"]}, data) == (set(), [])


def test_a_text_that_names_no_samples_is_refused_before_anything_is_trained(tmp_path):
    (tmp_path / "empty").mkdir()
    for text in ("some", str(tmp_path / "empty"), tmp_path / "empty"):
        rule = r"known_labels must be auto, none, train\+val or the folder of a search, got "
        with pytest.raises(ArgumentError, match=rule):
            at.evaluate(GRAPHS, QUICK, {"none": None}, seeds=1, known_labels=text, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("known_labels", ["none", "train+val", "folder"])
def test_an_evaluation_leaves_out_what_is_said_and_goes_on_so(tmp_path, known_labels):
    data = graphs(160).few(train=20, val=20)
    run = a_run(tmp_path / "run", data)
    known = run if known_labels == "folder" else known_labels
    found = at.evaluate(data, task(model="gin", steps=1, options={"hidden": 4}), {"t": run}, seeds=1,
                        protocol="tree-paper", known_labels=known, out=tmp_path / "e")  # fmt: skip
    left = 0 if known_labels == "none" else 40
    assert found.seen == left
    assert {row["fitted"] + row["tested"] for row in found.rows} == {len(data) - left}
    assert [f"{run} were made" in note for note in found.notes].count(True) == (known_labels == "none")
    again = at.resume(tmp_path / "e", data=data)
    assert (again.seen, again.notes) == (found.seen, found.notes)


# ---- all labels


def test_a_run_on_few_labels_is_judged_by_the_folds_of_all():
    whole = at.data.load("digits", train=60, val=20)
    few = at.data.load("digits", train=60, val=20, labels=30)
    found = with_all_labels(few)
    assert found.fingerprint == whole.fingerprint
    assert found.source == whole.source
    assert with_all_labels(whole) is whole
    assert with_all_labels(GRAPHS) is GRAPHS  # from arrays: nobody can read it again


def test_all_labels_are_in_the_groups_as_they_were_before_they_were_merged():
    few = at.data.load("digits", train=60, val=20, labels=30)
    merged = replace(few, source={**few.source, "merge": "nearest"})
    assert "merge" not in with_all_labels(merged).source
