"""The rows for a run in a comparison."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree.comparison import Longer, Searched, Soup, compare, rows_of_run, rows_with_weights
from augtree.comparison.rows import cost_of
from augtree.errors import ArgumentError, RunError
from augtree.forests.weighted import weighted_of_run
from augtree.policies.presets import over_basics
from augtree.search import Cooldown, Density
from augtree.transforms import Flip, Posterize, Space, TrivialAugment
from support.blobs import MINE, POLICIES, blobs, task

SPACE = Space([Posterize(0.2)], basics=[Flip()])
QUICK = Cooldown(looks=(0.3, 0.6), look=0.2, shortest=4, cool=0.3, renew=4)
GROUPS = np.where(np.arange(192) // 2 % 2, "odd", "even")
DATA, GROUPED = blobs(), blobs(96, 64, 32, groups=GROUPS)
TASK = task(steps=20)
CONTROLS = ["usual practice, as long", "best free, as long", "best free, averaged"]
PRACTICE = over_basics(TrivialAugment(), pad=1)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The folder of a search by cool-downs."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    at.search_tree(DATA, TASK, SPACE, depth=2, scorer=QUICK, budget=3, seed=1, out=folder)
    return folder


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    """The folder of a forest by cool-downs."""
    folder = tmp_path_factory.mktemp("runs") / "forest"
    at.search_forest(GROUPED, TASK, SPACE, depth=2, scorer=QUICK, budget=4, alpha=4, eta=0.2, out=folder)
    return folder


def told(folder):
    """The run's own file."""
    return json.loads((folder / "result.json").read_text())


def test_a_search_is_its_tree_controls_that_cost_as_much_and_the_search_again(searched):
    rows = rows_of_run(searched, DATA)
    cost = told(searched)["cost"]["training_equivalents"]
    assert cost == pytest.approx(3, rel=0.2)
    assert rows == {
        "mine/tree": at.load(searched / "tree.json"),
        "usual practice, as long": Longer(cost, PRACTICE),
        "best free, as long": Longer(cost),
        "best free, averaged": Soup(cost),
        "search": Searched(SPACE, 3.0, QUICK, 2),
    }
    assert list(rows) == ["mine/tree", *CONTROLS, "search"]


def test_a_forest_is_its_policies_the_same_controls_and_the_search_again(forest):
    rows = rows_of_run(forest, GROUPED)
    cost = told(forest)["cost"]["search_equivalents"]
    options = at.Weighting(alpha=4, eta=0.2)
    assert rows == {
        "forest's policies": at.Weighted(at.load(forest / "forest.json"), options),
        "usual practice, as long": Longer(cost, PRACTICE),
        "best free, as long": Longer(cost),
        "best free, averaged": Soup(cost),
        "forest": Searched(SPACE, 4.0, QUICK, 2, options),
    }
    assert list(rows) == ["forest's policies", *CONTROLS, "forest"]


def test_the_rows_of_a_search_cost_what_it_has_cost(searched):
    rows = {"none": None, **rows_of_run(searched, DATA)}
    found = compare(DATA, TASK, rows, seeds=[1])
    rows = {row["policy"]: row for row in found.rows}
    assert (found.controls, found.finished) == (CONTROLS, ["search"])
    assert "At the same cost, search is " in found.verdict()
    assert not any("failed" in row for row in rows.values())
    judging = 32 / (20 * 2 * 16)
    cost = told(searched)["cost"]["training_equivalents"]
    assert rows["mine/tree"]["cost"] == pytest.approx(1 + judging, abs=1e-3)
    for name in ("search", *CONTROLS):
        assert rows[name]["cost"] == pytest.approx(cost + judging, abs=0.06), name  # a step is 0.05
    assert rows["search"]["val"] == told(searched)["measures"]["accuracy"]  # the run's own seed


def test_the_rows_of_a_forest_are_trained(forest):
    rows = {"none": None, **rows_of_run(forest, GROUPED)}
    found = compare(GROUPED, TASK, rows, seeds=1)
    assert not any("failed" in row for row in found.rows)
    assert {"weight even", "weight odd"} <= found.rows[1].keys()
    assert all({"group even", "group odd", "worst_group"} <= row.keys() for row in found.rows)


def test_a_budget_of_time_becomes_what_the_run_has_cost(searched, tmp_path):
    timed = Path(shutil.copytree(searched, tmp_path / "timed"))
    spec = json.loads((timed / "spec.json").read_text())
    (timed / "spec.json").write_text(json.dumps({**spec, "budget": "2h"}))
    assert rows_of_run(timed, DATA)["search"] == Searched(SPACE, cost_of(searched), QUICK, 2)


def test_a_search_without_a_budget_is_done_again_without_one(tmp_path):
    at.search_tree(DATA, TASK, SPACE, depth=1, scorer=QUICK, out=tmp_path / "run")
    assert rows_of_run(tmp_path / "run", DATA)["search"] == Searched(SPACE, None, QUICK, 1)


