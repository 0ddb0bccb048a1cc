import csv
import dataclasses
import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import augtree as at
from augtree.errors import ArgumentError, DataError, OtherRunError, PolicyFileError, RunError
from augtree.runs import faults
from augtree.runs.store import VERSION, Run
from augtree.search import Density, Retrain, resume, search_tree
from augtree.search.scorers.base import halves
from augtree.search.search import parsed_budget
from augtree.tasks import Classification
from augtree.training.trainer import Trainer, seed_of
from augtree.transforms import Cutout, DropNodes, MaskNodes, Posterize, Space
from augtree.transforms.traits import ALONE, STRONG
from support.searches import CORNERS, INVERT, LINEAR, QUICK, SPACE, TASK, bars, corners

DATA = bars(0, 0.5, wrong=0.2)
NOISY = bars(0, 0.5, val=128, wrong=0.1)
FEW = [INVERT, Posterize(1.0), Cutout(0.2), Cutout(0.6)]
BESIDE = corners(64, 128)
SCORERS = {
    "cooldown": replace(QUICK, last=4),
    "density": Density(train=0.2, sure=0),
    "retrain": Retrain(train=0.2, spread=2, repeats=1, sure=0),
}
ONE_BY_ONE = ["density", "retrain"]
H = (0.25, 0.5, 0.75)
pytestmark = pytest.mark.usefixtures("full_trees")


def search(out=None, scorer="retrain", **changes):
    arguments = dict(depth=2, scorer=SCORERS.get(scorer, scorer), probabilities=H, seed=0, out=out, check=0.1)
    arguments |= dict(data=BESIDE, task=LINEAR, space=CORNERS, budget=6) if scorer == "cooldown" else {}
    arguments |= changes
    data, task, space = (arguments.pop(name, default) for name, default in
                         (("data", DATA), ("task", TASK), ("space", FEW)))  # fmt: skip
    return search_tree(data, task, space, **arguments)


def again(out, **changes):
    begun = json.loads((out / "spec.json").read_text())["scorer"]["name"]
    given = {"data": BESIDE, "task": LINEAR} if begun == "cooldown" else {"data": DATA, "task": TASK}
    return resume(out, **{**given, **changes})


RESULTS = ("tree.json", "tree.svg", "mixture.json", "single.json", "model.safetensors", "training.json")


def files(out):
    """What must be the same to the byte: trees, the model, and every score (but not how long it took)."""
    rows = list(csv.DictReader((out / "history.csv").read_text().splitlines()))
    for row in rows:
        del row["seconds"]
    result = json.loads((out / "result.json").read_text())
    del result["cost"]["seconds"]
    return {name: (out / name).read_bytes() for name in RESULTS if (out / name).exists()}, rows, result


@pytest.fixture(scope="module")
def whole(tmp_path_factory, full_trees):
    """The uninterrupted runs."""
    folder = tmp_path_factory.mktemp("whole")
    for name in SCORERS:
        search(folder / name, name)
    return folder


# ---- what comes out


@pytest.mark.parametrize("name", SCORERS)
def test_the_same_seed_gives_the_same_files(whole, tmp_path, name):
    torch.manual_seed(123)  # nothing but the seed counts
    search(tmp_path / "a", name)
    assert files(tmp_path / "a") == files(whole / name)
    assert len(at.load(tmp_path / "a" / "tree.json").nodes) == (1 if name == "cooldown" else 3)


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


def test_the_tree_is_held_against_the_free_policies():
    """Each by a training from the start, judged on the confirming half, paired."""
    result = search(check=0.5, scorer=Retrain(spread=1, repeats=1), depth=1,
                    probabilities=(0.5,), data=bars(0, 0.5))  # fmt: skip
    assert result.tree == at.Tree().with_node(1, INVERT, 0.5)
    assert result.free["tree"].behind == 0
    for policy in result.free.values():
        assert policy.behind == pytest.approx(policy.loss - result.free["tree"].loss, abs=1e-12)
    assert result.free["none"].behind > 0.1  # bright bars alone do not teach dark ones
    assert result.beats_free == (result.free["tree"].loss < result.free[result.best_free].loss)


