"""What holds for every registered method."""

import inspect
import json
import pickle

import pytest
import torch

from augtree.baselines import METHODS
from augtree.baselines.base import SETTINGS, Baseline
from augtree.baselines.methods import restore_method
from augtree.baselines.registry import restore
from augtree.comparison import compare, resume
from augtree.errors import ArgumentError, RunError
from augtree.policies.codec import Reader
from augtree.runs.events import RowTrained
from augtree.tasks import TASKS
from augtree.transforms import Identity
from support.blobs import same
from support.contrastive import task as contrastive
from support.methods import TRAINED, fitting, grouped, grouped_graphs, quick, task

TRAININGS = {
    "randaugment-tuned": 3,  # a magnitude each
    "fast-autoaugment": 3,  # two folds, and the last one
    "scale": 1,
    "mixup": 1,
    "cutmix": 1,
    "lisa": 1,
    "targeted": 1,
    "group-dro": 1,
    "graphaug": 3,  # backwards: the reward model, the generator, the training on its graphs
    "joao": 1,
    "infograph": 0.5,
    "uda": 1,
    "random-encoder": 0,
    "random-tree": 1,
    "greedy-sequence": 17,  # 15 operations, one without any, and the last one
    "exhaustive": 7,  # 3 trees and one without, the best and one without to confirm it, and the last one
    "paper": 3,  # a node's in each of two groups, and the weighted one
}
"""Trainings that each takes with the options of `quick`."""


@pytest.mark.parametrize(("name", "setting"), TRAINED)
def test_a_method_trains_repeatably_and_costs_what_it_counts(name, setting):
    method = quick(name)
    asked, data = fitting(method, setting)
    method.check(asked, data)
    trainer = asked.prepare(data)
    with torch.random.fork_rng():
        torch.manual_seed(99)
        state, row = method.fit(trainer, 1)
    assert state.is_finite
    trained = trainer.passes.backward / (trainer.total_steps * trainer.passes_per_step / 2)
    assert trained == TRAININGS[name]
    again, other_row = method.fit(asked.prepare(data), 1)
    assert same(again, state)  # whatever state the generators are in
    assert other_row == row
    json.dumps(row, allow_nan=False)
    RowTrained(name, 1, row).describe()  # figures may be texts
    assert not torch.equal(method.fit(trainer, 2)[0].tensors["weights"], state.tensors["weights"])
    assert not torch.equal(trainer.fit(Identity(), 1).tensors["weights"], state.tensors["weights"])


@pytest.mark.parametrize("name", METHODS)
def test_a_method_comes_back_from_its_value_in_a_file(name, tmp_path):
    method = quick(name)
    spec = json.loads(json.dumps(method.spec()))
    assert spec["way"] == name
    assert restore_method(spec, Reader(tmp_path / "spec.json", ())) == method
    assert pickle.loads(pickle.dumps(method)) == method


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_what_it_is(name):
    method = METHODS[name]
    assert method.name == name == name.lower()
    assert method.kind in ("method", "control")
    assert set(method.settings) <= set(SETTINGS.values())
    assert set(method.domains) <= {"image", "graph"}
    assert method.settings
    assert method.domains
    for text in (method.about, method.source, method.costs):
        assert text
        assert "\n" not in text
    assert len(inspect.getdoc(inspect.getmodule(method))) > 60  # where the file names its source
    assert method.costs[0].isdigit() or method.costs.startswith(("about ", "up to "))


@pytest.mark.parametrize("name", METHODS)
def test_a_method_refuses_tasks_and_data_that_it_does_not_fit(name):
    method = quick(name)
    images, rings = grouped(), grouped_graphs()
    tasks = {"supervised": task(), "contrastive": contrastive(steps=2)}
    for setting, asked in tasks.items():
        if setting not in method.settings:
            with pytest.raises(ArgumentError, match=f"{name} must have a .* task, got '{asked.kind}'"):
                method.check(asked, images if "image" in method.domains else rings)
    asked, data = fitting(method)
    for domain, other in (("image", images), ("graph", rings)):
        if domain not in method.domains:
            with pytest.raises(
                ArgumentError, match=f"{name} must have data of the kind {data.domain}, got '{domain}'"
            ):
                method.check(asked, other)


