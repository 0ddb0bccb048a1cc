"""Forests as runs: what they give, what they keep, and that they can be stopped anywhere."""

import csv
import dataclasses
import json
import shutil
from itertools import cycle

import numpy as np
import pytest
import torch

import augtree as at
from augtree.errors import ArgumentError, DataError, OtherRunError
from augtree.forests import fit_forest, search_forest
from augtree.forests.group_trees import GroupStarted, group_alone
from augtree.runs.events import Planned, Stepped, Working
from augtree.runs.store import Run
from augtree.search import Density
from augtree.transforms import Cutout, Invert, Rotate
from support.two_groups import linear, normed, task, two_groups

SPACE = [Invert(0.2), Cutout(0.6), Rotate(0.4)]
QUICK = Density(train=0.3, sure=0)
DATA = two_groups(sizes=(60, 40))
DARK = dataclasses.replace(DATA, samples=DATA.samples.clone())
"""With the validation pictures of group a inverted: a model of bright ones does better where they are turned back."""
DARK.samples[DATA.indices("val", "a")] = 255 - DATA.samples[DATA.indices("val", "a")]
TASK = task(steps=40)
TREES = {"a": at.Tree().with_node(1, Cutout(0.6), p=0.5), "b": at.Tree()}
HOW = {
    "depth": 2,
    "scorer": QUICK,
    "probabilities": (0.5, 1.0),
    "check": 0,
    "alpha": 8,
    "eta": 0.3,
    "method": "paper",
}
pytestmark = pytest.mark.usefixtures("quick_disk")


def kept(folder):
    """What must be the same to the byte, but for times."""
    out = {
        name: (folder / name).read_bytes()
        for name in ("forest.json", "model.safetensors", "weights.csv", "groups.csv")
    }
    result = json.loads((folder / "result.json").read_text())
    del result["cost"]
    return out | {"result": result}


def fitted(out=None, **more):
    return fit_forest(DATA, TASK, TREES, out=out, **{"alpha": 8, "eta": 0.3, "plain": True, **more})


# ---- fit_forest


def test_a_forest_with_its_model_and_tables(tmp_path):
    found = fitted(tmp_path / "f")
    assert found.forest["a"].tree == TREES["a"]
    assert sum(found.weights.values()) == pytest.approx(1)
    assert found.weights["a"] == found.forest["a"].weight
    assert len(found.history) == 4  # 40 steps in rounds of 8, the last without an update
    assert [row["step"] for row in found.history] == [8, 16, 24, 32]
    assert found.history[-1]["w"] == found.weights
    assert at.load(tmp_path / "f" / "forest.json") == found.forest
    counts = {group: int(m["samples"]) for group, m in found.measures["test"].items()}
    assert counts == {"all": 800, "a": 400, "b": 400}
    by_hand = np.mean([found.measures["test"][g]["accuracy"] for g in "ab"])  # groups of one size
    assert found.average() == pytest.approx(by_hand)
    assert found.worst()[1] == min(found.measures["test"][g]["accuracy"] for g in "ab")
    w = np.array(list(found.weights.values()))
    assert found.effective_size == pytest.approx(1 / np.sum(w**2 / np.array([60, 40])))
    rows = list(csv.DictReader((tmp_path / "f" / "weights.csv").read_text().splitlines()))
    assert [float(row["w a"]) for row in rows] == [row["w"]["a"] for row in found.history]
    assert found.similarity["with"]["a"]["b"] == found.similarity["with"]["b"]["a"] > 0
    assert found.similarity["average_without"] == found.similarity["without"]["a"]["b"]
    assert "without augmentation and weights" in found.verdict()
    assert "| a " in found.to_text()


def test_the_model_is_the_one_that_was_measured(tmp_path):
    found = fitted(tmp_path / "f")
    from safetensors.torch import load_file

    rows = DATA.indices("test")
    x = DATA.samples[torch.from_numpy(rows)].float() / 255
    model = linear()
    model.load_state_dict(load_file(tmp_path / "f" / "model.safetensors"))
    mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (found.mean, found.std))
    said = model((x - mean) / std).argmax(1)
    accuracy = float((said == DATA.labels[torch.from_numpy(rows)]).float().mean())
    assert accuracy == pytest.approx(found.average())


def test_without_the_plain_model():
    found = fitted(plain=False)
    assert found.plain == {}
    assert found.similarity == {}
    assert found.out is None
    assert "without" not in found.verdict()