def test_the_check_is_a_training_judged_at_the_best_temperature_on_what_chose_nothing():
    result = search(check=0.5, depth=1)
    trainer = TASK.prepare(DATA)
    rows = halves(DATA.indices("val"), 0, DATA.labels.numpy())[1]
    for name, policy in (("tree", result.tree), ("none", at.Tree())):
        state = trainer.fit(policy, seed_of(0, "free"), 20)
        losses = trainer.calibrated_losses(state, rows)
        assert result.free[name].loss == losses.mean() < trainer.losses(state, rows).mean()
        assert result.free[name].metric == trainer.measures(state, rows)["accuracy"]


def test_the_check_can_be_left_out():
    result = search(check=0, depth=1)
    assert result.free == {}
    assert result.verdict() == "The tree was not held against the free policies."


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


def test_watch_is_told_the_plan_then_every_score_and_node():
    told = []
    search(watch=lambda what, **about: told.append((what, about)))
    kinds = [what for what, _ in told]
    assert kinds[0] == "plan"
    assert told[0][1]["nodes"] == 3
    assert told[0][1]["candidates"] == 4
    nodes = [about for what, about in told if what == "node"]
    assert [about["node"] for about in nodes] == [node for node, _ in nodes[-1]["growth"].built]
    assert 0 < nodes[0]["spent"].training_equivalents < nodes[-1]["spent"].training_equivalents
    assert kinds.count("free") == 4


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_the_plan_is_not_less_than_what_is_done(name):
    plan = {}
    result = search(scorer=name, check=0, watch=lambda what, **about: what == "plan" and plan.update(about))
    assert result.cost.scorings <= plan["scorings"] < 2 * result.cost.scorings
    if name == "density":
        assert result.cost.scorings == 3 * (len(FEW) + 1)


