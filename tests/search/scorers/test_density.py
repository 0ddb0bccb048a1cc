import math

import numpy as np
import pytest

from augtree import Tree, wrap
from augtree.errors import ArgumentError
from augtree.runs.store import Run
from augtree.search import search_tree
from augtree.search.scorers import Density
from augtree.search.scorers.base import Score
from augtree.transforms import AutoContrast, Equalize, Identity, Posterize, Solarize
from support.searches import INVERT, SPACE, TASK, bars, context_on

FIXED = [AutoContrast(0.2), Equalize(0.2), INVERT]
"""Nothing is drawn for these: their losses are known without knowing the draws."""
HS = [(0.5,), (0.25, 0.5, 1.0), tuple(i / 20 for i in range(1, 21))]


def counted(context):
    """The calls of trainer.losses, and the passes of training apart from those of judging."""
    calls = []
    losses = context.trainer.losses

    def counting(state, rows, policy=None, seed=0):
        calls.append((policy, seed))
        return losses(state, rows, policy, seed)

    context.trainer.losses = counting
    return calls


def model_of(context):
    state = context.trainer.fit(Tree(), 0, 20)
    return lambda: state


def loss_on(context, model, path):
    """The mean loss on ranking data after a sequence of transforms, by a tree that has no choice."""
    nodes = {2**i: (transform, 1.0) for i, transform in enumerate(path)}
    return context.trainer.losses(model(), context.rank_rows, Tree(nodes), 0).mean()


def expected_loss(context, model, tree):
    return sum(p * loss_on(context, model, path) for p, path in tree.paths())


BRANCHED = Tree().with_node(1, Posterize(1.0), 0.7)
SPLIT = Tree().with_node(1, Equalize(0.2), 0.7)


@pytest.mark.parametrize("rule", ["exact", "entropy"])
@pytest.mark.parametrize(("tree", "node", "p", "ways"), [(Tree(), 1, None, 1), (BRANCHED, 2, None, 2)])
def test_the_number_of_evaluations_does_not_depend_on_the_number_of_probabilities(rule, tree, node, p, ways):
    seen = set()
    for probabilities in HS:
        context = context_on(bars(0, 1), SPACE, probabilities)
        calls = counted(context)
        Density(rule=rule, train=0.5).scorer(context).build_one_node(node, tree, p)
        seen.add((len(calls), context.trainer.passes.forward, context.trainer.passes.backward))
    # each candidate and the yardstick over every way to the node; the winner and the yardstick again to confirm
    assert {calls for calls, _, _ in seen} == {ways * (len(SPACE) + 1 + 2)}
    assert len(seen) == 1


def test_with_sampling_it_does():
    counts = []
    for probabilities in HS:
        context = context_on(bars(0, 1), SPACE, probabilities)
        calls = counted(context)
        Density(rule="sampled", train=0.5).scorer(context).build_one_node(1, Tree(), None)
        counts.append(len(calls))
    assert counts == [len(SPACE) * len(probabilities) + 1 + 2 for probabilities in HS]


def test_all_candidates_of_a_node_share_their_draws():
    context = context_on(bars(0, 1))
    calls = counted(context)
    Density(train=0.5).scorer(context).build_one_node(1, Tree(), None)
    seeds = [seed for _, seed in calls]
    assert len(set(seeds[:-2])) == 1
    assert seeds[-2] == seeds[-1] != seeds[0]  # fresh draws to confirm


PAIR = SPLIT.with_node(2, INVERT, 0.4)
THREE = PAIR.with_node(3, AutoContrast(0.2), 0.6)


@pytest.mark.parametrize(
    ("tree", "node", "given"),
    [
        (Tree(), 1, None),
        (SPLIT, 3, None),
        (PAIR, 3, 0.6),
        (THREE, 6, None),
        (THREE.with_node(4, INVERT, 0.3), 5, 0.7),
    ],
)
def test_scores_are_what_every_pair_by_itself_gives(tree, node, given):
    """Against brute force: every candidate at every p in the tree, its expectation path by path."""
    context = context_on(bars(0.2, 0.7), FIXED)
    model = model_of(context)
    scores = Density().scorer(context).scores_by_expectation(node, tree, given, model)
    without = expected_loss(context, model, tree)
    pairs = {
        (candidate, p): without - expected_loss(context, model, tree.with_node(node, candidate, p))
        for candidate in FIXED
        for p in ([given] if given else context.probabilities)
    }
    for score in scores:
        assert score.gain == pytest.approx(pairs[score.entry.transform, score.entry.p], abs=1e-9)
        best = max(gain for (candidate, _), gain in pairs.items() if candidate == score.entry.transform)
        assert score.gain == pytest.approx(best, abs=1e-9)
    assert min(scores, key=lambda s: s.loss).gain == pytest.approx(max(pairs.values()), abs=1e-9)


