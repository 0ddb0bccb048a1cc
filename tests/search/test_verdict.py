"""The verdict of a search in words."""

from dataclasses import replace

import pytest

from augtree import Tree
from augtree.search.result import FreePolicy
from augtree.search.verdict import FIRST_MIXTURE, UNTESTED
from augtree.transforms import Identity, OneOf
from augtree.transforms.traits import EVERY_SAMPLE
from support.results import FREE, RESULT
from support.searches import INVERT


def with_rival(behind, error):
    """The result with RandAugment that far behind the tree."""
    return replace(RESULT, free={**FREE, "randaugment": FreePolicy(0.50 + behind, 0.05, 0.85, behind, error)})


@pytest.mark.parametrize(
    ("result", "best", "beats", "sentence"),
    [
        (replace(RESULT, free={}), None, None, "The tree was not compared with the free policies."),
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
SINGLE = Tree().with_node(1, INVERT, 1.0)
COOLED = replace(
    RESULT, tree=MIXTURE, mixture=MIXTURE, single=SINGLE, free={}, members=["a", "b"], measures={"accuracy": 0.875}
)
STAYS = "No single policy was clearly better than the mixture of what is in play: the mixture is the answer."
MODEL = "The finished model is the average of 2 cool-downs: accuracy 0.8750 on the validation data that chose it."


def finding(factor="Flip", left=("",), look=1, harm=0.1234):
    return {"look": look, "at": 0.3, "factor": factor, "harm": harm, "se": 0.02, "groups": {}, "left": list(left)}


@pytest.mark.parametrize(
    ("findings", "sentence"),
    [
        (
            [
                finding(left=(), harm=0.01),
                finding("Fog", left=(), harm=-0.03),
                finding(EVERY_SAMPLE, left=(), harm=0.01),  # neither harm nor help: not worth a word
            ],
            (
                "Nothing that was tested does harm: everything is in play."
                " Stays, with no clear harm or help: flips left-right, Fog."
            ),
        ),
        (
            [finding(left=(), harm=0.3, look=0), finding(left=(), harm=-0.2), finding("Fog", left=(), harm=0.0)],
            (
                "Nothing that was tested does harm: everything is in play."
                " Clearly helps: flips left-right (0.200 ± 0.020)."
                " Stays, with no clear harm or help: Fog."
            ),
        ),
        (
            [finding(left=(), harm=0.0), finding(EVERY_SAMPLE, left=(), harm=-0.2)],
            (
                "Nothing that was tested does harm: everything is in play."
                " Clearly helps: augmenting every sample (0.200 ± 0.020)."
                " Stays, with no clear harm or help: flips left-right."
            ),
        ),
        (
            [{**finding(), "kept": {"": 0.25}}, {**finding("QuarterTurn"), "kept": {}}],
            (
                "Out of play: flips left-right: predictions for such samples keep 25 % of their information"
                " (your classes have a left and a right)."
                " Out of play: quarter turns, untested, since the model knew too little."
            ),
        ),
        (
            [{**finding(left=()), "kept": {"": 0.95}}],
            (
                "Nothing that was tested does harm: everything is in play."
                " Your data bear flips left-right (95 % of the information kept)."
            ),
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
            [finding(EVERY_SAMPLE)],
            "Augmenting every sample costs 0.123 ± 0.020 in validation loss: half of them are left alone.",
        ),
    ],
)
def test_the_verdict_says_what_left_play(findings, sentence):
    assert replace(COOLED, findings=findings).verdict() == f"{sentence} {STAYS} {MODEL}"


def test_where_nothing_was_tested_the_policy_is_called_the_mixture_once():
    for single in (SINGLE, MIXTURE):
        assert replace(COOLED, findings=[], single=single).verdict() == f"{UNTESTED} {FIRST_MIXTURE} {MODEL}"
    better = replace(COOLED, findings=[], tree=SINGLE).verdict()
    assert better.startswith(f"{UNTESTED} ")
    assert better.endswith(f" was clearly better than the mixture of what is in play. {MODEL}")
    assert FIRST_MIXTURE not in better


def test_where_nothing_was_compared_with_the_mixture_no_comparison_is_claimed():
    alone = replace(COOLED, findings=[finding("Fog")], single=MIXTURE, members=["a"])
    assert "Fog, which cost 0.123 ± 0.020 in validation loss. The policy is the mixture of what is in play. " in (
        alone.verdict()
    )
    assert "clearly better" not in alone.verdict()


def test_each_factor_that_left_has_a_sentence():
    findings = [finding(left=(), look=0), finding("Flip"), finding("Fog"), finding("Cutout", left=(), harm=0.0)]
    found = replace(COOLED, findings=findings)
    assert list(found.out_of_play) == ["Flip", "Fog"]
    assert found.verdict().count("Out of play: ") == 2
    assert "Stays, with no clear harm or help: Cutout." in found.verdict()


def test_the_verdict_says_what_won():
    tree = Tree().with_node(1, INVERT, 1.0)
    text = replace(COOLED, tree=tree, findings=[finding(left=())]).verdict()
    assert "Invert(0.2) was clearly better than the mixture of what is in play." in text
    assert STAYS not in text


def test_the_verdict_says_whether_the_model_is_an_average():
    sentence = "The finished model is one cool-down: accuracy 0.8750 on the validation data that chose it"
    alone = replace(COOLED, members=["a"], cooled={"a": (0.4, 0.875)})
    assert alone.verdict().endswith(f"{sentence}.")
    better = replace(alone, cooled={**alone.cooled, "b": (0.5, 0.85)})
    assert better.verdict().endswith(f"{sentence}; averaging did not help.")
    assert "The finished model" not in replace(COOLED, metric="auroc").verdict()