def test_trees_from_files_and_none_at_all(tmp_path):
    TREES["a"].save(tmp_path / "a.json")
    TREES["b"].save(tmp_path / "b.json")
    files = fit_forest(DATA, TASK, {g: tmp_path / f"{g}.json" for g in "ab"}, plain=False, alpha=8)
    assert files.forest == fit_forest(DATA, TASK, TREES, plain=False, alpha=8).forest
    assert len(fit_forest(DATA, TASK, plain=False, eta=0).forest["a"].tree) == 0


@pytest.mark.parametrize(
    ("trees", "message"),
    [
        ({"a": at.Tree()}, r"trees must have one for each group of the data \(a, b\) and no other, got 'b missing'"),
        ({**TREES, "c": at.Tree()}, "got 'c beside them'"),
        ({**TREES, "b": Invert(0.2)}, "trees/b must be a tree or the file of one"),
        ([at.Tree()], "trees must map each group to its tree"),
    ],
)
def test_wrong_trees(trees, message):
    with pytest.raises(ArgumentError, match=message):
        fit_forest(DATA, TASK, trees)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha must be a whole number from 1"),
        ({"target": "best"}, "target must be one of average, worst"),
        ({"solver": "lu"}, "solver must be one of cg, series"),
        ({"step": 3}, "step must be one of alpha, eta"),
        ({"eta": float("nan")}, "eta must be a number"),
    ],
)
def test_wrong_options(options, message, tmp_path):
    with pytest.raises(ArgumentError, match=message):
        fit_forest(DATA, TASK, TREES, out=tmp_path / "f", **options)
    assert not (tmp_path / "f").exists()


def test_a_group_without_validation_samples_is_told_before_anything_runs():
    rows = np.concatenate([DATA.indices("train"), DATA.indices("val", "a"), DATA.indices("test")])
    with pytest.raises(DataError, match="group b has 0 validation samples of at least 1"):
        fit_forest(DATA.take(rows), TASK, TREES)
    with pytest.raises(DataError, match="group b has 0 validation samples of at least 8"):
        search_forest(DATA.take(rows), TASK, SPACE)
    assert fit_forest(DATA.take(rows), TASK, TREES, outer="train", plain=False).weights


