import gc
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from toys import INVERT, SPACE, TASK, bars, bench_on

from augtree import Tree, wrap
from augtree.errors import ArgumentError, TaskError
from augtree.runs.store import Run
from augtree.search import search_tree
from augtree.search.scorers import Anneal, Retrain
from augtree.search.scorers.anneal import families, typical
from augtree.search.scorers.base import Entry
from augtree.tasks import Classification
from augtree.transforms import AutoContrast, Brightness, Cutout, Identity, Posterize, Rotate, Solarize

EMPTY = Tree()
SHORT = dict(rungs=(0.25, 0.5), fewest=4, kept=(2, 2), shortlist=9, spread=2, trunk=0.5, between=0.2, repeats=2)
OPTIONS = Anneal(**SHORT, first_p=(0.5, 0.5), sure=1.0)


def changed(**options):
    return Anneal(**{**SHORT, "first_p": (0.5, 0.5), "sure": 1.0, **options})


def as_it_is(picture):
    return picture


def speckled(picture):
    return torch.where(torch.rand(picture.shape) < 0.3, torch.zeros_like(picture), picture)


def raises(picture):
    raise ValueError("no such picture")


def blank(picture):
    return torch.zeros_like(picture)


# ---- common random numbers


def round_of(space, tree=EMPTY, node=1, **options):
    bench = bench_on(bars(0, 0.5), space)
    scorer = changed(**options).at(bench)
    scorer.nodes = 1
    scores = scorer.round(node, tree, scorer.trunk(tree), 0, [Entry(c, 0.5) for c in bench.candidates])
    return scorer, scores


def test_equal_candidates_have_equal_scores():
    """Two names, one function that draws: the same batches, the same draws, the same losses to the bit."""
    _, (one, two, other) = round_of([wrap(speckled, name="One"), wrap(speckled, name="Two"), Cutout(1.0)])
    assert one[1:] == two[1:]
    assert one.gain != 0
    assert other.loss != one.loss


def test_equal_policies_have_a_paired_difference_of_zero():
    bench = bench_on(bars(0, 0.5))
    scorer = OPTIONS.at(bench)
    scorer.nodes = 1
    trunk = scorer.trunk(Tree())
    trees = [Tree().with_node(1, wrap(speckled, name=name), 0.5) for name in ("One", "Two")]
    one, two = (scorer.branch(trunk, tree, 0.5, 7, bench.rank_rows) for tree in trees)
    assert np.array_equal(one, two)
    assert not np.array_equal(one, scorer.branch(trunk, trees[0], 0.5, 8, bench.rank_rows))


@pytest.mark.parametrize(("tree", "node"), [(Tree(), 1), (Tree().with_node(1, Rotate(0.6), 0.5), 2)])
def test_a_candidate_that_does_nothing_gains_nothing(tree, node):
    _, (score,) = round_of([wrap(as_it_is, name="Nothing")], tree, node)
    assert (score.gain, score.gain_se) == (0.0, 0.0)


def test_the_order_of_candidates_does_not_matter():
    _, one = round_of(SPACE)
    _, two = round_of(SPACE[::-1])
    assert one == two[::-1]


def test_branches_do_not_touch_the_trunk():
    bench = bench_on(bars(0, 0.5))
    scorer = OPTIONS.at(bench)
    scorer.nodes = 1
    trunk = scorer.trunk(Tree())
    before = {name: tensor.clone() for name, tensor in trunk().tensors.items()}
    scorer.branch(trunk, Tree().with_node(1, INVERT, 1.0), 0.5, 7, bench.rank_rows)
    assert all(torch.equal(tensor, before[name]) for name, tensor in trunk().tensors.items())


# ---- the rounds, with branches that are scripted


