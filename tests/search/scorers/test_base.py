from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from augtree import Tree, spaces, wrap
from augtree.errors import TaskError
from augtree.runs.failures import LONGEST_REASON, BudgetSpentError
from augtree.search.scorers import base
from augtree.search.scorers.base import Entry, Score, Scored, best, confirmed, distinct, halves, nothing_to_choose
from augtree.transforms import AutoContrast, Identity, Invert, Posterize, Rotate
from augtree.transforms.base import Transform
from support.searches import INVERT, SPACE, bars, context_on

YARD = np.array([1.0, 2.0, 3.0, 6.0])
HALF = Entry(INVERT, 0.5)


@pytest.fixture
def context():
    return context_on(bars(0, 0.5, 16, 16))


def scored(context, work, entry=HALF, key="node/1/a", **more):
    return context.score(key, {"node": 1}, entry, YARD, work, **more)


# ---- candidates, halves, numbers


def test_distinct_leaves_out_identity_and_magnitudes_without_effect():
    space = [Identity(), AutoContrast(0.2), AutoContrast(0.4), Rotate(0.2), Rotate(0.4), Invert(1.0), Rotate(0.2)]
    assert distinct(space) == [AutoContrast(0.2), Rotate(0.2), Rotate(0.4), Invert(1.0)]


def test_distinct_keeps_functions_with_a_magnitude_of_their_own():
    """A user's function is called with its magnitude: whether that has an effect, nobody knows."""
    dims = [wrap(dim, name="Dim", magnitude=m) for m in (0.2, 0.4)]
    assert distinct(dims) == dims


@dataclass(frozen=True)
class Fog(Transform):
    """A transform of one's own; it does not promise to grow with its magnitude (`scaled`), but it has one."""

    magnitude: float = 0.5


def test_distinct_keeps_transforms_that_do_not_promise_to_grow():
    assert distinct([Fog(0.2), Fog(0.4)]) == [Fog(0.2), Fog(0.4)]


def dim(picture, magnitude):
    return (picture * (1 - magnitude)).to(picture.dtype)


def test_the_space_of_pictures_has_three_operations_without_magnitude():
    assert len(distinct(spaces.images())) == len(spaces.images()) - 1 - 3 * 4


@given(st.sets(st.integers(0, 10**9), min_size=2, max_size=40), st.integers(0, 1000))
def test_halves_are_disjoint_and_cover(rows, seed):
    rows = np.array(sorted(rows))
    one, two = halves(rows, seed)
    assert sorted([*one, *two]) == rows.tolist()
    assert len(two) - len(one) in (0, 1)
    assert np.array_equal(halves(rows, seed)[0], one)


def test_halves_depend_on_the_seed_and_not_on_the_order():
    rows = np.arange(100)
    assert len({tuple(halves(rows, seed)[0]) for seed in range(20)}) == 20
    assert np.array_equal(halves(rows[::-1], 3)[0], halves(rows, 3)[0])
    often = np.bincount(np.concatenate([halves(rows, seed)[0] for seed in range(400)]))
    assert np.abs(often - 200).max() < 4.5 * 10  # every sample in about half of them


def test_mean_and_standard_error_by_hand():
    assert base.mean(YARD) == 3.0
    assert base.se(YARD) == pytest.approx((14 / 3) ** 0.5 / 2)
    assert base.se(YARD[:1]) == 0.0


def test_best_is_by_loss_the_earlier_first_and_never_failed():
    scores = [Score(Entry(INVERT, p), loss) for p, loss in ((0.1, 3.0), (0.2, 1.0), (0.3, 1.0), (0.4, 2.0))]
    scores.append(Score(HALF, failed="boom"))
    assert [score.entry.p for score in best(scores, 3)] == [0.2, 0.3, 0.4]
    assert len(best(scores, 9)) == 4
    assert best(scores[-1:], 1) == []


def test_every_class_is_in_both_halves():
    labels = np.array([0] * 30 + [1] * 4 + [2] * 3 + [3])
    one, two = halves(np.arange(38), 5, labels)
    assert np.abs(np.bincount(labels[one], minlength=4) - np.bincount(labels[two], minlength=4)).max() <= 1
    assert sorted([*one, *two]) == list(range(38))
    several = np.eye(4, dtype=np.uint8)[labels]  # several labels a sample: just halves
    assert [len(half) for half in halves(np.arange(38), 5, several)] == [19, 19]


# ---- the confirmation


def test_a_winner_must_be_better_than_its_error():
    gains = [Score(HALF, 1.0, 0.1, 0.30, 0.2, gains=np.array([0.1, 0.5]))]  # their standard error is 0.2
    assert confirmed(HALF, gains, 1.0) == (INVERT, 0.5, True, pytest.approx(0.3), pytest.approx(0.2), "")
    found = confirmed(HALF, gains, 2.0)
    assert not found.improves
    assert found.why == "Invert(0.2) p=0.5 was best, but not on fresh data"


def test_no_gain_is_no_improvement_however_sure():
    for gain in (0.0, -1.0):
        score = Score(HALF, 1.0, 0.1, gain, 0.0, gains=np.array([gain, gain]))
        assert not confirmed(HALF, [score], 0.0).improves