def ring(nodes, label):
    """A ring of nodes, with a chord where the label is 1."""
    ends = torch.arange(nodes)
    chord = torch.tensor([[0, nodes // 2], [nodes // 2, 0]]) if label else torch.empty(2, 0, dtype=torch.long)
    around = [torch.stack([ends, (ends + 1) % nodes]), torch.stack([(ends + 1) % nodes, ends])]
    return Data(x=torch.ones(nodes, 1), edge_index=torch.cat([*around, chord], 1), num_nodes=nodes)


LABELS = [i % 2 for i in range(40)]
RINGS = at.data.from_arrays(
    [ring(6 + i % 5, label) for i, label in enumerate(LABELS)],
    LABELS,
    split=["train", "train", "val", "val"] * 10,
    name="rings",
)
GIN = Classification(steps=10, batch_size=16, device="cpu", options={"hidden": 4})


def test_graphs_have_their_own_space_and_rival():
    result = search(data=RINGS, task=GIN, space=at.spaces.graphs()[:4], depth=1)
    assert set(result.free) == {"tree", "none"}
    assert {row["candidate"] for row in result.history} == {"yardstick", *map(str, at.spaces.graphs()[1:4])}


def test_graphs_by_cool_downs(tmp_path):
    """All of it: the mixture, the looks by traits, a finished model, and the same again from a half-done folder."""
    few = Space([DropNodes(0.1), DropNodes(0.4), MaskNodes(0.1), MaskNodes(0.4)])
    how = {"data": RINGS, "task": GIN, "space": few, "scorer": "cooldown", "budget": 12, "depth": 1}
    result = search(tmp_path / "a", **how)
    assert {finding["factor"] for finding in result.findings} == {"DropNodes", "MaskNodes", STRONG, ALONE}
    assert result.mixture.domain == "graph"
    assert at.load(tmp_path / "a" / "mixture.json") == result.mixture
    logits = result.model(Batch.from_data_list([RINGS.samples[i] for i in RINGS.indices("val")]))
    accuracy = (logits.argmax(1) == RINGS.labels[RINGS.indices("val")]).float().mean()
    assert float(accuracy) == pytest.approx(result.measures["accuracy"])
    (tmp_path / "a" / "result.json").unlink()
    resumed = at.resume(tmp_path / "a", data=RINGS)
    assert resumed.mixture == result.mixture
    assert resumed.cost.forward == result.cost.forward


# ---- killed and resumed


def passes(cut, tmp_path, name, **changes):
    """Every point that an uninterrupted run passes."""
    passed = cut(10**9)
    search(tmp_path / "counted", name, **changes)
    return list(passed)


@pytest.mark.parametrize("name", SCORERS)
def test_every_named_point_is_passed(cut, tmp_path, name):
    expected = set(faults.POINTS) - ({"checkpoint.written"} if name == "retrain" else set())
    assert set(passes(cut, tmp_path, name)) == expected


@pytest.mark.parametrize(("name", "stride"), [("density", 7), ("cooldown", 13), ("retrain", 31)])
def test_killed_at_any_point_it_ends_the_same(whole, cut, tmp_path, name, stride):
    """At every point (or every few) that the run passes, whatever its name."""
    count = len(passes(cut, tmp_path, name))
    assert count > 30
    for at_point in range(1 + count % stride, count + 1, stride):
        out = tmp_path / f"at-{at_point}"
        cut(at_point)
        with pytest.raises(cut.Error):
            search(out, name)
        cut(10**9)
        again(out)
        assert files(out) == files(whole / name), at_point
        shutil.rmtree(out)


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_killed_again_and_again_it_ends_the_same(whole, cut, tmp_path, name, seed):
    rng = random.Random(seed)
    kills, out = 0, tmp_path / "a"
    while True:
        cut(rng.randint(1, 20))
        try:
            again(out) if (out / "spec.json").exists() and rng.random() < 0.5 else search(out, name)
            break
        except cut.Error:
            kills += 1
    assert kills > 3
    assert files(out) == files(whole / name)


def test_what_is_done_is_not_done_again(cut, tmp_path, monkeypatch):
    cut(25, "unit.recorded")
    with pytest.raises(cut.Error):
        search(tmp_path / "a")
    cut(10**9)
    made = []
    prepare = Classification.prepare
    monkeypatch.setattr(Classification, "prepare", lambda *a: made.append(prepare(*a)) or made[-1])
    result = again(tmp_path / "a")
    assert 0 < made[0].passes.total < result.cost.forward + result.cost.backward
    again(tmp_path / "a")
    assert made[1].passes.total == 0


SPOILS = {
    "deleted": lambda path: path.unlink(),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "overwritten": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("name", ["cooldown", "density"])
@pytest.mark.parametrize("spoil", SPOILS)
def test_lost_checkpoints_are_made_again(whole, cut, tmp_path, name, spoil):
    """All of them, again and again: a trunk then grows from its root, and nothing is charged twice."""
    out, kills, spoiled = tmp_path / "a", 0, 0
    while True:
        cut(6, "unit.recorded")
        try:
            search(out, name)
            break
        except cut.Error:
            kills += 1
        for path in (out / "checkpoints").iterdir():
            spoiled += 1
            SPOILS[spoil](path)
    assert kills > 2
    assert spoiled > 2
    assert files(out) == files(whole / name)


@pytest.mark.parametrize(("name", "what"), [("density", "model"), ("cooldown", "trunk")])
def test_checkpoints_do_not_pile_up(tmp_path, name, what):
    search(tmp_path / "a", name, depth=3)
    with Run.open(tmp_path / "a", write=False) as run:
        assert len(list(run.units(f"{what}/"))) > 3
    assert 1 <= len(list((tmp_path / "a" / "checkpoints").glob(f"{what}-*"))) <= 2


@pytest.mark.parametrize("when", ["plan", "scored", "node", "free"])
def test_ctrl_c_leaves_a_run_that_can_be_resumed(whole, tmp_path, when):
    def interrupt(what, **about):
        if what == when:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "a", watch=interrupt)
    assert (tmp_path / "a" / "tree.json").exists() is (when == "free")  # the tree is there before the check
    again(tmp_path / "a")
    assert files(tmp_path / "a") == files(whole / "retrain")


def test_ctrl_c_within_a_candidate_is_no_failure_of_it(tmp_path):
    pressed = []

    def impatient(picture):
        if not pressed:
            pressed.append(1)
            raise KeyboardInterrupt
        return picture

    fog = at.wrap(impatient, name="Fog")
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "a", space=[fog, INVERT], depth=1)
    result = again(tmp_path / "a", transforms=[fog])
    assert not any("failed" in row for row in result.history)


def test_only_one_works_in_a_folder(tmp_path):
    seen = []

    def second(what, **about):
        if what == "node":
            with pytest.raises(RunError, match="is in use by another process: one run has one writer"):
                search(tmp_path / "a")
            seen.append(what)

    search(tmp_path / "a", depth=1, watch=second)
    assert seen == ["node"]


SCRIPT = """
import os, signal, sqlite3, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[2])
from support.cuts import quickly
from support.searches import QUICK
from augtree import data
from augtree.search import resume, search_tree
from augtree.tasks import Classification
from augtree.transforms import Flip, Posterize, Space

place, faults = Path(sys.argv[1]), sys.argv[3:]
digits = data.load("digits", train=60, val=60)  # what is imported for it is there for all children
os.fsync, sqlite3.connect = lambda _: None, quickly(sqlite3.connect)

def search(out):
    task = Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16, device="cpu")
    search_tree(digits, task, Space([Posterize(0.2)], basics=[Flip()]), depth=2, scorer=QUICK, out=out, budget=8)

def child(work, fault=""):
    pid = os.fork()
    if not pid:
        os.environ["AUGTREE_FAULT"] = fault
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]

assert child(lambda: search(place / "whole")) == 0
for fault in faults:
    out = place / fault.replace(":", "-")
    status = child(lambda: search(out), fault)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (fault, status)
    if fault == faults[-1]:  # once more on the way
        status = child(lambda: resume(out), "unit.computed:3")
        assert os.WIFSIGNALED(status), status
    assert child(lambda: resume(out)) == 0, fault
"""
FAULTS = [*faults.POINTS, "result.written:6", "unit.recorded:12"]


def test_killed_by_the_system_and_resumed_from_the_folder_alone(tmp_path):
    """SIGKILL in processes of their own, at every named point; nothing but the folder is left."""
    here = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path, here, *FAULTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for fault in FAULTS:
        assert files(tmp_path / fault.replace(":", "-")) == files(tmp_path / "whole"), fault


# ---- resume needs what a file cannot hold


def stopped(out, cut, **changes):
    cut(5, "unit.recorded")
    with pytest.raises(cut.Error):
        search(out, **changes)
    cut(10**9)


def test_arrays_must_be_given_again(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    with pytest.raises(RunError, match=r"a was made on arrays: give them again, augtree.resume\(.*, data=...\)"):
        resume(tmp_path / "a", task=TASK)


def test_a_model_of_one_s_own_must_be_given_again(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    with pytest.raises(
        RunError, match=r"model is a function \(support.searches.small_model\): give the task again, task=..."
    ):
        resume(tmp_path / "a", data=DATA)


def test_data_that_changed_are_refused(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    other = bars(0, 0.5, seed=1, wrong=0.2)
    with pytest.raises(DataError, match="the data must be what the run began with, but bars has changed"):
        again(tmp_path / "a", data=other)
    with pytest.raises(
        RunError, match=r"holds another run \(it differs in /data/fingerprint\): choose another --out"
    ):
        search(tmp_path / "a", data=other)


def test_what_a_run_begins_with_is_part_of_it(tmp_path, cut, monkeypatch):
    """A function has a name, not a content: the weights that it gives tell."""
    stopped(tmp_path / "a", cut)
    begin = Trainer.identity
    monkeypatch.setattr(Trainer, "identity", lambda self, seed: {**begin(self, seed), "weights": "others"})
    with pytest.raises(OtherRunError, match="differs in /begins/weights"):
        search(tmp_path / "a")
    monkeypatch.undo()
    flipped = dataclasses.replace(DATA, preprocess=at.transforms.Flip())
    with pytest.raises(OtherRunError, match="differs in /begins/preprocess"):
        search(tmp_path / "a", data=flipped)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        (dict(seed=1), "/seed"),
        (dict(depth=1), "/depth"),
        (dict(probabilities=(0.5,)), "/probabilities"),
        (dict(space=[INVERT]), "/space"),
        (dict(task=Classification(**{**vars(TASK), "steps": 41})), "/task/steps"),
        (dict(scorer=Density()), "/scorer/"),
    ],
)
def test_another_search_does_not_fit_into_the_folder(tmp_path, cut, changes, place):
    stopped(tmp_path / "a", cut)
    before = (tmp_path / "a" / "spec.json").read_bytes()
    with pytest.raises(RunError, match=f"holds another run .it differs in .*{place}"):
        search(tmp_path / "a", **changes)
    assert (tmp_path / "a" / "spec.json").read_bytes() == before


def dim(picture, magnitude):
    return (picture * (1 - magnitude)).to(picture.dtype)


def test_a_function_is_tried_at_each_of_its_magnitudes():
    dims = [at.wrap(dim, name="Dim", magnitude=m) for m in (0.25, 0.5, 0.75)]
    result = search(space=dims, depth=1, check=0)
    tried = [row["candidate"] for row in result.history if row["round"] == 0]
    assert sorted(tried) == sorted(["Dim(0.25)", "Dim(0.5)", "Dim(0.75)"] * 2 + ["yardstick"])  # at two p each
    assert len({row["loss"] for row in result.history if row["round"] == 0}) == 7


def test_transforms_of_one_s_own_must_be_given_again(tmp_path, cut):
    dims = [at.wrap(dim, name="Dim", magnitude=0.5)]
    search(tmp_path / "whole", space=[INVERT, *dims])
    stopped(tmp_path / "a", cut, space=[INVERT, *dims])
    with pytest.raises(PolicyFileError, match="Dim"):
        again(tmp_path / "a")
    again(tmp_path / "a", transforms=dims)
    assert files(tmp_path / "a") == files(tmp_path / "whole")


@pytest.mark.parametrize(
    "scorer", [{"name": "anneal", "rungs": [0.05, 0.2], "trunk": 0.3}, {"name": "cooldown", "rounds": 3}]
)
def test_a_run_of_an_older_version_is_refused_with_one_clear_word(tmp_path, scorer):
    """Its scorer is gone, or has other options now."""
    Run.begin(tmp_path / "old", {"version": VERSION, "kind": "search", "scorer": scorer}).close()
    name = scorer["name"]
    message = f"old was begun by another version of augtree, with the scorer '{name}': begin it again"
    for begin_again in (resume, at.resume):
        with pytest.raises(RunError, match=message) as caught:
            begin_again(tmp_path / "old", data=DATA)
        assert "\n" not in str(caught.value)
    with pytest.raises(OtherRunError, match="differs in .*/scorer"):
        search(tmp_path / "old")


def test_a_run_with_a_space_of_an_older_version_is_refused(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    spec = json.loads((tmp_path / "a" / "spec.json").read_text())
    spec["space"] = spec["space"]["candidates"]
    (tmp_path / "a" / "spec.json").write_text(json.dumps(spec))
    with pytest.raises(RunError, match="is of a run that another version of augtree began: begin it again"):
        again(tmp_path / "a")


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="must be the folder of a run, but it has no spec.json"):
        resume(tmp_path)
    Run.begin(tmp_path / "b", {"version": 1, "kind": "forest"}).close()
    with pytest.raises(RunError, match="must be the run of a search, got forest"):
        resume(tmp_path / "b")


def test_a_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match="must be an empty folder or that of the same run"):
        search(tmp_path / "a")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["thesis.txt"]


def test_other_versions_are_told(tmp_path, cut):
    stopped(tmp_path / "a", cut)
    with Run.open(tmp_path / "a") as run:
        run.tell("surroundings", {**run.fact("surroundings"), "torch": "0.1"})
    notes = again(tmp_path / "a").notes
    expected = f"The run began with torch 0.1 and goes on with {torch.__version__}: the tree may differ."
    assert notes[0] == expected


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
    assert note == f"The budget was spent with {still_open} nodes still open: this is the tree so far."
    assert 1 <= int(still_open) <= 2


def test_a_budget_that_is_not_spent_says_nothing(whole):
    result = search(budget=1000)
    assert result.tree == at.load(whole / "retrain" / "tree.json")
    assert not any("budget" in note for note in result.notes)


def test_a_budget_of_time_ends_it():
    result = search(budget="0.001s", check=0)
    assert result.tree == at.Tree()
    assert "The budget was spent with 1 nodes still open: this is the tree so far." in result.notes
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


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (None, (np.inf, np.inf)),
        (8, (8.0, np.inf)),
        (0.5, (0.5, np.inf)),
        ("8", (8.0, np.inf)),
        ("90s", (np.inf, 90.0)),
        ("1.5m", (np.inf, 90.0)),
        ("2h", (np.inf, 7200.0)),
    ],
)
def test_budgets_are_times_or_training_equivalents(budget, expected):
    assert parsed_budget(budget) == expected