class Scripted:
    """A branch whose losses are told by a function of (what the new candidate is called, p, share)."""

    def __init__(self, scorer, loss, monkeypatch, noise=0.0, called=lambda transform: transform.name):
        self.asked = []
        self.scorer, self.loss, self.noise, self.called = scorer, loss, noise, called
        monkeypatch.setattr(scorer, "branch", self.branch)
        monkeypatch.setattr(scorer, "trunk", lambda tree: lambda: None)

    def branch(self, trunk, policy, share, seed, rows):
        entry = policy.nodes.get(self.node)
        about = (self.called(entry.transform), entry.p) if entry else ("yardstick", None)
        self.asked.append((*about, share, seed, rows is self.scorer.bench.rank_rows))
        wave = self.noise * np.cos(np.arange(len(rows))) if entry else np.zeros(len(rows))
        return self.loss(*about, share) + wave

    def build(self, node, tree=EMPTY, p=None):
        self.node, self.asked = node, []
        return self.scorer.build_one_node(node, tree, p)

    def rounds(self):
        """What was asked, by length of branch and data, without the yardsticks."""
        out = {}
        for name, p, share, _, ranking in self.asked:
            if name != "yardstick":
                out.setdefault((share, ranking), []).append((name, p))
        return out


FIVE = [Rotate(0.2), Posterize(0.2), INVERT, Brightness(0.2), Cutout(0.2)]
LEVEL = {"Rotate": 0.5, "Posterize": 0.2, "Invert": 0.3, "Brightness": 0.6, "Cutout": 0.4, "yardstick": 1.0}


def by_level(name, p, share):
    return LEVEL[name]


def scripted(monkeypatch, loss=by_level, probabilities=(0.25, 0.5, 0.75, 1.0), space=FIVE, noise=0.0, **options):
    return Scripted(changed(**options).at(bench_on(bars(0, 0.5), space, probabilities)), loss, monkeypatch, noise)


def test_the_best_few_go_on(monkeypatch):
    script = scripted(monkeypatch, rungs=(0.1, 0.4), kept=(1, 3), spread=2, first_p=(0.6, 0.5))
    found = script.build(1)
    assert script.rounds() == {
        (0.1, True): [(c.name, 0.6) for c in FIVE],
        (0.4, True): [(name, p) for name in ("Posterize", "Invert", "Cutout") for p in (1.0, 0.5)],
        (0.4, False): [("Posterize", 1.0)] * 2,
    }
    assert found == (Posterize(0.2), 1.0, True, pytest.approx(0.8), 0.0, "")


STRENGTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
LADDERS = [
    *map(Rotate, STRENGTHS), Posterize(0.2), Posterize(1.0), INVERT, Cutout(0.2), Cutout(0.6), Cutout(1.0),
]  # fmt: skip
HEIGHT = {
    "yardstick": 1.0,
    "Rotate(0.2)": 0.9, "Rotate(0.4)": 0.25, "Rotate(0.6)": 0.35, "Rotate(0.8)": 0.4, "Rotate(1)": 0.7,
    "Posterize(0.2)": 0.6, "Posterize(1)": 0.0,
    "Invert(0.2)": 0.5,
    "Cutout(0.2)": 0.31, "Cutout(0.6)": 0.3, "Cutout(1)": 0.8,
}  # fmt: skip


def on_ladders(monkeypatch, **options):
    scorer = changed(**options).at(bench_on(bars(0, 0.5), LADDERS, (0.25, 0.5, 0.75, 1.0)))
    return Scripted(scorer, lambda name, p, share: HEIGHT[name], monkeypatch, called=str)


def test_a_coarse_look_then_all_magnitudes_of_the_best_operations(monkeypatch):
    """Posterize(1.0) would be the best of all, but its operation did not lead at the magnitudes that speak for it."""
    script = on_ladders(monkeypatch)
    found = script.build(1)
    coarse = ["Rotate(0.4)", "Rotate(0.8)", "Posterize(0.2)", "Invert(0.2)", "Cutout(0.2)", "Cutout(0.6)"]
    finer = ["Rotate(0.2)", "Rotate(0.6)", "Rotate(1)", "Cutout(1)"]
    assert [name for name, _ in script.rounds()[0.25, True]] == coarse + finer
    assert script.rounds()[0.5, True] == [(name, p) for name in ("Rotate(0.4)", "Cutout(0.6)") for p in (1.0, 0.5)]
    assert (found.transform, found.p) == (Rotate(0.4), 1.0)


def test_the_finer_look_shares_the_draws_and_the_yardstick_of_the_coarse(monkeypatch):
    script = on_ladders(monkeypatch)
    script.build(1)
    early = [(name, seed) for name, _, share, seed, _ in script.asked if share == 0.25]
    assert len({seed for _, seed in early}) == 1
    assert [name for name, _ in early].count("yardstick") == 1