def test_the_best_p_is_an_end_of_the_list():
    context = context_on(bars(0, 0.8), [*SPACE, Solarize(1.0)])
    scores = Density().scorer(context).scores_by_expectation(1, Tree(), None, model_of(context))
    assert {score.entry.p for score in scores} == {0.25, 1.0}
    for score in scores:
        assert score.entry.p == (1.0 if score.gain > 0 else 0.25)


def test_a_probability_that_is_given_is_taken():
    context = context_on(bars(0, 1))
    model = model_of(context)
    for rule in ("exact", "entropy", "sampled"):
        scorer = Density(rule=rule).scorer(context)
        scores = (scorer.scores_by_sampling if rule == "sampled" else scorer.scores_by_expectation)(
            3, BRANCHED, 0.3, model
        )
        assert [score.entry.p for score in scores] == [0.3] * len(SPACE)
        context.run = Run.begin(None, {})


@pytest.mark.parametrize("gain", [-0.3, -0.01, 0.0, 0.02, 0.11])
def test_entropy_has_its_p_in_closed_form(gain):
    """The minimum of loss minus temperature times entropy, looked for on a fine grid."""
    scorer = Density(rule="entropy", temperature=0.05).scorer(context_on(bars(0, 1)))
    p = np.linspace(1e-4, 1 - 1e-4, 9999)
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert scorer.best_p(gain) == pytest.approx(p[np.argmin(-p * gain - 0.05 * entropy)], abs=2e-4)


def test_entropy_at_the_ends_overflows_nothing():
    scorer = Density(rule="entropy", temperature=1e-9).scorer(context_on(bars(0, 1)))
    assert (scorer.best_p(1e9), scorer.best_p(-1e9), scorer.best_p(0.0)) == (1.0, 0.0, 0.5)


@pytest.mark.parametrize(("tree", "node"), [(Tree(), 1), (PAIR.with_node(3, AutoContrast(0.2), 0.6), 6)])
def test_entropy_weighs_the_gain_of_the_whole_tree(tree, node):
    """Below the root only a share of the samples comes to the candidate: the same gain moves p less."""
    context = context_on(bars(0.2, 0.7), FIXED)
    model = model_of(context)
    scores = Density(rule="entropy", temperature=0.05).scorer(context).scores_by_expectation(node, tree, None, model)
    p = np.linspace(1e-4, 1 - 1e-4, 9999)
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    for score in scores:
        full = expected_loss(context, model, tree) - expected_loss(
            context, model, tree.with_node(node, score.entry.transform, 1.0)
        )
        assert score.entry.p == pytest.approx(p[np.argmin(-p * full - 0.05 * entropy)], abs=2e-4)
    assert any(0.01 < abs(score.entry.p - 0.5) < 0.49 for score in scores)


def test_sampling_agrees_with_the_expectation():
    context = context_on(bars(0.2, 0.7), [INVERT, Posterize(0.2)])
    scorer, model = Density().scorer(context), model_of(context)
    differences = []
    for seed in range(100):
        context.seed = seed
        context.run = Run.begin(None, {})
        exact = scorer.scores_by_expectation(2, BRANCHED, 0.5, model)
        drawn = scorer.scores_by_sampling(2, BRANCHED, 0.5, model)
        differences.append([one.gain - two.gain for one, two in zip(exact, drawn, strict=True)])
    error = np.std(differences, axis=0, ddof=1) / 10
    assert (error > 0).all()
    assert (np.abs(np.mean(differences, axis=0)) < 4 * error).all()


def test_failed_scores_stay_failed():
    score = Score((INVERT, 1.0), failed="boom")
    assert Density().scorer(context_on(bars(0, 1))).with_p(score, 0.5, None) is score