def test_a_search_by_another_scorer_has_its_tree_alone(tmp_path):
    quick = Density(train=0.1)
    at.search_tree(DATA, TASK, [Posterize(0.2)], depth=1, scorer=quick, check=0, out=tmp_path / "old")
    assert rows_of_run(tmp_path / "old", DATA) == {"old/tree": at.load(tmp_path / "old" / "tree.json")}


def test_a_fit_is_its_forest_with_learned_and_with_uniform_weights(tmp_path):
    trees = {"even": MINE, "odd": at.Tree()}
    at.fit_forest(GROUPED, TASK, trees, alpha=4, eta=0.2, out=tmp_path / "fit")
    forest, options = at.load(tmp_path / "fit" / "forest.json"), at.Weighting(alpha=4, eta=0.2)
    uniform = at.Weighting(alpha=4, eta=0.0, start="uniform")
    assert rows_of_run(tmp_path / "fit", GROUPED) == {
        "forest, uniform weights": at.Weighted(forest, uniform),
        "forest": at.Weighted(forest, options),
    }


def test_a_forest_by_the_paper_has_no_controls(tmp_path):
    asked = {"depth": 1, "scorer": Density(train=0.1), "check": 0, "method": "paper", "alpha": 4}
    at.search_forest(GROUPED, TASK, [Posterize(0.2)], out=tmp_path / "paper", **asked)
    assert list(rows_of_run(tmp_path / "paper", GROUPED)) == ["forest, uniform weights", "forest"]


def test_a_run_that_found_no_policy_has_no_rows(tmp_path):
    compare(DATA, task(steps=1), POLICIES, seeds=1, out=tmp_path)
    assert rows_of_run(tmp_path, DATA) == {}


def test_a_search_without_a_tree_yet_is_told(searched, tmp_path):
    (tmp_path / "spec.json").write_bytes((searched / "spec.json").read_bytes())
    with pytest.raises(RunError, match="must be done before it can be compared: augtree resume"):
        rows_of_run(tmp_path, DATA)


def test_a_run_that_is_not_done_is_told(searched, tmp_path):
    for name in ("spec.json", "tree.json"):
        (tmp_path / name).write_bytes((searched / name).read_bytes())
    with pytest.raises(RunError, match="must be done before it can be compared: augtree resume"):
        rows_of_run(tmp_path, DATA)


def test_a_folder_is_named_by_its_own_name_wherever_one_stands(searched, monkeypatch):
    monkeypatch.chdir(searched)
    assert next(iter(rows_of_run(".", DATA))) == "mine/tree"


def test_graphs_have_no_usual_practice(tmp_path):
    ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
    graphs = [Data(x=torch.full((6, 1), float(i % 2)), edge_index=ring) for i in range(64)]
    data = at.data.from_arrays(graphs, [i % 2 for i in range(64)], split=["train"] * 32 + ["val"] * 32)
    asked = at.tasks.Classification(model="gin", steps=10, batch_size=16, device="cpu")
    at.search_tree(data, asked, scorer=QUICK, budget=3, out=tmp_path / "run", depth=1)
    rows = rows_of_run(tmp_path / "run", data)
    assert list(rows) == ["run/tree", *CONTROLS[1:], "search"]
    assert rows["search"].space == at.spaces.auto(data)


# ---- a forest with other weights


def test_a_forest_with_other_weights_has_a_row_for_each_value(forest):
    rows = rows_with_weights(forest, "alpha", [10, 200])
    found = at.load(forest / "forest.json")
    assert rows == {
        "forest, alpha=10": at.Weighted(found, at.Weighting(alpha=10, eta=0.2)),
        "forest, alpha=200": at.Weighted(found, at.Weighting(alpha=200, eta=0.2)),
    }
    assert list(rows_with_weights(forest, "target", ["worst"])) == ["forest, target=worst"]


def test_a_row_is_trained_in_the_groups_that_the_run_s_data_has_already(forest, tmp_path):
    made = Path(shutil.copytree(forest, tmp_path / "made"))
    spec = json.loads((made / "spec.json").read_text())
    spec["data"]["source"] = {"groups": "size:2", "merge": "nearest"}
    (made / "spec.json").write_text(json.dumps(spec))
    assert (weighted_of_run(made).groups, weighted_of_run(made).merge) == ("size:2", "nearest")
    (row,) = rows_with_weights(made, "eta", [0.0]).values()
    assert (row.groups, row.merge, row.weighting.eta) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("step", 3, "step must be one of alpha, eta, start, .*, got 3"),
        ("alpha", 0, "alpha must be a whole number from 1"),
        ("target", "best", "target must be one of average, worst"),
    ],
)
def test_weights_that_do_not_exist_are_refused(forest, option, value, message):
    with pytest.raises(ArgumentError, match=message):
        rows_with_weights(forest, option, [value])


def test_other_weights_are_for_forests(searched):
    with pytest.raises(ArgumentError, match="folder must be the run of a forest, got .*mine"):
        rows_with_weights(searched, "alpha", [10])