def test_what_was_looked_at_coarsely_may_come_to_the_last_round(monkeypatch):
    """Without having been refined: three candidates, one operation."""
    script = on_ladders(monkeypatch, kept=(1, 3), spread=1)
    script.build(1)
    assert script.rounds()[0.5, True] == [("Rotate(0.4)", 1.0), ("Cutout(0.6)", 1.0), ("Cutout(0.2)", 1.0)]


def test_the_shortlist_is_of_operations(monkeypatch):
    """Below the root two of them are looked at; the best of these at all its magnitudes."""
    script = on_ladders(monkeypatch, kept=(1, 1), shortlist=2)
    script.build(1)
    script.build(2, Tree().with_node(1, INVERT, 0.5))
    below = [name for name, _ in script.rounds()[0.25, True]]
    coarse = ["Rotate(0.4)", "Rotate(0.8)", "Cutout(0.2)", "Cutout(0.6)"]
    assert below == [*coarse, "Rotate(0.2)", "Rotate(0.6)", "Rotate(1)"]


@pytest.mark.parametrize(
    ("sizes", "places"), [(1, [0]), (2, [0]), (3, [0, 1]), (4, [0, 2]), (5, [1, 3]), (10, [2, 6])]
)
def test_an_operation_is_judged_by_a_mild_and_a_strong_magnitude(sizes, places):
    family = [Rotate((i + 1) / sizes) for i in range(sizes)]
    assert typical(family) == [family[place] for place in places]


def test_families_are_operations_in_their_order():
    assert families([Rotate(0.2), INVERT, Rotate(0.6)]) == {"Rotate": [Rotate(0.2), Rotate(0.6)], "Invert": [INVERT]}


def test_a_shortlist_may_be_shorter_than_what_is_refined(monkeypatch):
    script = on_ladders(monkeypatch, kept=(2, 2), shortlist=1)
    assert script.build(1).transform == Rotate(0.4)
    script.build(2, Tree().with_node(1, INVERT, 0.5))
    assert {name.partition("(")[0] for name, _ in script.rounds()[0.25, True]} == {"Rotate"}


@pytest.mark.parametrize("depth", [1, 2])
def test_the_plan_by_hand(monkeypatch, depth):
    """Root: 4 operations, 2 + 4 more magnitudes, 2 x 2 in the last round, 2 yardsticks; below: 3 operations."""
    options = changed(shortlist=3)
    assert options.scorings(depth, LADDERS, 4) == 16 + (2**depth - 2) * 15
    script = on_ladders(monkeypatch, shortlist=3)
    script.build(1)
    assert sum(ranking for *_, ranking in script.asked) == 16
    script.build(2, Tree().with_node(1, INVERT, 0.5))
    assert sum(ranking for *_, ranking in script.asked) == 15


def test_a_later_round_may_change_its_mind(monkeypatch):
    """What is best on a short branch need not be on a long one; what went out does not come back."""

    def loss(name, p, share):
        late = {**LEVEL, "Invert": 0.1, "Brightness": 0.0}
        return (LEVEL if share == 0.25 else late)[name]

    assert scripted(monkeypatch, loss).build(1).transform == INVERT


def test_the_last_round_chooses_the_probability(monkeypatch):
    def loss(name, p, share):
        return LEVEL[name] + (0 if p is None else abs(p - 0.5))

    found = scripted(monkeypatch, loss, spread=4).build(1)
    assert (found.transform, found.p) == (Posterize(0.2), 0.5)


def test_a_probability_that_is_given_is_kept(monkeypatch):
    script = scripted(monkeypatch)
    found = script.build(3, Tree().with_node(1, INVERT, 0.5).with_node(2, INVERT, 0.7), p=0.3)
    assert {p for name, p, *_ in script.asked if name != "yardstick"} == {0.3}
    assert found.p == 0.3
    assert script.rounds()[0.5, True] == [("Posterize", 0.3), ("Invert", 0.3)]


def test_below_the_root_there_is_a_shortlist(monkeypatch):
    script = scripted(monkeypatch, shortlist=3, first_p=(0.6, 0.4))
    script.build(1)
    script.build(2, Tree().with_node(1, INVERT, 0.5))
    assert script.rounds()[0.25, True] == [("Posterize", 0.4), ("Invert", 0.4), ("Cutout", 0.4)]


