"""What a run is about, in its folder and back."""

import dataclasses
import json

import pytest
import torch

import augtree as at
from augtree.errors import DataError, OtherRunError, PolicyFileError, RunError
from augtree.policies.codec import Reader
from augtree.runs.spec import begin_run, restore, restore_data, restore_space, restore_task, run_spec, space_spec
from augtree.runs.store import Run
from augtree.runs.warnings import SHORT_TRAINING
from augtree.tasks import Classification, Contrastive
from augtree.transforms import Flip, Posterize, RandAugment, Space
from support.damage import write_spec
from support.searches import INVERT, TASK, bars

DATA = bars(0, 0.5, 16, 16)
CNN = Classification(model="cnn", options={"width": 2}, steps=3, batch_size=8, device="cpu", optimizer="sgd")


@pytest.fixture(autouse=True)
def _quick_disk(quick_disk):
    pass


@pytest.fixture
def reader(tmp_path):
    return Reader(tmp_path / "spec.json", ())


def begun(folder, data=DATA, task=CNN, seed=None, **more):
    return begin_run(folder, run_spec("test", data, task, **more), task.prepare(data), seed)


# ---- forth


def test_a_specification_names_the_data_and_holds_the_task():
    spec = run_spec("test", DATA, CNN, seed=3)
    assert spec == {
        "version": 1,
        "kind": "test",
        "data": {"name": "bars", "source": None, "fingerprint": DATA.fingerprint},
        "task": CNN.spec(),
        "seed": 3,
    }
    assert json.loads(json.dumps(spec)) == spec


def test_a_run_counts_the_passes_of_its_trainer(tmp_path):
    trainer = CNN.prepare(DATA)
    with begin_run(tmp_path / "a", run_spec("test", DATA, CNN), trainer) as run:
        unit = run.unit("a", lambda: (trainer.fit(at.Tree(), 0, 3) and {}, None))
        assert (unit.forward, unit.backward) == (3 * 8, 3 * 8)
        assert run.fact("status") == "begun"


def test_what_trainings_begin_with_is_part_of_a_run_with_a_seed(tmp_path):
    with begun(tmp_path / "a", seed=0) as run:
        assert run.spec["begins"] == CNN.prepare(DATA).identity(0)
    with pytest.raises(OtherRunError, match="differs in /begins/weights"):
        begun(tmp_path / "a", seed=1)
    with begun(tmp_path / "b") as run:
        assert "begins" not in run.spec


def test_changed_surroundings_are_notes(tmp_path):
    long = dataclasses.replace(CNN, steps=SHORT_TRAINING)  # without a note on its length
    with begun(tmp_path / "a", task=long) as run:
        assert run.notes == []
        run.record_fact("surroundings", {**run.fact("surroundings"), "torch": "0.1", "threads": 99})
    with begun(tmp_path / "a", task=long) as run:
        assert run.notes == [
            f"The run began with torch 0.1 and goes on with {torch.__version__}: the tree may differ.",
            f"The run began with threads 99 and goes on with {torch.get_num_threads()}: the tree may differ.",
        ]
        assert run.fact("surroundings")["torch"] == "0.1"  # those of its beginning stay


def test_a_beginning_that_fails_leaves_no_lock(tmp_path, monkeypatch):
    def broken(self, key, value):
        raise RunError("no facts today")

    with monkeypatch.context() as patch:
        patch.setattr(Run, "record_fact", broken)
        with pytest.raises(RunError, match="no facts today"):
            begun(tmp_path / "a")
    begun(tmp_path / "a").close()


# ---- back


def test_a_run_is_restored_from_its_folder(tmp_path):
    digits = at.data.load("digits", train=20, val=20)
    begun(tmp_path / "a", digits, space=space_spec(Space([INVERT])), budget="10m").close()
    run = restore(tmp_path / "a")
    assert (run.data.fingerprint, run.task, run.budget) == (digits.fingerprint, CNN, "10m")
    assert run.spec["kind"] == "test"
    assert restore_space(run.spec["space"], run.reader) == Space([INVERT])


def test_a_budget_that_is_no_part_of_the_specification_is_a_fact(tmp_path):
    with begun(tmp_path / "a") as run:
        run.record_fact("budget", 2.5)
    assert restore(tmp_path / "a", data=DATA).budget == 2.5
    begun(tmp_path / "b").close()
    assert restore(tmp_path / "b", data=DATA).budget is None


def test_a_task_that_is_given_again_is_taken(tmp_path):
    begun(tmp_path / "a", task=TASK).close()
    with pytest.raises(RunError, match=r"is a function \(support.searches.small_model\): give the task again, task="):
        restore(tmp_path / "a", data=DATA)
    assert restore(tmp_path / "a", data=DATA, task=TASK).task is TASK


