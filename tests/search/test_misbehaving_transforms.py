"""Functions of a user's own that fail, at once or later, hang, or return what they must not, in a search."""

import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest
import torch

import augtree as at
from augtree import resume
from augtree.errors import CheckError, RunError, TransformError
from augtree.runs.store import Run
from augtree.search import Density, Retrain, search_tree
from augtree.search.grow import NodeBuilt
from augtree.testing import check_transform
from augtree.transforms import Flip, Space, Transform
from support.searches import INVERT, LINEAR, QUICK, corners
from support.tree_runs import files

DATA = corners(64, 128)
TASK = replace(LINEAR, batch_size=16)
CALLS = {"cooldown": dict(scorer=QUICK, budget=2), "density": dict(scorer=Density(train=0.2, sure=0), check=0)}


def search(fog, scorer="cooldown", out=None, **more):
    """A search with a function of the user's own beside others."""
    space = Space([INVERT, *fog], basics=[Flip(1.0)], own=list(fog))
    chosen = space if scorer == "cooldown" else [INVERT, *fog]
    arguments = {"depth": 2, "probabilities": (0.5, 1.0), "out": out, **CALLS[scorer], **more}
    return search_tree(DATA, TASK, chosen, **arguments)


class Counted:
    """Turns a picture upside down, which helps; call number `bad` goes wrong, and all after it."""

    def __init__(self, bad=float("inf"), wrong=None):
        self.calls, self.bad, self.wrong = 0, bad, wrong or self.fail

    def fail(self, picture):
        raise ValueError("worn out")

    def __call__(self, picture):
        self.calls += 1
        return self.wrong(picture) if self.calls > self.bad else picture.flip(1)


def fog(*arguments, **more):
    return at.wrap(Counted(*arguments), name="Fog", **more)


WRONG = {
    "raises": lambda picture: {}["fog"],
    "another shape": lambda picture: picture[:, 1:],
    "nothing": lambda picture: None,
    "NaN": lambda picture: picture * float("nan"),
    "another type": lambda picture: picture.long(),
    "hangs": lambda picture: time.sleep(30),
}


@pytest.fixture(scope="module")
def without():
    """The search without the function, by each scorer."""
    return {scorer: search([], scorer) for scorer in CALLS}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("scorer", CALLS)
def test_what_goes_wrong_at_once_is_told_and_the_search_is_the_same_without_it(without, scorer, wrong):
    found = search([fog(0, WRONG[wrong], seconds=0.02)], scorer)
    (note,) = [note for note in found.notes if "Fog" in note]
    assert note.startswith("Fog failed and ")
    assert "TransformError: Fog (Counted) " in note or "TransformError: Fog must return " in note
    assert found.tree == without[scorer].tree
    assert found.measures == without[scorer].measures


