"""Searches that score one candidate at a time, and what is common to them and to those by cool-downs."""

import json
from collections import Counter

import pytest
import torch

import augtree as at
from augtree.runs.events import Began, Finished, Planned, Working
from augtree.search import Density, Retrain
from augtree.search.grow import NodeBuilt
from augtree.search.scorers.base import Scored, halves
from augtree.tasks import Classification
from support.searches import INVERT, SPACE, bars
from support.tree_runs import FEW, ONE_BY_ONE, SCORERS, again, files, search, stopped

NOISY = bars(0, 0.5, val=128, wrong=0.1)

pytestmark = pytest.mark.usefixtures("full_trees")


def dim(picture, magnitude):
    return (picture * (1 - magnitude)).to(picture.dtype)


@pytest.mark.parametrize("name", SCORERS)
def test_the_same_seed_gives_the_same_files(whole, tmp_path, name):
    torch.manual_seed(123)  # nothing but the seed counts
    search(tmp_path / "a", name)
    assert files(tmp_path / "a") == files(whole / name)
    assert len(at.load(tmp_path / "a" / "tree.json").nodes) == (2 if name == "cooldown" else 3)


@pytest.mark.parametrize("name", SCORERS)
def test_another_seed_gives_other_scores(whole, tmp_path, name):
    search(tmp_path / "a", name, seed=1)
    assert files(tmp_path / "a")[2] != files(whole / name)[2]


def test_with_and_without_a_folder_are_the_same(whole):
    result = search()
    assert result.out is None
    assert result.tree == at.load(whole / "retrain" / "tree.json")
    assert [row["candidate"] for row in result.history] == [row["candidate"] for row in files(whole / "retrain")[1]]


def test_the_folder_has_what_the_result_has(whole, tmp_path):
    result = search(tmp_path / "a")
    found = json.loads((tmp_path / "a" / "result.json").read_text())
    assert at.load(tmp_path / "a" / "tree.json") == result.tree
    assert found["verdict"] == result.verdict()
    assert found["notes"] == list(result.notes)
    assert found["cost"]["scorings"] == result.cost.scorings
    assert result.cost.scorings == sum(row["round"] != "confirm" for row in result.history) < len(result.history)
    assert set(found["free"]) == {"tree", "none", "randaugment", "trivialaugment"}
    assert (tmp_path / "a" / "history.csv").read_text() == result.history_csv()
    assert result.out == tmp_path / "a"
    assert result.deterministic


def test_the_cost_is_what_the_trainer_did(monkeypatch):
    made = []
    prepare = Classification.prepare
    monkeypatch.setattr(Classification, "prepare", lambda *a: made.append(prepare(*a)) or made[-1])
    result = search()
    (trainer,) = made
    assert (result.cost.forward, result.cost.backward) == (trainer.passes.forward, trainer.passes.backward)
    one = 2 * 40 * 32
    assert result.cost.training_equivalents == pytest.approx(trainer.passes.total / one, abs=1e-3)
    assert sum(row["forward"] for row in result.history) < result.cost.forward
    check = 4 * (
        2 * 4 * 32 + 2 * 32
    )  # four trainings of 4 steps; the confirming half once for losses, once for metrics
    assert result.cost.check_equivalents == pytest.approx(check / one, abs=1e-3)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_importances_are_confirmed_gains(name):
    result = search(scorer=name, check=0)
    confirmed = Counter()
    kept = {str(node.transform) for node in result.tree.nodes.values()}
    for row in result.history:
        if row["round"] == "confirm" and row["candidate"] in kept:
            confirmed[row["candidate"].partition("(")[0]] += row["gain"]
    assert {name: value.gain for name, value in result.importances.items()} == pytest.approx(dict(confirmed))
    gains = [value.gain for value in result.importances.values()]
    assert gains == sorted(gains, reverse=True)


