"""The verdict of a forest in words: what left play in each group, and why."""

import pytest

from augtree.forests.verdict import plays_in_words
from augtree.transforms.traits import EVERY_SAMPLE


def finding(factor, left, common, **groups):
    effects = {group: {"harm": harm, "se": 0.02} for group, harm in groups.items()}
    return {"factor": factor, "harm": common, "se": 0.02, "groups": effects, "left": list(left)}


FLIP = finding("Flip", ["a", "b"], 0.15, a=0.1, b=0.2)
COST = "which cost {} ± 0.020 in validation loss (your classes have a left and a right)"


@pytest.mark.parametrize(
    ("out", "findings", "lines"),
    [
        ({}, [], []),
        ({"a": [], "b": []}, [], ["Nothing was tested."]),
        (
            {"a": [], "b": []},
            [finding("Flip", [], 0.0, a=0.0, b=0.0)],
            ["Nothing that was tested does harm in any group: everything is in play."],
        ),
        (
            {"a": [], "b": []},
            [FLIP],
            ["Everything is in play in all groups: one policy for all was better than one for each."],
        ),
        (
            {"a": ["Flip"], "b": ["Flip", EVERY_SAMPLE], "c\n": []},
            [finding("Flip", [], 0.9, a=0.9, b=0.9), FLIP, finding(EVERY_SAMPLE, ["b"], 0.01, a=0.0, b=0.3)],
            [
                f"Out of play in a: flips left-right, {COST.format('0.100')}.",
                (
                    f"Out of play in b: flips left-right, {COST.format('0.200')};"
                    " augmenting every sample, which cost 0.300 ± 0.020 in validation loss."
                ),
                "Everything is in play in c\\n.",
            ],
        ),
        (
            {"a": ["Fog", "Invert"], "b": ["Fog"]},
            [finding("Fog", ["a"], 0.1, a=0.01, b=0.0), finding("Invert", ["a"], 0.02, a=0.03, b=0.0)],
            [
                (
                    "Out of play in a: Fog, which cost 0.100 ± 0.020 in validation loss in all groups together;"
                    " Invert (0.030 ± 0.020 in validation loss)."
                ),
                "Out of play in b: Fog, as in most groups (0.100 ± 0.020 of harm in all together).",
            ],
        ),
    ],
)
def test_a_line_for_each_group_says_what_left_and_why(out, findings, lines):
    assert plays_in_words(out, findings) == lines
