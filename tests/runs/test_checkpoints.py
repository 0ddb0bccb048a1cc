"""Trained states in memory and in files; what is lost is trained again, and not counted again."""

import math
import weakref

import pytest
import torch

from augtree import Tree
from augtree.runs.checkpoints import Checkpoints, LazyState
from augtree.runs.spec import begin_run
from augtree.training.state import State
from support.searches import TASK, bars

DATA = bars(0, 0.5, 16, 16)
SPEC = {"version": 1, "kind": "test"}


def state(value, step=3):
    return State({"weights": torch.full((4,), value)}, step)


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


def begun(folder):
    """A run, and its checkpoints."""
    trainer = TASK.prepare(DATA)
    run = begin_run(folder, SPEC, trainer)
    return run, Checkpoints(run, trainer)


def test_a_training_is_done_once_and_read_from_its_file(tmp_path):
    run, checkpoints = begun(tmp_path / "a")
    with run:
        made = checkpoints.training("trunk/1", lambda: state(2.0))()
    run, checkpoints = begun(tmp_path / "a")
    with run:
        read = checkpoints.training("trunk/1", lambda: pytest.fail("trained twice"))
        assert torch.equal(read().tensors["weights"], made.tensors["weights"])
        assert read().step == 3


def test_a_checkpoint_comes_back_to_the_bit(tmp_path):
    plain = {"weights": torch.randn(7, generator=torch.Generator().manual_seed(0)), "count": torch.tensor(3)}
    content = {**plain, "turned": torch.arange(6.0).view(2, 3).T, "buffer.odd": torch.tensor([math.nan, -0.0])}
    run, checkpoints = begun(tmp_path / "a")
    with run:
        value = checkpoints.save("trunk/1", State(content, 5))
        found = checkpoints.model("trunk/1", value, lambda: pytest.fail("it is in its file"))().tensors
    assert found.keys() == content.keys()
    for key, tensor in content.items():
        assert found[key].dtype == tensor.dtype
        assert found[key].contiguous().numpy().tobytes() == tensor.contiguous().numpy().tobytes()
    assert [path.name for path in (tmp_path / "a" / "checkpoints").iterdir()] == ["trunk-1.safetensors"]


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def tear(path):
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize("spoil", [lambda path: path.unlink(), lambda path: path.write_bytes(b"no"), tear, flip])
def test_a_training_is_done_again_where_its_file_is_lost(tmp_path, spoil):
    run, checkpoints = begun(tmp_path / "a")
    with run:
        checkpoints.training("trunk/1", lambda: state(2.0))
    spoil(tmp_path / "a" / "checkpoints" / "trunk-1.safetensors")
    trained = []
    run, checkpoints = begun(tmp_path / "a")
    with run:
        read = checkpoints.training("trunk/1", lambda: trained.append(1) or state(2.0))
        assert trained == []  # not before it is needed
        assert read().tensors["weights"].tolist() == [2.0] * 4
        assert read().step == 3
        assert trained == [1]


def test_what_is_trained_again_is_not_counted_again(tmp_path):
    def trained(folder):
        run, checkpoints = begun(folder)
        trainer = checkpoints.trainer
        return run, trainer, checkpoints.training("trunk/1", lambda: trainer.fit(Tree(), 0, 3))

    run, trainer, _ = trained(tmp_path / "a")
    with run:
        assert run.cost()[:2] == (trainer.passes.forward, trainer.passes.backward) == (3 * 16, 3 * 16)
    (tmp_path / "a" / "checkpoints" / "trunk-1.safetensors").unlink()
    run, trainer, trunk = trained(tmp_path / "a")
    with run:
        rows = DATA.indices("val")[:8]
        run.unit("node/1/a", lambda: ({}, trainer.losses(trunk(), rows)))
        assert run.cost()[:2] == (3 * 16 + 8, 3 * 16)
        assert (trainer.passes.forward, trainer.passes.backward) == (8, 0)


def test_another_state_of_that_name_is_not_taken_for_it(tmp_path):
    run, checkpoints = begun(tmp_path / "a")
    with run:
        value = checkpoints.save("trunk/1", state(2.0))
        checkpoints.save("trunk/1", state(5.0))
        assert checkpoints.model("trunk/1", value, lambda: state(2.0))().tensors["weights"].tolist() == [2.0] * 4


def test_in_memory_a_model_that_was_forgotten_is_trained_again():
    trained = []
    run, checkpoints = begun(None)
    with run:
        model = checkpoints.training("trunk/1", lambda: trained.append(1) or state(2.0))
        assert model().step == model().step == 3
        assert trained == [1]
        model.forget()
        assert model().tensors["weights"].tolist() == [2.0] * 4
        assert trained == [1, 1]
        assert checkpoints.save("trunk/1", state(2.0)) == {"sha256": "", "step": 3}
        checkpoints.drop("trunk/1")


def test_a_model_is_read_when_it_is_needed_and_kept():
    loaded = []
    model = LazyState(lambda: loaded.append(1) or state(1.0))
    assert loaded == []
    assert model() is model()
    assert loaded == [1]
    assert LazyState(lambda: pytest.fail("it is there"), state(5.0))().tensors["weights"][0] == 5


def test_a_saved_state_is_that_of_its_unit(tmp_path):
    run, checkpoints = begun(tmp_path / "a")
    with run:
        value = checkpoints.save("cool/0", state(4.0, step=7))
        assert value.keys() == {"sha256", "step"}
        model = checkpoints.model("cool/0", value, lambda: pytest.fail("it is in its file"))
        assert (model().step, model().tensors["weights"].tolist()) == (7, [4.0] * 4)
        for _ in range(2):
            checkpoints.drop("cool/0")
        assert list((tmp_path / "a" / "checkpoints").iterdir()) == []
        assert checkpoints.model("cool/0", value, lambda: state(6.0))().tensors["weights"][0] == 6


def test_of_a_units_value_no_more_is_kept_than_is_needed(tmp_path):
    """A search has many cool-downs, and the name of a policy may be long."""

    class Value(dict):
        """One that can be watched."""

    run, checkpoints = begun(tmp_path / "a")
    with run:
        value = Value(sha256="", step=3, candidate="m" * 1000)
        gone = weakref.ref(value)
        model = checkpoints.model("cool/1", value, lambda: state(2.0))
        del value
        assert gone() is None
        assert model().step == 3