def test_repeats_are_averaged_sample_by_sample():
    """They share their samples: what differs between samples stays, what differs between trainings goes."""
    repeats = [np.array([0.1, 0.5]), np.array([0.3, 0.3]), np.array([0.5, 0.7])]
    found = confirmed(HALF, [Score(HALF, 1.0, 0.1, 0.4, 0.2, gains=gains) for gains in repeats], 1.0)
    assert found.gain == pytest.approx(0.4)
    assert found.gain_se == pytest.approx(0.1)  # of 0.3 and 0.5


def test_a_winner_that_fails_when_confirmed_is_not_kept():
    found = confirmed(HALF, [Score(HALF, 1.0, 0.1, 9.0, 0.1), Score(HALF, failed="ValueError: no")], 1.0)
    assert isinstance(found.transform, Identity)
    assert not found.improves
    assert found.why == "Invert(0.2) failed when it was to be confirmed: ValueError: no"


def test_without_a_score_nothing_is_chosen():
    failed = [Score(HALF, failed="ValueError: no"), Score(HALF, failed="TypeError: nor this")]
    assert nothing_to_choose(failed).why == "every candidate failed, the first with: ValueError: no"
    assert nothing_to_choose([]).why == "there is no candidate"
    assert not nothing_to_choose(failed).improves


# ---- scores


def test_a_score_is_paired_with_the_baseline(context):
    score = scored(context, lambda: YARD - np.array([1.0, 0.0, 1.0, 2.0]))
    assert (score.entry, score.loss, score.gain) == (HALF, 2.0, 1.0)
    assert score.gain_se == pytest.approx((2 / 3) ** 0.5 / 2)
    assert score.failed == ""


def test_a_score_is_computed_once_and_read_again(context):
    first = scored(context, lambda: YARD / 3)
    again = scored(context, lambda: pytest.fail("computed twice"))
    assert again == first


def test_what_raises_is_failed_with_its_reason(context):
    def broken():
        raise ValueError("no fog " * 100)

    score = scored(context, broken)
    assert score.failed.startswith("ValueError: no fog no fog")
    assert len(score.failed) == LONGEST_REASON
    assert (score.loss, score.gain) == (np.inf, -np.inf)
    unit = context.run.find("node/1/a").value
    assert unit == {"node": 1, "candidate": "Invert(0.2)", "p": 0.5, "failed": score.failed}


@pytest.mark.parametrize(
    ("bad", "reason"), [(np.nan, "1 losses are not finite"), (np.inf, "1 losses are not finite")]
)
def test_what_is_no_number_is_failed(context, bad, reason):
    score = scored(context, lambda: np.array([1.0, bad, 2.0, 3.0]))
    assert score.failed == reason
    assert best([score], 1) == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt, BudgetSpentError, SystemExit])
def test_a_stop_is_no_failure_of_the_candidate(context, stop):
    def stopped():
        raise stop

    with pytest.raises(stop):
        scored(context, stopped)
    assert context.run.find("node/1/a") is None


def test_a_baseline_that_is_no_number_ends_the_search(context):
    with pytest.raises(TaskError, match=r"must train without the candidate first, but 2 losses are not finite \(y\)"):
        context.baseline("y", {}, lambda: np.array([np.nan, 1.0, np.inf]))


def test_a_baseline_that_raises_says_why_itself(context):
    def broken():
        raise TaskError("the model must give [samples, classes]")

    with pytest.raises(TaskError, match="must give"):
        context.baseline("y", {}, broken)


def test_every_score_is_an_event(context):
    events = []
    context.watch = events.append
    scored(context, lambda: YARD)
    scored(context, lambda: YARD)  # from the store: a progress bar must move as well
    assert events == [Scored(1, "Invert(0.2)", float(np.mean(YARD)))] * 2


# ---- the budget


def test_spent_means_that_nothing_new_begins(context):
    context.most_passes = 100
    meter = iter([(0, 0), (60, 39), (60, 39), (60, 40)])
    context.run.meter = lambda: next(meter)
    scored(context, lambda: YARD)
    scored(context, lambda: YARD, key="node/1/b")  # 99 are spent before it, 100 after
    with pytest.raises(BudgetSpentError):
        scored(context, lambda: YARD, key="node/1/c")
    assert scored(context, lambda: YARD, key="node/1/b").loss == 3.0  # what is done can be read


def test_time_is_spent_too(context):
    context.most_seconds = 1e-9
    scored(context, lambda: sum(range(10**5)) * 0 + YARD)  # takes more than the clock's smallest step
    with pytest.raises(BudgetSpentError):
        scored(context, lambda: YARD, key="node/1/b")


def test_the_context_has_two_halves_of_the_validation_data_and_nothing_else():
    data = bars(0, 0.5, 16, 21)
    context = context_on(data, [*SPACE, Invert(0.4)])
    assert sorted([*context.rank_rows, *context.confirm_rows]) == data.indices("val").tolist()
    assert context.candidates == SPACE


def test_an_entry_is_put_at_its_node():
    tree = Tree().with_node(1, INVERT, 0.5)
    assert Entry(Posterize(1.0), 0.25).at(3, tree).nodes[3] == (Posterize(1.0), 0.25)
    assert list(tree.nodes) == [1]
