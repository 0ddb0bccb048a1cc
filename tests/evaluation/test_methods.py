"""Published methods as rows of an evaluation."""

from dataclasses import dataclass

import pytest

import augtree as at
from augtree.baselines import Baseline
from augtree.errors import ArgumentError
from augtree.transforms import DropNodes
from support.contrastive import graphs, task

GRAPHS = graphs(80)
QUICK = task(model="gin", steps=4, options={"hidden": 8})
DROP = DropNodes(0.2)


@dataclass(frozen=True)
class Dropping(Baseline):
    """A contrastive method that is a policy in truth."""

    name = "dropping"
    settings = ("contrastive",)
    domains = ("graph",)
    uses_labels = False

    def fit(self, trainer, seed):
        return trainer.fit(DROP, seed), {}


class Peeping(Dropping):
    uses_labels = True


def accuracies(table, row):
    return [each["accuracy"] for each in table.rows if each["row"] == row]


def test_a_method_trains_an_encoder_and_is_judged_as_a_policy_is():
    how = {"seeds": [1], "protocol": "tree-paper"}
    found = at.evaluate(GRAPHS, QUICK, {"method": Dropping()}, **how)
    policy = at.evaluate(GRAPHS, QUICK, {"policy": DROP}, **how, known_labels="none")
    assert accuracies(found, "method") == accuracies(policy, "policy")
    assert found.seen == 0
    assert not any("with the labels" in note for note in found.notes)


def test_one_that_reads_labels_is_judged_on_other_samples():
    found = at.evaluate(GRAPHS, QUICK, {"method": Peeping()}, seeds=[1], protocol="tree-paper")
    assert found.seen == len(GRAPHS.indices("train")) + len(GRAPHS.indices("val"))
    told = "method: trained with the labels of the training samples, unlike other rows."
    assert told in found.notes


def test_one_that_does_not_fit_is_refused():
    with pytest.raises(ArgumentError, match="policies/mixup must have a supervised task, got 'contrastive'"):
        at.evaluate(GRAPHS, QUICK, {"mixup": "mixup"}, seeds=1)
