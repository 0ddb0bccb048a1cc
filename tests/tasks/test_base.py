"""What all tasks have in common."""

import ast
import dataclasses
import inspect
import itertools
import math

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch_geometric.data import Data

from augtree.data import from_arrays
from augtree.errors import ArgumentError, TaskError
from augtree.tasks import Classification, Contrastive, SemiSupervised
from augtree.transforms import Identity, Rotate
from support.blobs import blobs, same

TASKS = [Classification, Contrastive, SemiSupervised]


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("schedule", "linear", "schedule must be one of constant-linear, cosine, constant, got 'linear'"),
        ("schedule", "cosin", r"\(did you mean cosine\?\), got 'cosin'"),
        ("schedule", None, "schedule must be one of"),
        ("schedule", ["cosine"], "schedule must be one of"),
        ("decay", -0.01, r"decay must be a number in \[0, 1\], got -0.01"),
        ("decay", 1.01, r"decay must be a number in \[0, 1\], got 1.01"),
        ("decay", math.nan, "decay must be a number in .* got nan"),
        ("decay", "0.3", "decay must be a number in"),
        ("decay", None, "decay must be a number in"),
        ("decay", True, "decay must be a number in"),
        ("warmup", -0.01, r"warmup must be a number in \[0, 1\], got -0.01"),
        ("warmup", math.inf, "warmup must be a number in .* got inf"),
    ],
)
def test_the_options_of_the_schedule_are_checked(kind, field, value, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        kind(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("kind", TASKS)
def test_all_are_trained_at_a_constant_rate_and_a_line_to_zero(kind):
    found = np.array(kind(lr=1.0).rates(100))
    assert found[:5] == pytest.approx(np.arange(1, 6) / 6)
    assert (found[5:70] == 1).all()
    assert found[70:] == pytest.approx(np.arange(30, 0, -1) / 30)


@pytest.mark.parametrize("kind", TASKS)
def test_the_decay_is_in_the_specification_and_is_not_that_of_weights(kind):
    task = kind(decay=0.25, weight_decay=1e-3)
    assert (task.spec()["decay"], task.spec()["schedule"]) == (0.25, "constant-linear")
    assert task.effective_weight_decay == 1e-3


@pytest.mark.parametrize("kind", TASKS)
def test_a_training_uses_the_rates_of_its_schedule(kind, monkeypatch):
    """At rate zero nothing is learned: with a decay of everything the last steps move less than the first."""
    data = blobs(48, 16, 0).with_labels(24) if kind is SemiSupervised else blobs(48, 16, 0)
    made = {"model": "cnn", "steps": 20, "batch_size": 16, "device": "cpu", "options": {"width": 4}}
    trainer = kind(**made, lr=0.05, warmup=0, decay=1, momentum=0, weight_decay=0).prepare(data)
    states = [trainer.fresh(0)]
    for rate in trainer.task.rates(20):
        states.append(trainer.train(states[-1], Identity(), [rate], 0))
    whole = trainer.fit(Identity(), 0)
    assert torch.allclose(whole.tensors["weights"], states[-1].tensors["weights"])
    moved = [float((b.tensors["weights"] - a.tensors["weights"]).norm()) for a, b in itertools.pairwise(states)]
    assert sum(moved[-5:]) < sum(moved[:5])


def test_node_features_must_be_a_table():
    graphs = [Data(x=torch.ones(3), edge_index=torch.tensor([[0, 1], [1, 2]])) for _ in range(8)]
    with pytest.raises(TaskError, match=r"node features x must be \[nodes, features\], got shape \[3\]"):
        Classification(model="gin", device="cpu").prepare(from_arrays(graphs, [0, 1] * 4, split=["train", "val"] * 4))


def test_one_sample_cannot_be_contrasted():
    with pytest.raises(ArgumentError, match="data must have at least 2 training samples, to contrast"):
        Contrastive(model="cnn", device="cpu", samples="train").prepare(blobs(1, 16, 0))


# ---- fields


def documented_fields(kind):
    """The annotated fields of a class that a docstring stands under."""
    body = ast.parse(inspect.getsource(kind)).body[0].body
    for field, after in itertools.pairwise(body):
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if isinstance(field, ast.AnnAssign) and isinstance(text, str):
            yield field.target.id


@pytest.mark.parametrize("kind", TASKS)
def test_every_field_has_a_docstring_which_the_command_line_shows(kind):
    found = {name for base in kind.__mro__[:-1] for name in documented_fields(base)}
    assert {field.name for field in dataclasses.fields(kind)} <= found


# ---- steps


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("kind", TASKS)
def test_what_changes_from_step_to_step_is_in_the_arguments_of_a_step(kind, optimizer):
    """A graph of the first step, replayed with the arguments of the others, is the training: as a GPU records it."""
    data = blobs(split=["train"] * 16 + ["unlabelled"] * 32 + ["val"] * 16 + ["test"] * 16)
    more = {"tsa": "linear", "confidence": 0.1, "ratio": 2} if kind is SemiSupervised else {}
    task = kind("cnn", steps=5, batch_size=8, optimizer=optimizer, device="cpu", options={"width": 4}, **more)
    plain, traced = task.prepare(data), task.prepare(data)
    graphs = []

    def replay(*arguments):
        if not graphs:
            before = traced.snapshot(0)
            graphs.append(make_fx(lambda *parts: traced.step(*parts))(*[tensor.clone() for tensor in arguments]))
            traced.load(before)
        with torch.no_grad():
            graphs[0](*arguments)

    traced.run_step = replay
    assert same(traced.fit(Rotate(0.6), 3), plain.fit(Rotate(0.6), 3))