def test_the_root_s_first_round_decides_for_good(monkeypatch):
    """Worst at one node below, or failed there: tried again at the next."""
    script = scripted(monkeypatch, shortlist=3)
    script.build(1)

    def loss(name, p, share):
        if name == "Invert":
            raise ValueError("boom")
        return 1 - LEVEL[name]

    script.loss = loss
    script.build(2, Tree().with_node(1, Posterize(0.2), 0.5))
    script.loss = by_level
    script.build(3, Tree().with_node(1, Posterize(0.2), 0.5))
    assert [name for name, _ in script.rounds()[0.25, True]] == ["Posterize", "Invert", "Cutout"]


def test_what_fails_at_the_root_is_not_tried_below(monkeypatch):
    def loss(name, p, share):
        return np.nan if name == "Posterize" else LEVEL[name]

    script = scripted(monkeypatch, loss)
    script.build(1)
    script.build(2, Tree().with_node(1, INVERT, 0.5))
    assert {name for name, _ in script.rounds()[0.25, True]} == {"Rotate", "Invert", "Brightness", "Cutout"}


def test_each_round_has_its_own_seed_which_all_share(monkeypatch):
    script = scripted(monkeypatch)
    script.build(1)
    seeds = {}
    for _, _, share, seed, ranking in script.asked:
        seeds.setdefault((share, ranking), set()).add(seed)
    assert [len(found) for found in seeds.values()] == [1, 1, 2]  # two confirmations, each with fresh draws
    assert len(set.union(*seeds.values())) == 4
    script.build(2, Tree().with_node(1, INVERT, 0.5))
    assert not {seed for _, _, _, seed, _ in script.asked} & set.union(*seeds.values())


def test_the_winner_is_confirmed_on_the_other_half(monkeypatch):
    """Best on the half that ranks, no better on the half that confirms: not kept."""
    script = scripted(monkeypatch, repeats=2, tries=1)

    def lucky(name, p, share):
        ranking = script.asked[-1][-1]
        return LEVEL[name] if ranking else 1.0

    script.loss = lucky
    found = script.build(1)
    assert not found.improves
    assert found.why == "Posterize(0.2) p=1 was best, but not on fresh data"
    assert [ranking for *_, ranking in script.asked].count(False) == 4


def test_where_the_best_is_not_confirmed_the_next_is_tried(monkeypatch):
    """Each candidate once, at the probability that was best for it; as many as `tries` allows."""

    def loss(name, p, share):
        ranking = script.asked[-1][-1]
        return LEVEL[name] + 0.01 * (p == 1.0) if ranking or name != "Posterize" else 1.5

    script = scripted(monkeypatch, loss, kept=(1, 3), spread=2, repeats=1, tries=2)
    found = script.build(1)
    assert (found.transform, found.p, found.improves) == (INVERT, 0.5, True)
    assert script.rounds()[changed().rungs[1], False] == [("Posterize", 0.5), ("Invert", 0.5)]
    script = scripted(monkeypatch, loss, kept=(1, 3), spread=2, repeats=1, tries=1)
    assert not script.build(1).improves


@pytest.mark.parametrize(("sure", "improves"), [(0.5, True), (20.0, False)])
def test_how_sure_is_an_option(monkeypatch, sure, improves):
    assert scripted(monkeypatch, noise=0.5, sure=sure).build(1).improves is improves


def test_what_fails_does_not_go_on(monkeypatch):
    def loss(name, p, share):
        if name == "Posterize":
            raise ValueError("boom")
        return np.nan if name == "Invert" else LEVEL[name]

    script = scripted(monkeypatch, loss)
    assert script.build(1).transform == Cutout(0.2)
    assert {name for name, _ in script.rounds()[0.5, True]} == {"Cutout", "Rotate"}


def test_where_all_fail_at_first_the_node_is_empty(monkeypatch):
    def loss(name, p, share):
        if name != "yardstick":
            raise ValueError("no fog")
        return LEVEL[name]

    found = scripted(monkeypatch, loss).build(1)
    assert isinstance(found.transform, Identity)
    assert not found.improves
    assert found.why == "every candidate failed, the first with: ValueError: no fog"