@pytest.mark.parametrize("wrong", WRONG)
def test_what_goes_wrong_at_once_fails_its_checks(wrong):
    with pytest.raises(
        CheckError, match=r"Fog \(Wrapped\) fails 1 check:\n  runs on the sample: a uint8 batch: raised"
    ):
        check_transform(fog(0, WRONG[wrong], seconds=0.02), DATA.samples[:3])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search whose function never fails, and how often it is called."""
    place, own = tmp_path_factory.mktemp("whole") / "a", fog()
    search([own], out=place)
    return place, own.function.calls


WRITTEN = ("tree.json", "mixture.json", "result.json", "model.safetensors", "history.csv")


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_what_fails_later_ends_the_search_in_one_error_and_is_resumed_when_it_is_corrected(tmp_path, whole, share):
    reference, calls = whole
    out = tmp_path / "a"
    message = r"^Fog \(.*Counted\) raised ValueError: worn out \(while (trunk|look|cool)/[\d/]+ was computed\): "
    with pytest.raises(TransformError, match=message + f"correct it and resume {out}, or leave it out"):
        search([fog(int(calls * share) - 1)], out=out)
    assert not any((out / name).exists() for name in WRITTEN)
    resume(out, data=DATA, task=TASK, transforms=[fog()])
    assert files(out) == files(reference)


def test_what_hangs_later_ends_the_search_too(whole):
    with pytest.raises(
        TransformError, match=r"must return within 0.05 seconds .* \(while .* was computed\): correct it"
    ):
        search([fog(whole[1] // 2, WRONG["hangs"], seconds=0.05)])


def test_where_the_tree_itself_fails_later_a_search_by_candidates_ends_in_one_error(tmp_path):
    """A candidate that fails is a note; but without the tree so far, there is nothing to go on from."""
    options = dict(depth=2, probabilities=(1.0,), scorer=Retrain(train=0.5, spread=1, repeats=1, sure=0), check=0)
    own, calls = fog(), []
    watch = lambda event: calls.append(own.function.calls) if isinstance(event, NodeBuilt) else None  # noqa: E731
    search_tree(DATA, TASK, [own], **options, watch=watch)
    with pytest.raises(
        TransformError, match=r"^Fog .* raised ValueError: worn out \(while node/[23]/.* was computed\): "
    ):
        search_tree(DATA, TASK, [fog(calls[0])], **options, out=tmp_path / "a")
    assert not (tmp_path / "a" / "result.json").exists()


def test_a_run_that_trains_already_keeps_to_the_space_that_it_began_with(tmp_path, cut):
    """Whether the function fails when it is tried may differ from one day to the next."""
    bad, good = [fog(0)], [fog()]
    search(bad, out=tmp_path / "bad")
    cut(6, "unit.recorded")
    with pytest.raises(cut.Error):
        search(bad, out=tmp_path / "a")
    cut(10**9)
    found = resume(tmp_path / "a", data=DATA, task=TASK, transforms=good)
    assert any(note.startswith("Fog failed and is left out: ") for note in found.notes)
    assert files(tmp_path / "a") == files(tmp_path / "bad")
    assert good[0].function.calls == 0


class Opaque:
    """A setting whose repr is another one in each process."""


@dataclass(frozen=True)
class Smoke(Transform):
    """An own class whose repr has an address, and which fails for a while."""

    setting: Opaque = field(default_factory=Opaque, compare=False)
    fails: ClassVar[bool] = True

    def draw(self, key, shape):
        if self.fails:
            raise IndexError("no such row")
        return []

    def arguments(self):
        return {}

    def __str__(self):
        return "Smoke"


def test_a_failed_transform_stays_out_though_its_repr_is_another_one_later(tmp_path, cut, monkeypatch):
    search([Smoke()], out=tmp_path / "bad")
    cut(6, "unit.recorded")
    with pytest.raises(cut.Error):
        search([Smoke()], out=tmp_path / "a")
    cut(10**9)
    monkeypatch.setattr(Smoke, "fails", False)
    found = resume(tmp_path / "a", data=DATA, task=TASK, transforms=[Smoke])
    assert any("Smoke failed and is left out: " in note for note in found.notes)
    assert files(tmp_path / "a") == files(tmp_path / "bad")


@pytest.mark.parametrize("entry", ["Rain()", repr])
def test_what_was_left_out_is_found_in_the_space_or_told(tmp_path, cut, entry):
    own = fog(0)
    cut(6, "unit.recorded")
    with pytest.raises(cut.Error):
        search([own], out=tmp_path / "a")
    cut(10**9)
    listed = [{"transform": entry if isinstance(entry, str) else entry(own), "reason": "worn out"}]
    with Run.open(tmp_path / "a") as run:
        run.record_fact("failing", listed)
    if entry is repr:  # as older versions recorded it
        found = resume(tmp_path / "a", data=DATA, task=TASK, transforms=[own])
        assert "Fog failed and is left out: worn out" in found.notes
    else:
        with pytest.raises(RunError, match=r"left out a transform that must be in its space, got Rain\(\)"):
            resume(tmp_path / "a", data=DATA, task=TASK, transforms=[own])


def test_before_anything_is_trained_a_corrected_function_is_tried_again(tmp_path, cut):
    cut(1, "unit.computed")
    with pytest.raises(cut.Error):
        search([fog(0)], out=tmp_path / "a")
    cut(10**9)
    found = resume(tmp_path / "a", data=DATA, task=TASK, transforms=[fog()])
    assert not any("Fog" in note for note in found.notes)


class Keeps:
    """Returns a view of what it got, and writes into what it got the last time."""

    def __init__(self):
        self.last = None

    def __call__(self, picture):
        if self.last is not None:
            self.last.zero_()
        self.last = picture
        return picture[:]


class Copies:
    """The same without tricks."""

    def __call__(self, picture):
        return picture.clone()


def losses(result):
    return [row["loss"] for row in result.history if "loss" in row]


@pytest.mark.parametrize("scorer", CALLS)
def test_a_view_of_the_input_spoils_neither_data_nor_results(scorer):
    before = DATA.samples.clone()
    found = search([at.wrap(Keeps(), name="Fog")], scorer)
    assert torch.equal(DATA.samples, before)
    same = search([at.wrap(Copies(), name="Fog")], scorer)
    assert (str(found.tree), found.measures) == (str(same.tree), same.measures)
    assert losses(found) == losses(same)


@dataclass(frozen=True)
class Fog(Transform):
    """Not wrapped: a class of the user's own, which fails after the trial."""

    calls: list = field(default_factory=list, compare=False)

    def draw(self, key, shape):
        self.calls.append(len(key))
        if len(self.calls) > 1:
            raise IndexError("no such row")
        return []

    def arguments(self):
        return {}


def test_errors_of_own_classes_end_the_search_in_one_error_too():
    with pytest.raises(TransformError, match=r"^Fog.* raised IndexError: no such row \(while .* was computed\): "):
        search([Fog()])
