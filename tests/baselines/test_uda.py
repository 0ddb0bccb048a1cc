"""UDA: the task's consistency by RandAugment, with training-signal annealing."""

from dataclasses import replace

import numpy as np
import pytest

from augtree.baselines.uda import Uda
from augtree.errors import ArgumentError
from augtree.policies.presets import graph_randaugment
from augtree.tasks import SemiSupervised
from augtree.transforms import Identity, RandAugment
from support.blobs import blobs, same, task
from support.contrastive import graphs

PICTURES, GRAPHS = blobs().with_labels(8), graphs().with_labels(8)
TASK = SemiSupervised(model="cnn", options={"width": 2}, steps=6, batch_size=4, ratio=2, lr=0.05, device="cpu")
GRAPH_TASK = replace(TASK, model="gin", options={"layers": 1, "hidden": 4})


@pytest.mark.parametrize(
    ("asked", "data", "policy"), [(TASK, PICTURES, RandAugment()), (GRAPH_TASK, GRAPHS, graph_randaugment())]
)
def test_it_is_a_training_with_randaugment_and_the_schedule(asked, data, policy):
    method = Uda(tsa="exp")
    method.check(asked, data)
    trainer = asked.prepare(data)
    state, figures = method.fit(trainer, 3)
    annealed = replace(asked, tsa="exp").prepare(data)
    assert same(state, annealed.fit(policy, 3))
    assert same(state, method.fit(asked.prepare(data), 3)[0])
    assert not same(state, method.fit(asked.prepare(data), 4)[0])
    assert not same(state, asked.prepare(data).fit(policy, 3))  # without annealing
    assert not same(state, annealed.fit(Identity(), 3))
    assert (trainer.passes.forward, trainer.passes.backward) == (6 * 4 * 5, 6 * 4 * 5)
    assert figures == {}


def test_a_schedule_of_the_task_is_kept():
    asked = replace(TASK, tsa="log")
    trainer = asked.prepare(PICTURES)
    assert same(Uda().fit(trainer, 1)[0], asked.prepare(PICTURES).fit(RandAugment(), 1))
    assert trainer.passes.forward == 6 * 4 * 5


def test_the_fill_of_the_data_is_randaugment_s():
    data = replace(PICTURES, fill=9)
    state, _ = Uda().fit(TASK.prepare(data), 0)
    annealed = replace(TASK, tsa="linear").prepare(data)
    assert same(state, annealed.fit(RandAugment(fill=9), 0))
    assert not np.array_equal(RandAugment(fill=9)(data.samples, seed=0), RandAugment()(data.samples, seed=0))


def test_what_it_is_not_for_is_refused():
    with pytest.raises(ArgumentError, match="must have a semisupervised task, got 'classification'"):
        Uda().check(task(), blobs())
    with pytest.raises(ArgumentError, match="tsa must be one of linear, log, exp"):
        Uda(tsa="none")
    assert Uda().spec() == {"way": "uda", "tsa": "linear"}