def test_where_all_fail_in_the_last_round_the_best_before_it_must_be_confirmed(monkeypatch):
    """At the probability that it was looked at with, which did not fail."""

    def loss(name, p, share):
        if share == 0.5 and p not in (None, 0.6):
            raise ValueError("too much")
        return LEVEL[name]

    script = scripted(monkeypatch, loss, first_p=(0.6, 0.5))
    found = script.build(1)
    assert (found.transform, found.p, found.improves) == (Posterize(0.2), 0.6, True)
    assert script.rounds()[0.5, False] == [("Posterize", 0.6)] * 2


def test_what_fails_on_every_long_branch_is_not_kept(monkeypatch):
    def loss(name, p, share):
        if name != "yardstick" and share == 0.5:
            raise ValueError("too long")
        return LEVEL[name]

    found = scripted(monkeypatch, loss).build(1)
    assert isinstance(found.transform, Identity)
    assert found.why == "Posterize(0.2) failed when it was to be confirmed: ValueError: too long"


def test_a_failing_yardstick_ends_the_search(monkeypatch):
    script = scripted(monkeypatch, lambda name, p, share: np.nan)
    with pytest.raises(TaskError, match=r"must train without the candidate first.*\(node/1/round/0/yardstick\)"):
        script.build(1)


def test_without_candidates_the_node_is_empty(monkeypatch):
    found = scripted(monkeypatch, space=[Identity()]).build(1)
    assert (found.improves, found.why) == (False, "there is no candidate")


@pytest.mark.parametrize(("spread", "expected"), [(1, [1.0]), (2, [1.0, 0.5]), (3, [1.0, 0.7, 0.4]), (99, "all")])
def test_the_probabilities_of_the_last_round_are_spread_over_the_list(spread, expected):
    known = tuple(i / 10 for i in range(1, 11))
    scorer = changed(spread=spread).at(bench_on(bars(0, 0.5), probabilities=known))
    assert scorer.last_probabilities() == (list(known[::-1]) if expected == "all" else expected)


# ---- lengths and rates


def test_a_branch_falls_to_zero_in_a_line():
    scorer = OPTIONS.at(bench_on(bars(0, 0.5)))
    assert scorer.rates(4) == pytest.approx([0.05, 0.0375, 0.025, 0.0125])


@pytest.mark.parametrize("calibrate", [True, False])
def test_losses_are_those_at_the_best_temperature_unless_plain_ones_are_asked_for(calibrate):
    bench = bench_on(bars(0, 0.5))
    scorer = changed(calibrate=calibrate).at(bench)
    policy = Tree().with_node(1, INVERT, 0.5)
    found = scorer.branch(lambda: bench.trainer.fresh(0), policy, 0.5, 7, bench.rank_rows)
    state = bench.trainer.train(bench.trainer.fresh(0), policy, scorer.rates(20), 7)
    plain, best = (
        bench.trainer.losses(state, bench.rank_rows),
        bench.trainer.calibrated_losses(state, bench.rank_rows),
    )
    assert best.mean() < plain.mean()
    assert np.array_equal(found, best if calibrate else plain)


def test_lengths_are_shares_of_a_training_but_not_too_short():
    scorer = changed(fewest=7).at(bench_on(bars(0, 0.5)))
    assert [scorer.steps(share) for share in (0.01, 0.25, 1.0)] == [7, 10, 40]


def watched_weights(trainer, monkeypatch):
    """Weak references to the weights that come out of each training."""
    train, made = trainer.train, []

    def watched(*arguments, **more):
        state = train(*arguments, **more)
        made.append(weakref.ref(state.tensors["weights"]))
        return state

    monkeypatch.setattr(trainer, "train", watched)
    return made


@pytest.mark.parametrize("folder", [False, True])
def test_only_the_last_trunk_stays_in_memory(monkeypatch, tmp_path, folder):
    bench = bench_on(bars(0, 0.5), [INVERT], run=Run.begin(tmp_path / "run" if folder else None, {"version": 1}))
    made = watched_weights(bench.trainer, monkeypatch)
    with bench.run:
        scorer = OPTIONS.at(bench)
        for number in range(1, 5):
            scorer.nodes = number
            trunk = scorer.trunk(Tree())
            gc.collect()
            assert [weights() is not None for weights in made] == [False] * (number - 1) + [True]
        assert made[-1]() is trunk().tensors["weights"]