def test_both_find_invert_on_the_toy():
    """Where it is known what is best; see also the scorers' own tests."""
    for scorer, data in ((Retrain(), NOISY), (Density(), bars(0, 1))):
        result = search(scorer=scorer, data=data, space=SPACE, depth=1, check=0, probabilities=(0.5, 1.0))
        assert result.tree.nodes[1].transform == INVERT
        assert list(result.importances) == ["Invert"]


def test_the_plan_then_every_score_and_node_are_events():
    events = []
    result = search(watch=events.append)
    kinds = Counter(type(event) for event in events)
    began, plan, *_, finished = events
    assert isinstance(plan, Planned)
    assert kinds == {Began: 1, Planned: 1, Scored: kinds[Scored], NodeBuilt: 3, Working: 4, Finished: 1}
    assert (began.spec["kind"], finished.text, finished.policy) == ("search", result.verdict(), result.tree)
    assert plan.lines[1] == f"At most {plan.scorings} scorings: 4 candidates, up to 3 nodes."
    assert set(plan.notes) <= set(result.notes)
    scored = [(event.node, event.candidate) for event in events if isinstance(event, Scored)]
    rows = [(row["node"], row["candidate"]) for row in result.history]
    assert scored == [row for row in rows if row[1] != "yardstick"]
    nodes = [event for event in events if isinstance(event, NodeBuilt)]
    assert [event.node for event in nodes] == [node for node, _ in nodes[-1].growth.built]
    assert nodes[-1].growth.tree == result.tree
    texts = [event.text for event in events if isinstance(event, Working)]
    assert texts == [f"training with {name}" for name in ("tree", "none", "randaugment", "trivialaugment")]


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_the_plan_is_not_less_than_what_is_done(name):
    events = []
    result = search(scorer=name, check=0, watch=events.append)
    assert result.cost.scorings <= events[1].scorings < 2 * result.cost.scorings
    if name == "density":
        assert result.cost.scorings == 3 * (len(FEW) + 1)


def test_a_function_is_tried_at_each_of_its_magnitudes():
    dims = [at.wrap(dim, name="Dim", magnitude=m) for m in (0.25, 0.5, 0.75)]
    result = search(space=dims, depth=1, check=0)
    tried = [row["candidate"] for row in result.history if row["round"] == 0]
    assert sorted(tried) == sorted(["Dim(0.25)", "Dim(0.5)", "Dim(0.75)"] * 2 + ["yardstick"])  # at two p each
    assert len({row["loss"] for row in result.history if row["round"] == 0}) == 7


# ---- failures


def broken(picture):
    raise ValueError("no such picture")


class Brittle:
    """A function that works this many times."""

    def __init__(self, times):
        self.times = times

    def __call__(self, picture):
        self.times -= 1
        if self.times < 0:
            raise RuntimeError("worn out")
        return 255 - picture


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_candidate_that_fails_ends_no_search(name):
    """It is never chosen, its reason is a note, and the tree is that of a space without it."""
    result = search(scorer=name, space=[at.wrap(broken, name="Fog"), *FEW], check=0)
    (note,) = [note for note in result.notes if "Fog" in note]
    assert note.startswith("Fog failed and was never chosen: TransformError: Fog")
    assert "no such picture" in note
    assert result.tree == search(scorer=name, check=0).tree
    failed = [row for row in result.history if "failed" in row]
    assert {row["candidate"] for row in failed} == {"Fog"}


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_where_every_candidate_fails_the_tree_is_empty(name):
    result = search(scorer=name, space=[at.wrap(broken, name="Fog")])
    assert result.tree == at.Tree()
    assert any(note.startswith("Node 1 is empty: every candidate failed, the first with: ") for note in result.notes)
    assert set(result.free) == {"tree", "none", "randaugment", "trivialaugment"}