@pytest.mark.parametrize("budget", ["", "m", "ten minutes", "-5m", "0", "nan", "infh", "10d", "1e99"])
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(
        ArgumentError, match=r"budget must be a time \(90s, 10m, 2h\) or training equivalents \(8\), got"
    ):
        parsed_budget(budget)


@pytest.mark.parametrize("budget", [0, -1, float("nan"), True, [8]])
def test_what_is_no_number_of_trainings_is_refused(budget):
    with pytest.raises(ArgumentError, match=r"budget must be a number in \(0, 1e\+09\], got"):
        parsed_budget(budget)


# ---- bad arguments


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(depth=0), "depth must be a whole number from 1 to 10, got 0"),
        (dict(depth=2.5), "depth must be a whole number from 1 to 10, got 2.5"),
        (
            dict(scorer="cooldwn"),
            r"scorer must be one of cooldown, density, retrain \(did you mean cooldown\?\), got 'cooldwn'",
        ),
        (dict(probabilities=()), r"probabilities must not be empty, got \(\)"),
        (dict(probabilities=(0, 0.5)), r"probabilities must be a number in \(0, 1\], got 0"),
        (dict(probabilities=(0.5, 1.5)), r"probabilities must be a number in \(0, 1\], got 1.5"),
        (dict(seed=-1), "seed must be a whole number from 0"),
        (dict(seed="one"), "seed must be a whole number from 0"),
        (dict(check=-1), r"check must be a number in \[0, 10\], got -1"),
        (dict(budget="soon"), r"budget must be a time \(90s, 10m, 2h\) or training equivalents \(8\), got 'soon'"),
        (dict(method="random"), "method must be greedy or exhaustive, got 'random'"),
        (dict(method="exhaustive", scorer="density"), "exhaustive needs the scorer retrain, got 'density'"),
        (dict(space=[DropNodes(0.2)]), r"space must work on images as the data does, got \['graph'\]"),
        (dict(space=[INVERT, INVERT]), "candidate must not be in the space twice"),
        (dict(space=["Invert"]), "candidate must be a transform"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_made(tmp_path, changes, message):
    with pytest.raises(ArgumentError, match=message):
        search(tmp_path / "a", **changes)
    assert not (tmp_path / "a").exists()


def test_too_few_validation_samples_are_refused(tmp_path):
    with pytest.raises(DataError, match="bars: a search needs at least 8 validation samples, got 7"):
        search(tmp_path / "a", data=bars(0, 0.5, 16, 7))
    assert not (tmp_path / "a").exists()
    assert search(data=bars(0, 0.5, 16, 8), depth=1).tree


def test_a_model_that_cannot_be_made_leaves_no_folder(tmp_path):
    """Else the corrected call finds "another run" there."""
    with pytest.raises(ArgumentError, match="must be 'graph' for gin"):
        search(tmp_path / "a", task=Classification(model="gin", steps=5, device="cpu"))
    assert search(tmp_path / "a", depth=1).tree


def test_a_seed_of_numpy_is_that_seed():
    one, two = (search(seed=seed, depth=1, check=0) for seed in (3, np.int64(3)))
    assert [row["loss"] for row in one.history] == [row["loss"] for row in two.history]


@pytest.mark.parametrize(
    "changes",
    [
        dict(depth=np.int64(1)),
        dict(check=np.float32(0.1)),
        pytest.param(
            dict(budget=np.float32(9)),
        ),
    ],
)
def test_numbers_of_numpy_are_numbers(changes):
    assert search(**changes).tree


def test_probabilities_that_are_close_are_two():
    result = search(probabilities=(0.3333333, 0.3333334), depth=1, check=0)
    assert {0.3333333, 0.3333334} <= {row.get("p") for row in result.history}


def test_a_free_policy_that_cannot_be_used_does_not_lose_the_tree(tmp_path):
    """After hours of searching: the tree is kept, and the user is told."""
    pictures = DATA.samples.numpy().repeat(2, axis=1)
    data = at.data.from_arrays(pictures, DATA.labels.numpy(), split=["train"] * 64 + ["val"] * 64)
    task = Classification(model=two_channel_model, steps=10, batch_size=32, device="cpu")
    result = search(tmp_path / "a", data=data, task=task, depth=1)
    assert (tmp_path / "a" / "tree.json").exists()
    free = json.loads((tmp_path / "a" / "result.json").read_text())["free"]
    assert set(result.free) == set(free) >= {"tree", "none"}
    left_out = {"randaugment", "trivialaugment"} - set(free)
    assert left_out
    for name in left_out:
        (note,) = [note for note in result.notes if note.startswith(f"{name} could not be held against the tree: ")]
        assert "InputError: " in note
    assert result.best_free in free


def test_a_metric_that_the_samples_do_not_allow_does_not_lose_the_tree(tmp_path):
    """One class in the validation data has no AUROC: told before the search or after it, but not instead of it."""
    labels = np.where(np.arange(128) < 64, DATA.labels.numpy(), 0)
    data = at.data.from_arrays(DATA.samples.numpy(), labels, split=["train"] * 64 + ["val"] * 64)
    search(tmp_path / "a", data=data, task=Classification(**{**vars(TASK), "metric": "auroc"}), depth=1)
    assert (tmp_path / "a" / "tree.json").exists()


def two_channel_model():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 2))


def test_killed_before_the_specification_is_written(tmp_path, monkeypatch):
    from augtree.runs import store

    def killed(path, content):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_atomically", killed)
        with pytest.raises(SystemExit):
            search(tmp_path / "a")
    assert Path(tmp_path / "a").exists()
    assert search(tmp_path / "a", depth=1).tree