def test_a_fit_killed_anywhere_goes_on_to_the_same_bytes(tmp_path, cut):
    whole = fitted(tmp_path / "whole")
    passed = cut(10**9)
    fitted(tmp_path / "count")
    total = len(passed)
    assert total > 25
    for number in sorted({2, 5, 9, total // 2, total - 9, total - 1}):
        out = tmp_path / str(number)
        cut(number)
        with pytest.raises(cut.Error):
            fitted(out)
        cut(10**9)
        found = at.resume(out, data=DATA, task=TASK)
        assert kept(out) == kept(tmp_path / "whole"), number
        assert found.weights == whole.weights


def test_a_lost_checkpoint_is_made_again(tmp_path, cut):
    fitted(tmp_path / "whole")
    cut(16)
    with pytest.raises(cut.Error):
        fitted(tmp_path / "f")
    cut(10**9)
    shutil.rmtree(tmp_path / "f" / "checkpoints")
    at.resume(tmp_path / "f", data=DATA, task=TASK)
    assert kept(tmp_path / "f") == kept(tmp_path / "whole")


def test_another_fit_in_the_same_folder_is_refused(tmp_path):
    fitted(tmp_path / "f", plain=False)
    with pytest.raises(OtherRunError, match=r"differs in /weighting/eta"):
        fitted(tmp_path / "f", plain=False, eta=0.2)


def test_a_fit_reports_its_plan_its_steps_and_the_models_beside_it():
    events = []
    fitted(pairs=True, watch=events.append)
    began, plan, *others, finished = events
    (note,) = plan.notes
    assert note.startswith("A training has 40 steps: too short")
    assert plan == Planned(notes=[note], lines=["The weighted training: 40 steps."], steps=40)
    assert [event.done for event in others if isinstance(event, Stepped)] == [*range(1, 41)]
    assert others[-2:] == [Working("training without augmentation and weights"), Working("training on a and b")]
    assert (began.spec["kind"], began.data.group_names, sorted(finished.policies())) == (
        "fit",
        ("a", "b"),
        ["a", "b"],
    )


def test_a_search_by_the_paper_reports_each_group_s_search_and_then_the_fit():
    events = []
    search_forest(DARK, TASK, SPACE, watch=events.append, **HOW)
    started = [event for event in events if isinstance(event, GroupStarted)]
    assert [(event.group, event.number, event.of) for event in started] == [("a", 1, 2), ("b", 2, 2)]
    plans = [i for i, event in enumerate(events) if isinstance(event, Planned)]
    assert len(plans) == 3  # of two searches and the fit
    assert [event.done for event in events[plans[-1] :] if isinstance(event, Stepped)] == [*range(1, 41)]
    headings = [event.heading() for event in events if event.heading() is not None]
    assert headings == ["", "a", "b", ""]  # the forest; the searches of its groups; the fit
    assert events.index(started[0]) < plans[0] < events.index(started[1]) < plans[1] < plans[2]


# ---- search_forest by the paper's method


def test_every_group_has_the_tree_that_its_own_samples_give(tmp_path):
    """And Algorithm 2 on these trees, from uniform weights with raw directions, gives the weights."""
    found = search_forest(DARK, TASK, SPACE, out=tmp_path / "f", **HOW)
    for group in "ab":
        how = {name: HOW[name] for name in ("depth", "scorer", "probabilities", "check")}
        alone = at.search_tree(group_alone(DARK, group), TASK, SPACE, **how)
        assert found.forest[group].tree == alone.tree
        assert found.trees[group].importances == alone.importances
        assert at.load(tmp_path / "f" / "groups" / f"0{'ab'.index(group)}-{group}" / "tree.json") == alone.tree
    assert found.forest["a"].tree[1].transform == Invert(0.2)
    fit = fit_forest(DARK, TASK, {g: found.forest[g].tree for g in "ab"}, alpha=8, eta=0.3, start="uniform", d="raw")
    assert fit.weights == found.weights
    assert fit.model.state_dict()["1.weight"].equal(found.model.state_dict()["1.weight"])
    assert found.cost["search_equivalents"] > 1
    result = json.loads((tmp_path / "f" / "result.json").read_text())
    assert set(result["importances"]) == {"a", "b"}
    assert found.out_of_play == {}


def test_the_paper_s_method_scores_by_density_and_begins_with_uniform_weights(tmp_path):
    quick = {"depth": 1, "alpha": 8, "eta": 0, "method": "paper"}
    found = search_forest(DARK, TASK, SPACE[:1], out=tmp_path / "f", **quick)
    spec = json.loads((tmp_path / "f" / "spec.json").read_text())
    assert spec["scorer"]["name"] == "density"
    assert (spec["weighting"]["start"], spec["weighting"]["d"]) == ("uniform", "raw")
    assert found.weights == {"a": 0.5, "b": 0.5}
    other = search_forest(DARK, TASK, SPACE[:1], start="proportions", **quick)
    assert other.weights == pytest.approx({"a": 0.6, "b": 0.4})


@pytest.mark.parametrize(("method", "scorer"), [("paper", "cooldown"), ("shared", "density")])
def test_each_method_has_its_scorers(method, scorer):
    rule = "scorer must be cooldown with method shared, and another with method paper, got"
    with pytest.raises(ArgumentError, match=f"{rule} '{scorer}'"):
        search_forest(DARK, TASK, SPACE, method=method, scorer=scorer)


def test_a_method_that_does_not_exist_is_told():
    with pytest.raises(ArgumentError, match="method must be one of shared, paper, got 'own'"):
        search_forest(DARK, TASK, SPACE, method="own")


def test_the_notes_of_each_group_s_search_are_told():
    found = search_forest(DARK, TASK, SPACE, budget=0.1, **HOW)
    for group in "ab":
        assert found.trees[group].notes
        assert {f"{group}: {note}" for note in found.trees[group].notes} <= {*found.notes}


def test_what_cannot_be_sent_to_another_process_is_told():
    with pytest.raises(ArgumentError, match="workers must be 1 where the task or a transform cannot be sent"):
        search_forest(DARK, task(lambda: linear()), SPACE, workers=2, **HOW)


def test_a_search_killed_anywhere_goes_on_to_the_same_bytes(tmp_path, cut):
    def search(out):
        return search_forest(DARK, TASK, SPACE, out=out, **HOW)

    passed = cut(10**9)
    search(tmp_path / "whole")
    total = len(passed)
    for number in (1, total // 3, total - 40, total - 3):
        out = tmp_path / str(number)
        cut(number)
        with pytest.raises(cut.Error):
            search(out)
        cut(10**9)
        at.resume(out, data=DARK, task=TASK)
        assert kept(out) == kept(tmp_path / "whole"), number


def test_batch_norm_and_graphs():
    assert fit_forest(DATA, task(normed, steps=20), TREES, alpha=8, plain=False).weights
    from torch_geometric.data import Data

    rng = np.random.default_rng(0)
    graphs = []
    for i in range(120):
        n = int(rng.integers(4, 30))
        ends = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
        graphs.append(Data(edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=n, x=torch.randn(n, 3) + i % 2))
    split = [("train", "val", "test")[i % 3] for i in range(120)]
    data = at.data.group(at.data.from_arrays(graphs, [i % 2 for i in range(120)], split=split), "size:2")
    quick = at.tasks.Classification(model="gin", steps=12, batch_size=16, optimizer="adamw")
    found = fit_forest(data, quick, alpha=4, eta=0.5, plain=True, pairs=True)
    assert len(found.history) == 2
    (pair,) = found.similarity["pairs"]
    assert pair["groups"] == ["size0", "size1"]
    assert pair["size"] == found.similarity["disparity"][0]["size"]
    assert pair["similarity"] == found.similarity["without"]["size0"]["size1"]  # two groups: the pair is all there is
    assert not any(row["skipped"] for row in found.history)
    assert found.similarity["disparity"][0]["size"] > 5


def test_a_larger_budget_goes_on_with_other_trees(tmp_path):
    small = search_forest(DARK, TASK, SPACE, out=tmp_path / "f", **HOW, budget=0.6)
    assert status(tmp_path / "f") == "spent"
    large = at.resume(tmp_path / "f", data=DARK, task=TASK, budget=50)
    assert status(tmp_path / "f") == "done"
    whole = search_forest(DARK, TASK, SPACE, out=tmp_path / "w", **HOW)
    assert large.forest == whole.forest
    assert len(small.forest["a"].tree) + len(small.forest["b"].tree) <= len(whole.forest["a"].tree) + len(
        whole.forest["b"].tree
    )


def status(folder):
    with Run.open(folder, write=False) as run:
        return run.fact("status")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 99}, "depth must be"),
        ({"budget": "abc"}, "budget must be"),
        ({"space": at.spaces.graphs()}, "space must work on images"),
        ({"task": task(lambda: linear()), "workers": 2}, "workers must be 1 where the task"),
    ],
)
def test_wrong_options_leave_no_run(tmp_path, change, message):
    arguments = {**HOW, "out": tmp_path / "f", "task": TASK, "space": SPACE, **change}
    with pytest.raises(ArgumentError, match=message):
        search_forest(DARK, arguments.pop("task"), arguments.pop("space"), **arguments)
    assert not (tmp_path / "f").exists()


