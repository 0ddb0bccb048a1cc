import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from augtree import Tree
from augtree.runs.store import Run
from augtree.search.grow import Built, Growth
from augtree.search.result import Cost, FreePolicy, Importance, TreeResult, cost, history, importances
from augtree.transforms import Cutout, Identity, Invert, OneOf
from augtree.transforms.traits import ALONE
from support.searches import INVERT

COST = Cost(1000, 500, 2.5, 12.3, 40, 1.25)
FREE = {
    "tree": FreePolicy(0.50, 0.05, 0.9, 0.0, 0.0),
    "none": FreePolicy(0.80, 0.06, 0.8, 0.30, 0.02),
    "randaugment": FreePolicy(0.60, 0.05, 0.85, 0.10, 0.01),
}
RESULT = TreeResult(
    tree=Tree().with_node(1, INVERT, 0.5),
    importances={"Invert": Importance(0.25, 0.0125)},
    history=[
        {"node": 1, "round": 0, "candidate": "yardstick", "loss": 1.0, "loss_se": 0.1, "seconds": 0.5, "forward": 9},
        {"node": 1, "round": 0, "candidate": "Fog", "p": 0.5, "failed": 'it said "no", twice', "seconds": 0.25},
    ],
    cost=COST,
    free=FREE,
    notes=["Node 2 is empty: Cutout was best, but not on fresh data."],
    deterministic=True,
)


def with_rival(behind, error):
    """The result with RandAugment that far behind the tree."""
    return replace(RESULT, free={**FREE, "randaugment": FreePolicy(0.50 + behind, 0.05, 0.85, behind, error)})


@pytest.mark.parametrize(
    ("result", "best", "beats", "sentence"),
    [
        (replace(RESULT, free={}), None, None, "The tree was not held against the free policies."),
        (
            RESULT,
            "randaugment",
            True,
            "The tree's validation loss is 0.1000 ± 0.0100 below that of randaugment, the best free policy.",
        ),
        (
            with_rival(0.015, 0.01),
            "randaugment",
            True,
            (
                "The tree's validation loss is 0.0150 ± 0.0100 below that of randaugment, the best free policy: "
                "within the noise of one training each (see compare)."
            ),
        ),
        (
            with_rival(-0.05, 0.01),
            "randaugment",
            False,
            (
                "The tree's validation loss is 0.0500 ± 0.0100 above that of randaugment, the best free policy: "
                "the search did not help. Use randaugment."
            ),
        ),
        (
            replace(RESULT, free={"tree": FREE["tree"], "none": replace(FREE["tree"], behind=0.0)}),
            "none",
            False,
            "The search found nothing that is better than none, which is free. Use none.",
        ),
    ],
)
def test_the_verdict_is_a_plain_sentence(result, best, beats, sentence):
    assert result.best_free == best
    assert result.beats_free is beats
    assert result.verdict() == sentence


# ---- the verdict of a search by cool-downs

MIXTURE = Tree().with_node(1, OneOf([Identity(), INVERT]), 1.0)
COOLED = replace(
    RESULT, tree=MIXTURE, mixture=MIXTURE, single=MIXTURE, free={}, members=["a", "b"], measures={"accuracy": 0.875}
)
STAYS = "No single policy was clearly better than the mixture of what is in play: the mixture is the answer."
MODEL = "The finished model is the average of 2 cool-downs: accuracy 0.8750 on the validation data that chose it."


def finding(factor="Flip", left=("",), look=1, harm=0.1234):
    return {"look": look, "at": 0.3, "factor": factor, "harm": harm, "se": 0.02, "groups": {}, "left": list(left)}


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        ([], "Nothing was asked for harm: all of it stays in play."),
        (
            [finding(left=(), harm=0.01), finding("Fog", left=(), harm=-0.03), finding(ALONE, left=(), harm=0.01)],
            (
                "Nothing was found to do harm: all of it stays in play."
                " Stays, as neither harm nor help could be told: flips left-right, Fog."
            ),
        ),
        (
            [finding(left=(), harm=0.3, look=0), finding(left=(), harm=-0.2), finding("Fog", left=(), harm=0.0)],
            (
                "Nothing was found to do harm: all of it stays in play."
                " Clearly helps: flips left-right (0.200 ± 0.020)."
                " Stays, as neither harm nor help could be told: Fog."
            ),
        ),
        (
            [finding(harm=0.03)],
            "Out of play: flips left-right, more likely harmful than not (0.030 ± 0.020 in validation loss).",
        ),
        (
            [finding()],
            (
                "Out of play: flips left-right, which cost 0.123 ± 0.020 in validation loss"
                " (your classes have a left and a right)."
            ),
        ),
        ([finding("Fog")], "Out of play: Fog, which cost 0.123 ± 0.020 in validation loss."),
        (
            [finding(ALONE)],
            "Augmenting every sample costs 0.123 ± 0.020 in validation loss: half of them are left alone.",
        ),
    ],
)
def test_the_verdict_says_what_left_play(findings, sentence):
    assert replace(COOLED, findings=findings).verdict() == f"{sentence} {STAYS} {MODEL}"