def broken(picture):
    raise ValueError("no such picture")


@pytest.mark.parametrize("rule", ["exact", "sampled", "entropy"])
def test_a_candidate_that_raises_is_passed_over(rule):
    context = context_on(bars(0, 1), [wrap(broken, name="Fog"), INVERT])
    found = Density(rule=rule, train=0.5).scorer(context).build_one_node(1, Tree(), None)
    assert found.transform == INVERT
    assert found.improves
    failed = [unit.value for unit in context.run.units() if "failed" in unit.value]
    assert failed
    assert all(value["candidate"] == "Fog" and "no such picture" in value["failed"] for value in failed)


def test_where_all_fail_the_node_is_identity():
    context = context_on(bars(0, 1), [wrap(broken, name="Fog")])
    found = Density(train=0.5).scorer(context).build_one_node(1, Tree(), None)
    assert isinstance(found.transform, Identity)
    assert not found.improves
    assert found.why.startswith("every candidate failed, the first with: TransformError: Fog")


@pytest.mark.parametrize("rule", ["exact", "sampled", "entropy"])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_finds_what_makes_validation_data_like_the_training_data(rule, seed):
    """Bright bars to learn from, dark ones to be judged by: Invert, at every sample."""
    context = context_on(bars(0, 1, seed=seed), SPACE, (0.25, 0.5, 1.0), seed)
    found = Density(rule=rule).scorer(context).build_one_node(1, Tree(), None)
    assert (found.transform, found.p, found.improves) == (INVERT, 1.0, True)
    assert found.gain == pytest.approx(loss_before(context), rel=0.1)


def loss_before(context):
    """The yardstick's loss: with Invert nearly nothing is left of it."""
    return next(u.value["loss"] for u in context.run.units("node/1/confirm") if u.value["candidate"] == "yardstick")


def test_where_the_data_are_alike_nothing_is_found():
    found = Density().scorer(context_on(bars(0, 0), [INVERT])).build_one_node(1, Tree(), None)
    assert not found.improves
    assert found.why == "Invert(0.2) p=0.25 was best, but not on fresh data"


def test_what_is_confirmed_is_the_fall_of_the_whole_tree():
    """Below the root: only the share of the samples that comes there counts."""
    context = context_on(bars(0.2, 0.9), FIXED)
    scorer = Density(train=0.5).scorer(context)
    tree = SPLIT.with_node(2, INVERT, 0.4).with_node(3, AutoContrast(0.2), 0.6)
    found = scorer.build_one_node(6, tree, None)
    state = scorer.train(tree)
    context.rank_rows = context.confirm_rows
    grown = tree.with_node(6, found.transform, found.p)
    fall = expected_loss(context, lambda: state, tree) - expected_loss(context, lambda: state, grown)
    assert fall != 0
    assert found.gain == pytest.approx(fall, abs=1e-9)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.usefixtures("full_trees")
def test_scorings_stay_within_the_bound(depth):
    """(2^d - 1)(k + 1); never k^d. With a p below 1 at every node, all of them are scored."""
    scorer = Density(train=0.3, sure=0)
    result = search_tree(bars(0.3, 1), TASK, SPACE, depth=depth, scorer=scorer, probabilities=(0.25, 0.5), check=0)
    assert result.cost.scorings == (2**depth - 1) * (len(SPACE) + 1)
    assert result.cost.scorings == scorer.scorings(depth, SPACE, 2)
    confirmations = [row for row in result.history if row["round"] == "confirm"]
    assert len(result.history) == result.cost.scorings + len(confirmations)
    assert len(confirmations) == 2 * (2**depth - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(rule="Exact"), r"rule must be one of exact, sampled, entropy \(did you mean exact\?\), got 'Exact'"),
        (dict(train=0), r"train must be a number in \(0, 10\], got 0"),
        (dict(temperature=-1), "temperature must be a number in"),
        (dict(temperature=math.nan), "temperature must be a number in"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        Density(**options)


def test_how_sure_is_checked_too():
    with pytest.raises(ArgumentError, match="sure must be a number"):
        Density(sure="very")


def test_the_plan_counts_scorings():
    assert Density().scorings(3, SPACE, 10) == 7 * 6
    assert Density(rule="sampled").scorings(2, SPACE, 10) == 3 * 51