def test_numpy_s_numbers_are_numbers(tmp_path):
    found = search_forest(DARK, TASK, SPACE, out=tmp_path / "f", plain=False, **{**HOW, "depth": np.int64(1)})
    assert json.loads((tmp_path / "f" / "spec.json").read_text())["depth"] == 1
    assert found.forest


def test_a_group_must_not_be_called_as_the_whole_is():
    names = iter(["all" if g == 0 else "b" for g in DATA.groups])
    data = at.data.group(DATA, lambda _: next(names))
    with pytest.raises(DataError, match="a group must not be called all"):
        fit_forest(data, TASK, {"all": at.Tree(), "b": at.Tree()})


def test_there_must_be_something_to_judge_by():
    with pytest.raises(DataError, match="must have validation or test samples to judge by"):
        fit_forest(DATA.take(DATA.indices("train")), TASK, TREES, outer="train")


def test_a_metric_that_does_not_exist_on_the_test_data_is_told():
    keep = np.ones(len(DATA), bool)
    keep[DATA.indices("test")] = DATA.labels.numpy()[DATA.indices("test")] == 0
    found = fit_forest(DATA.take(np.flatnonzero(keep)), task(steps=8, metric="auroc"), TREES, alpha=4, plain=False)
    assert found.average() is None
    assert found.verdict() == "There is no auroc on the test data: no class has both labels there."
    assert found.to_text()


def test_weights_that_were_never_updated_are_told():
    assert "never updated: 40 steps are not more than alpha" in fitted(alpha=50, plain=False).notes[-1]


def test_pairs_of_groups_with_slashes_are_told_apart():
    names = cycle(["a", "a/b", "b/c", "c"])
    data = at.data.group(DATA, lambda _: next(names))
    found = fit_forest(data, task(steps=8), alpha=4, pairs=True, plain=False).similarity["pairs"]
    assert len({pair["similarity"] for pair in found}) == 6