def test_each_factor_that_left_has_a_sentence():
    findings = [finding(left=(), look=0), finding("Flip"), finding("Fog"), finding("Cutout", left=(), harm=0.0)]
    found = replace(COOLED, findings=findings)
    assert list(found.out_of_play) == ["Flip", "Fog"]
    assert found.verdict().count("Out of play: ") == 2
    assert "Stays, as neither harm nor help could be told: Cutout." in found.verdict()


def test_the_verdict_says_what_won():
    tree = Tree().with_node(1, INVERT, 1.0)
    text = replace(COOLED, tree=tree, findings=[finding(left=())]).verdict()
    assert "Invert(0.2) was clearly better than the mixture of what is in play." in text
    assert STAYS not in text


def test_the_verdict_says_whether_the_model_is_an_average():
    text = replace(COOLED, members=["a"]).verdict()
    assert "The finished model is one cool-down, which no average beat: accuracy 0.8750 on" in text
    assert "The finished model" not in replace(COOLED, metric="auroc").verdict()


def test_the_file_holds_everything_but_the_history():
    found = json.loads(RESULT.to_json())
    assert found == {
        "tree": "Tree(1: Invert(0.2) p=0.5)",
        "verdict": RESULT.verdict(),
        "importances": {"Invert": {"gain": 0.25, "spread": 0.0125}},
        "free": {
            name: {
                "loss": p.loss,
                "loss_se": p.loss_se,
                "metric": p.metric,
                "behind": p.behind,
                "behind_se": p.behind_se,
            }
            for name, p in FREE.items()
        },
        "cost": {
            "forward": 1000,
            "backward": 500,
            "training_equivalents": 2.5,
            "seconds": 12.3,
            "scorings": 40,
            "check_equivalents": 1.25,
            "model_equivalents": 0.0,
        },
        "notes": ["Node 2 is empty: Cutout was best, but not on fresh data."],
        "deterministic": True,
        **dict(mixture=None, single=None, members=[], findings=[], cooled={}, measures={}),
    }


def test_the_history_is_a_table_that_others_can_read():
    rows = list(csv.DictReader(RESULT.history_csv().splitlines()))
    assert [row["candidate"] for row in rows] == ["yardstick", "Fog"]
    assert rows[0]["loss"] == "1.0"
    assert rows[0]["p"] == rows[0]["failed"] == ""
    assert rows[1]["failed"] == 'it said "no", twice'
    assert RESULT.history_csv().endswith("\n")


def test_words_for_people():
    assert str(COST) == (
        "2.50 training equivalents, 1.25 of them to check the result (1,000 forward and 500 backward sample passes), "
        "40 scorings, 12 s"
    )
    assert str(Cost(1000, 500, 2.04, 12.3, 21, 0.0, 1.6)) == (
        "2.04 training equivalents, 1.60 of them in the finished model (1,000 forward and 500 backward sample"
        " passes), 21 scorings, 12 s"
    )
    assert str(Importance(0.25, 0.0125)) == "0.2500 ± 0.0125"


# ---- importances


def run_with(winners, growth):
    """A run in which these gains were confirmed: node -> repeats."""
    run = Run.begin(None, {})
    built = dict(growth.built)
    for node, repeats in winners.items():
        about = {"candidate": str(built[node].transform), "p": built[node].p} if node in built else {"candidate": "x"}
        for i, gains in enumerate(repeats):
            run.unit(f"node/{node}/confirm/{i}/yardstick", lambda: ({"candidate": "yardstick"}, np.full(50, 9.0)))
            run.unit(f"node/{node}/confirm/{i}/a/winner", lambda gains=gains, about=about: (about, gains))
            other = {**about, "candidate": "one that was tried before"}
            run.unit(f"node/{node}/confirm/{i}/b/winner", lambda gains=gains, other=other: (other, -7 * gains))
    return run


def growth_of(*built):
    return Growth(3, 0, built=tuple((node, Built(transform, 0.5, improves)) for node, transform, improves in built))


