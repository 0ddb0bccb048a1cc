"""Random and pretrained encoders: the states before any training."""

import pytest
import torch
from safetensors.torch import save_file

from augtree.baselines.untrained import Pretrained, RandomEncoder
from augtree.errors import ArgumentError
from augtree.models import Inputs, build
from support.blobs import blobs, same
from support.contrastive import graphs
from support.small_graphs import classifier_task, encoder_task


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(7)
    model = build("gin", Inputs("graph", 1, 0, 2), layers=2, hidden=4)
    save_file({name: tensor.clone() for name, tensor in model.state_dict().items()}, tmp_path / "w.safetensors")
    return str(tmp_path / "w.safetensors")


def with_file(weights):
    return encoder_task(options={"layers": 2, "hidden": 4, "weights": weights})


def test_a_random_encoder_is_the_fresh_state():
    trainer = encoder_task().prepare(graphs())
    state, figures = RandomEncoder().fit(trainer, 3)
    assert same(state, trainer.fresh(3))
    assert not same(state, trainer.fresh(4))
    assert (figures, trainer.passes.total, state.step) == ({}, 0, 0)


def test_a_random_encoder_does_not_begin_with_the_file(weights):
    trainer = with_file(weights).prepare(graphs())
    state, _ = RandomEncoder().fit(trainer, 3)
    assert same(state, encoder_task().prepare(graphs()).fresh(3))
    assert not same(state, trainer.fresh(3))
    trainer.load(state)  # so that features can be taken


def test_a_pretrained_encoder_is_the_file_s(weights):
    trainer = with_file(weights).prepare(graphs())
    method = Pretrained()
    method.check(trainer.task, trainer.data)
    state, figures = method.fit(trainer, 3)
    torch.manual_seed(7)
    model = build("gin", Inputs("graph", 1, 0, 2), layers=2, hidden=4).eval()
    batch = trainer.samples_on_device(trainer.rows)
    torch.testing.assert_close(trainer.features(state, trainer.rows), model.features(batch).detach())
    assert figures == {}


def test_without_a_file_nothing_is_pretrained():
    rule = "options/weights must name a file of weights for pretrained, got None"
    with pytest.raises(ArgumentError, match=rule):
        Pretrained().check(encoder_task(), graphs())


def test_other_settings_are_refused():
    RandomEncoder().check(encoder_task(), graphs())
    with pytest.raises(ArgumentError, match="must have a contrastive task, got 'classification'"):
        RandomEncoder().check(classifier_task(), blobs())