def test_data_in_arrays_must_be_given_again(tmp_path):
    spec = run_spec("test", DATA, CNN)["data"]
    with pytest.raises(RunError, match=r"a was made on arrays: give them again, augtree.resume\('.*a', data=...\)"):
        restore_data(spec, tmp_path / "a")
    assert restore_data(spec, tmp_path / "a", DATA) is DATA


def test_a_source_that_data_cannot_come_from_is_refused(tmp_path):
    for source in ({"sourze": "digits"}, {}):
        spec = {"name": "digits", "source": source, "fingerprint": ""}
        with pytest.raises(RunError, match="spec.json: /data/source must be arguments of augtree.data.load"):
            restore_data(spec, tmp_path / "a")


def test_data_that_have_changed_are_refused(tmp_path):
    spec = run_spec("test", DATA, CNN)["data"]
    with pytest.raises(DataError, match="a: the data must be what the run began with, but bars has changed"):
        restore_data(spec, tmp_path / "a", bars(0, 0.5, 16, 16, seed=1))
    digits = at.data.load("digits", train=20, val=20)
    spec = {**run_spec("test", digits, CNN)["data"], "fingerprint": "of last year"}
    with pytest.raises(DataError, match=r"but digits\[train=20, val=20\] has changed"):
        restore_data(spec, tmp_path / "a")


@pytest.mark.parametrize(
    "task",
    [
        CNN,
        dataclasses.replace(CNN, preprocess=None),
        dataclasses.replace(CNN, preprocess=Flip(0.25)),
        Contrastive(model="cnn", steps=4, batch_size=16, dim=8, device="cpu", options={"width": 2}),
    ],
)
def test_tasks_come_back(task, reader):
    assert restore_task(json.loads(json.dumps(task.spec())), reader) == task


def test_a_task_of_another_version_is_refused(reader):
    for name in ("guessing", None):
        with pytest.raises(RunError, match=f"a run's task must be one of classification, .*, got {name!r}"):
            restore_task({**CNN.spec(), "task": name}, reader)


@pytest.mark.parametrize(
    "space",
    [
        Space([INVERT, Posterize(0.2)]),
        Space([RandAugment(m=5)], basics=[Flip(1.0)]),
        at.spaces.auto(DATA),
    ],
)
def test_spaces_come_back(space, reader):
    found = restore_space(json.loads(json.dumps(space_spec(space))), reader)
    assert (list(found), found.basics, found.own, found.combines) == (
        list(space),
        space.basics,
        space.own,
        space.combines,
    )


def bright(picture):
    return 255 - picture


def test_transforms_of_one_s_own_must_be_given_again(tmp_path):
    fog = at.wrap(bright, name="Fog")
    spec = space_spec(Space([INVERT, fog], basics=[Flip()], own=[fog]))
    with pytest.raises(PolicyFileError, match="Fog"):
        restore_space(spec, Reader(tmp_path / "spec.json", ()))
    assert restore_space(spec, Reader(tmp_path / "spec.json", [fog])).own == (fog,)


def test_a_space_of_an_older_version_is_refused(reader):
    with pytest.raises(
        RunError, match=r"spec.json is of a run that another version of augtree began: begin it again"
    ):
        restore_space(["Invert"], reader)


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(RunError, match="must be the folder of a run, but it has no spec.json"):
        restore(tmp_path)


# ---- what no run has written


@pytest.mark.parametrize(("place", "value", "message"), [
    (("data",), 3, r"spec\.json: /data must have name, source, fingerprint, got 3"),
    (("data", "source"), {"": 1}, r"/data/source must be arguments of augtree\.data\.load"),
    (("task",), {"task": "classification"}, r"spec\.json: /task must have task, model, preprocess, got \{"),
    (("task", "task"), ["a"], r"a run's task must be one of classification, .* got \['a'\]"),
    (("task", "model"), None, r"the run's model is a function"),
    (("task", "lighting"), 1, r"spec\.json: /task must be arguments of classification \(.*lighting"),
    (("task", "preprocess"), 5, r"a policy must be text, got 5"),
])  # fmt: skip
def test_a_specification_that_no_run_has_written_is_refused(tmp_path, place, value, message):
    begun(tmp_path).close()
    spec = json.loads((tmp_path / "spec.json").read_text())
    *above, last = place
    part = spec[above[0]] if above else spec
    part[last] = value
    write_spec(tmp_path, spec)
    with pytest.raises((RunError, PolicyFileError), match=message):
        restore(tmp_path, data=None if place == ("data", "source") else DATA)