def test_a_winner_that_fails_when_it_is_confirmed_leaves_its_node_empty():
    """It was scored on all of the ranking data at p = 1, so that the calls can be counted."""
    brittle = Brittle(len(halves(bars(0, 1).indices("val"), 0)[0]))
    options = dict(scorer=Density(train=0.5), data=bars(0, 1), depth=1, probabilities=(1.0,), check=0)
    result = search(space=[at.wrap(brittle, name="Fog")], **options)
    assert result.tree == at.Tree()
    assert any(
        note.startswith("Node 1 is empty: Fog failed when it was to be confirmed: TransformError: Fog")
        for note in result.notes
    )


# ---- the budget


@pytest.mark.parametrize("name", ONE_BY_ONE)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
def test_a_budget_of_passes_ends_it_with_the_tree_so_far(whole, name, share):
    full = search(scorer=name, check=0)
    budget = share * full.cost.training_equivalents
    result = search(scorer=name, check=0, budget=budget)
    longest = max(row["forward"] + row["backward"] for row in full.history) / (2 * 40 * 32)
    model = 0.2  # of density's: the longest training
    assert budget <= result.cost.training_equivalents <= budget + max(longest, model)
    assert set(result.tree.nodes.items()) < set(full.tree.nodes.items())
    (note,) = [note for note in result.notes if "budget was spent" in note]
    still_open = note.split()[5]
    nodes = "node" if still_open == "1" else "nodes"
    assert note == f"The budget was spent with {still_open} {nodes} still open: this is the tree so far."
    assert 1 <= int(still_open) <= 2


def test_a_budget_that_is_not_spent_says_nothing(whole):
    result = search(budget=1000)
    assert result.tree == at.load(whole / "retrain" / "tree.json")
    assert not any("budget" in note for note in result.notes)


def test_a_budget_of_time_ends_it():
    result = search(budget="0.001s", check=0)
    assert result.tree == at.Tree()
    assert "The budget was spent with 1 node still open: this is the tree so far." in result.notes
    assert any(note.startswith("Only ") and note.endswith("expect noise.") for note in result.notes)
    assert len(result.history) <= 1


def test_a_run_with_a_budget_is_resumed_to_the_same_tree(tmp_path, cut):
    budget = 0.5 * search(check=0).cost.training_equivalents
    search(tmp_path / "whole", budget=budget)
    stopped(tmp_path / "a", cut, budget=budget)
    again(tmp_path / "a")
    assert files(tmp_path / "a") == files(tmp_path / "whole")


def test_the_budget_is_no_part_of_what_a_run_is(whole, tmp_path):
    """The same folder, with a budget or without: the run goes on."""
    budget = 0.4 * search(check=0).cost.training_equivalents
    first = search(tmp_path / "a", check=0, budget=budget)
    second = search(tmp_path / "a", check=0)
    assert len(first.tree.nodes) < len(second.tree.nodes)
    assert second.tree == at.load(whole / "retrain" / "tree.json")
    assert "budget" not in json.loads((tmp_path / "a" / "spec.json").read_text())


def test_resume_keeps_the_budget_unless_another_is_given(tmp_path):
    full = search(check=0)
    few, many = (share * full.cost.training_equivalents for share in (0.05, 0.6))
    first = search(tmp_path / "a", check=0, budget=few)
    kept = again(tmp_path / "a")
    assert (kept.cost.forward, kept.cost.backward, kept.tree) == (first.cost.forward, first.cost.backward, first.tree)
    more = again(tmp_path / "a", budget=many)
    fresh = search(tmp_path / "b", check=0, budget=many)
    assert first.tree != more.tree == fresh.tree
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert again(tmp_path / "a", budget=1000).tree == full.tree


def test_a_larger_budget_buys_the_same_after_a_check(tmp_path):
    """The check is not bounded by the budget, and so must not use it up."""
    few, many = (share * search(check=0).cost.training_equivalents for share in (0.3, 0.6))
    search(tmp_path / "a", check=1.0, budget=few)
    assert again(tmp_path / "a", budget=many).tree == search(check=1.0, budget=many).tree