def test_a_lost_trunk_leaves_no_others_in_memory(monkeypatch, tmp_path):
    """Three nodes, then everything is lost but the store: the third trunk grows from its root once more."""

    def third(run):
        bench = bench_on(bars(0, 0.5), [INVERT], run=run)
        scorer = OPTIONS.at(bench)
        for number in range(1, 4):
            scorer.nodes = number
            trunk = scorer.trunk(Tree())
        return trunk, bench

    with Run.begin(tmp_path, {"version": 1}) as run:
        before = third(run)[0]()
    for path in (tmp_path / "checkpoints").iterdir():
        path.unlink()
    with Run.open(tmp_path) as run:
        trunk, bench = third(run)
        made = watched_weights(bench.trainer, monkeypatch)
        after = trunk()
    assert len(made) == 3
    gc.collect()
    assert made[0]() is made[1]() is None
    assert all(torch.equal(tensor, before.tensors[name]) for name, tensor in after.tensors.items())


def test_the_trunk_warms_up_and_stays_high(monkeypatch):
    bench = bench_on(bars(0, 0.5), task=Classification(**{**vars(TASK), "warmup": 0.1}))
    seen = []
    train = bench.trainer.train
    monkeypatch.setattr(
        bench.trainer,
        "train",
        lambda s, policy, rates, seed: seen.append((s.step, policy, rates)) or train(s, policy, rates, seed),
    )
    scorer = OPTIONS.at(bench)
    scorer.nodes = 1
    scorer.trunk(Tree())
    scorer.nodes = 2
    tree = Tree().with_node(1, INVERT, 0.5)
    scorer.trunk(tree)
    (zero, empty, first), (twenty, on, second) = seen
    assert (zero, empty, twenty, on) == (0, Tree(), 20, tree)
    assert first == pytest.approx([0.01, 0.02, 0.03, 0.04] + [0.05] * 16)
    assert second == [0.05] * 8


def test_retrain_begins_anew_with_a_whole_course(monkeypatch):
    bench = bench_on(bars(0, 0.5))
    seen = []
    train = bench.trainer.train
    monkeypatch.setattr(
        bench.trainer,
        "train",
        lambda s, policy, rates, seed: seen.append((s.step, list(rates))) or train(s, policy, rates, seed),
    )
    Retrain(kept=(9, 1), spread=1, repeats=1).at(bench).build_one_node(1, Tree(), None)
    assert len(seen) == len(SPACE) + 1 + 2 + 2  # each candidate, the best once more, the confirmation; 3 yardsticks
    assert all(step == 0 and rates == TASK.rates(40) for step, rates in seen)


# ---- on the toy


LONG = changed(rungs=(0.5, 1.0), spread=4, trunk=0.25)
WHOLE = Retrain(rungs=(1.0, 1.0), kept=(9, 1), spread=4)


@pytest.mark.parametrize("options", [LONG, WHOLE], ids=["anneal", "retrain"])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_finds_the_transform_that_helps(options, seed):
    """Bright bars to learn from, bright and dark ones to be judged by: Invert, at some of the samples."""
    data = bars(0, 0.5, val=128, seed=seed, wrong=0.1)
    found = options.at(bench_on(data, SPACE, (0.25, 0.5, 0.75, 1.0), seed)).build_one_node(1, Tree(), None)
    assert found.transform == INVERT
    assert found.p < 1  # else the bright ones are forgotten
    assert found.improves
    assert found.gain > 2 * found.gain_se > 0


def test_where_nothing_helps_nothing_is_found():
    """Bright bars on both sides: dark ones are of no use."""
    found = changed(sure=2.0).at(bench_on(bars(0, 0), [INVERT, Solarize(1.0)])).build_one_node(1, Tree(), None)
    assert not found.improves