ONE = growth_of((1, INVERT, True))


def drawn(seed, mean, count=400):
    return np.random.default_rng(seed).normal(mean, 1.0, count)


def test_an_importance_is_the_sum_of_confirmed_gains():
    one, two = drawn(0, 0.5), drawn(1, 0.2)
    growth = growth_of((1, INVERT, True), (2, Invert(0.4), True), (3, INVERT, False))
    run = run_with({1: [one, one + 1.0], 2: [two], 3: [drawn(2, 9)], 10: [drawn(3, 9)]}, growth)
    found = importances(growth, run, 0)
    assert list(found) == ["Invert"]
    assert found["Invert"].gain == pytest.approx(one.mean() + 0.5 + two.mean())


def test_the_largest_stands_first():
    growth = growth_of((1, INVERT, True), (2, Cutout(0.2), True))
    run = run_with({1: [drawn(0, 0.1)], 2: [drawn(1, 5.0)]}, growth)
    assert list(importances(growth, run, 0)) == ["Cutout", "Invert"]


def test_an_empty_tree_has_none():
    assert importances(growth_of((1, Identity(), False)), run_with({}, ONE), 0) == {}


def test_the_spread_is_the_standard_error():
    """Of the mean over samples; a thousand bootstraps know it to about 2 %."""
    gains = drawn(4, 0.3)
    found = importances(ONE, run_with({1: [gains]}, ONE), 0)["Invert"]
    assert found.spread == pytest.approx(gains.std() / np.sqrt(len(gains)), rel=0.1)
    assert importances(ONE, run_with({1: [gains]}, ONE), 0)["Invert"] == found
    assert importances(ONE, run_with({1: [gains]}, ONE), 1)["Invert"].spread != found.spread


def test_repeats_are_averaged_sample_by_sample():
    """Their noise goes down, that of the samples stays."""
    samples = drawn(5, 0.3)
    noise = drawn(6, 0.0)
    found = importances(ONE, run_with({1: [samples + noise, samples - noise]}, ONE), 0)["Invert"]
    assert found.spread == pytest.approx(samples.std() / 20, rel=0.1)


def test_two_appearances_share_their_samples():
    """The same gains twice: twice the gain, twice the spread, not the square root of two times."""
    gains = drawn(7, 0.3)
    growth = growth_of((1, INVERT, True), (2, INVERT, True))
    found = importances(growth, run_with({1: [gains], 2: [gains]}, growth), 0)["Invert"]
    assert found.spread == pytest.approx(2 * gains.std() / 20, rel=0.1)


def test_what_one_appearance_gains_and_another_loses_cancels():
    gains = drawn(8, 0.0)
    growth = growth_of((1, INVERT, True), (2, INVERT, True))
    found = importances(growth, run_with({1: [0.5 + gains], 2: [0.5 - gains]}, growth), 0)["Invert"]
    assert found.gain == pytest.approx(1.0)
    assert found.spread < 1e-12


# ---- history and cost


def test_history_has_a_row_for_each_scored_candidate_in_order():
    run = Run.begin(None, {})
    run.unit("trunk/1", lambda: ({"step": 3}, None))
    for name in "cab":
        run.unit(f"node/1/round/0/{name}", lambda name=name: ({"candidate": name, "loss": 1.0}, None))
    run.unit("free/none", lambda: ({"loss": 1.0}, None))
    rows = history(run)
    assert [row["candidate"] for row in rows] == ["c", "a", "b"]
    assert set(rows[0]) == {"candidate", "loss", "seconds", "forward", "backward"}


def test_cost_counts_everything_and_scorings_by_themselves():
    run = Run.begin(None, {})
    readings = iter([0, 100, 100, 164, 164, 170, 170, 180, 180, 230])
    run.meter.read = lambda: (next(readings), 0)
    run.unit("trunk/1", lambda: ({"step": 3}, None))
    run.unit("node/1/round/0/yardstick", lambda: ({"candidate": "yardstick", "round": 0}, None))
    run.unit("node/1/round/0/x", lambda: ({"candidate": "x", "round": 0}, None))
    run.unit("node/1/confirm/0/winner", lambda: ({"candidate": "x", "round": "confirm"}, None))
    run.unit("free/none", lambda: ({"loss": 1.0}, None))
    found = cost(run, 100)
    assert (found.forward, found.backward, found.training_equivalents) == (230, 0, 2.3)
    assert found.scorings == 2  # neither the confirmation nor the check
    assert found.check_equivalents == 0.5