def test_every_task_has_a_setting():
    assert {*SETTINGS} == {*TASKS}


def test_a_method_of_another_version_is_refused(tmp_path):
    reader = Reader(tmp_path / "spec.json", ())
    with pytest.raises(RunError, match="was begun by another version of augtree, with another mixup"):
        restore({"way": "mixup", "beta": 3}, reader)
    with pytest.raises(RunError, match="a method must be one of .*, got 'mixdown'"):
        restore_method({"way": "mixdown"}, reader)


def test_methods_in_a_comparison_by_name_and_as_values_resume_to_the_same_rows(tmp_path):
    data, asked = grouped(), task()
    policies = {"none": None, "mixup": "Mixup", "mine": METHODS["mixup"](alpha=0.2), "group-dro": "group-dro"}
    found = compare(data, asked, policies, seeds=[3], out=tmp_path)
    rows = {row["policy"]: row for row in found.rows}
    trainer = asked.prepare(data)
    state, learned = METHODS["group-dro"]().fit(trainer, 3)
    assert rows["group-dro"]["test"] == trainer.measures(state, data.indices("test"))["loss"]
    assert {name: rows["group-dro"][name] for name in ("weight a", "weight b")} == learned
    assert rows["mixup"]["test"] != rows["mine"]["test"] != rows["none"]["test"]
    assert rows["mixup"]["cost"] == rows["none"]["cost"] > 1
    assert list(found.published) == ["mixup", "mine", "group-dro"]
    (tmp_path / "comparison.json").unlink()
    again = resume(tmp_path, data=data, task=asked)
    assert again.rows == found.rows


def test_methods_in_a_contrastive_comparison_resume_to_the_same_rows(tmp_path, quick_disk):
    data, asked = grouped(), contrastive(options={"width": 2}, steps=3)
    found = compare(data, asked, {name: name for name in ("none", "lisa", "scale")}, seeds=1, out=tmp_path)
    assert found.published == ["lisa", "scale"]
    rows = {row["policy"]: row for row in found.rows}
    assert rows["scale"]["p Rotate"] != 0.5
    assert rows["lisa"]["cost"] == rows["none"]["cost"]
    trainer = asked.prepare(data)
    for name in ("lisa", "scale"):
        state, _ = METHODS[name]().fit(trainer, 0)
        assert rows[name]["test"] == trainer.measures(state, data.indices("test"))["accuracy"]
    (tmp_path / "comparison.json").unlink()
    assert resume(tmp_path, data=data, task=asked).rows == found.rows


def test_a_method_that_does_not_fit_is_refused_before_anything_runs(tmp_path):
    one_group = grouped()
    one_group = one_group.take(one_group.indices(group="a"))
    with pytest.raises(ArgumentError, match=r"policies/lisa must have training samples of two groups .* got \['a'\]"):
        compare(one_group, task(), {"none": None, "lisa": "lisa"}, seeds=1, out=tmp_path / "run")
    with pytest.raises(ArgumentError, match="policies/x: group-dro must have training samples of two groups"):
        compare(one_group, task(), {"x": METHODS["group-dro"]()}, seeds=1, out=tmp_path / "run")
    with pytest.raises(ArgumentError, match="policies/mixup must have a supervised task, got 'contrastive'"):
        compare(grouped(), contrastive(), {"mixup": "mixup"}, seeds=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_a_method_leaves_out_is_an_error():
    class Mine(Baseline):
        name, settings, domains = "mine", ("supervised",), ("image",)

    with pytest.raises(NotImplementedError):
        Mine().fit(task().prepare(grouped()), 0)