def touchy_model():
    """A model that has no answer to a picture of one grey."""

    class Touchy(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(64, 2)

        def forward(self, x):
            x = x.flatten(1)
            return self.fc((x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True))

    return Touchy()


TOUCHY = Classification(model=touchy_model, steps=40, batch_size=32, lr=0.05, device="cpu")


def test_failed_candidates_are_told_in_the_result():
    space = [wrap(raises, name="Fog"), wrap(blank, name="Blank"), INVERT, AutoContrast(0.2)]
    result = search_tree(bars(0, 0.5), TOUCHY, space, depth=1, scorer=OPTIONS, probabilities=(0.5, 1.0), check=0)
    assert {node.transform for node in result.tree.nodes.values()} == {INVERT}
    told = [note for note in result.notes if "never chosen" in note]
    assert len(told) == 2
    assert told[0].startswith(
        "Fog failed and was never chosen: TransformError: Fog (test_anneal.raises) raised ValueError"
    )
    assert told[1] == "Blank failed and was never chosen: 32 losses are not finite"
    failed = [row for row in result.history if row.get("failed")]
    assert [row["candidate"] for row in failed] == ["Fog", "Blank"]  # one round, and out
    assert all("loss" not in row for row in failed)


def test_where_every_candidate_fails_the_user_is_told():
    space = [wrap(raises, name="Fog"), wrap(blank, name="Blank")]
    result = search_tree(bars(0, 0.5), TOUCHY, space, depth=3, scorer=OPTIONS, check=0)
    assert result.tree == Tree()
    assert result.notes[1].startswith("Node 1 is empty: every candidate failed, the first with: TransformError: Fog")
    assert len(result.notes) == 4  # the first is about the few samples
    assert result.cost.scorings == 3  # nothing more is tried


def test_a_model_that_does_not_train_at_all_is_an_error():
    wild = Classification(model=touchy_model, steps=40, batch_size=32, lr=999.0, momentum=0.99, device="cpu")
    data = bars(0, 0.5)
    data.samples[data.indices("train")[0]] = 0
    with pytest.raises(TaskError, match="the model must train without the candidate first, but 32 losses are not"):
        search_tree(data, wild, [INVERT], depth=1, scorer=OPTIONS, check=0)


# ---- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(rungs=(0.5,)), "rungs must be two numbers"),
        (dict(rungs=0.5), "rungs must be two numbers, got 0.5"),
        (dict(rungs=(0.5, 0.25)), "rungs must not become shorter"),
        (dict(rungs=(0, 0.25)), r"rungs must be a number in \(0, 10\], got 0"),
        (dict(rungs=(0.25, np.nan)), r"rungs must be a number in \[0, 10\], got nan"),
        (dict(kept=(2, 2, 2)), "kept must be two numbers"),
        (dict(kept=(0, 2)), "kept must be a whole number from 1"),
        (dict(kept=(2, 0.5)), "kept must be a whole number from 1"),
        (dict(first_p=(0.5,)), "first_p must be two numbers"),
        (dict(first_p=(2, 0.5)), r"first_p must be a number in \(0, 1\], got 2"),
        (dict(first_p=(0.5, 0)), r"first_p must be a number in \(0, 1\], got 0"),
        (dict(trunk=-1), "trunk must be a number in"),
        (dict(between=-1), "between must be a number in"),
        (dict(sure="very"), "sure must be a number in"),
        (dict(fewest=0), "fewest must be a whole number from 1"),
        (dict(shortlist=0), "shortlist must be a whole number from 1"),
        (dict(spread=0.5), "spread must be a whole number from 1"),
        (dict(repeats=0), "repeats must be a whole number from 1"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        changed(**options)


@pytest.mark.parametrize(
    "options", [OPTIONS, changed(kept=(3, 9), shortlist=3, spread=1), Retrain(rungs=(0.5, 0.5), kept=(9, 1))]
)
@pytest.mark.parametrize("more", [[], [Rotate(0.6), Rotate(1.0), Cutout(0.6)]], ids=["single", "several"])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_plan_is_never_less_than_what_is_done(options, more, depth):
    plan = {}
    result = search_tree(
        bars(0, 0.5),
        TASK,
        [*SPACE, *more],
        depth=depth,
        scorer=options,
        probabilities=(0.25, 0.5, 1.0),
        check=0,
        watch=lambda what, **about: what == "plan" and plan.update(about),
    )
    assert result.cost.scorings <= plan["scorings"]
    if depth == 1 and not more:
        assert result.cost.scorings == plan["scorings"]


@pytest.mark.parametrize(
    ("share", "total", "expected"),
    [
        (0.08, 10_000, 800),  # its share of a training
        (0.08, 1_000, 150),  # at least 150
        (0.08, 400, 100),  # but no more than a quarter for that
        (0.08, 3, 1),
        (1.0, 100, 100),
    ],
)
def test_how_long_a_branch_is(share, total, expected):
    assert Anneal().steps(share, total) == expected
