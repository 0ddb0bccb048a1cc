import pkgutil
import warnings
from importlib import import_module

import pytest

import augtree
from augtree.cli.console import Console, show
from augtree.runs.events import Event, Planned, RowTrained, Stepped


def kinds_of(cls):
    return {kind for child in cls.__subclasses__() for kind in {child} | kinds_of(child)}


def test_every_event_of_the_library_is_shown():
    for module in pkgutil.walk_packages(augtree.__path__, "augtree."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    mine = [kind for kind in kinds_of(Event) if kind.__module__.startswith("augtree.")]
    assert len(mine) >= 11
    for kind in mine:
        assert show.dispatch(kind) is not show.dispatch(Event), kind


def test_an_event_that_nobody_shows_is_a_warning():
    class Strange(Event):
        pass

    with pytest.warns(UserWarning, match="does not show Strange"):
        Console()(Strange())


def test_a_training_that_fails_is_told(capsys):
    watch = Console()
    watch(RowTrained("mine", 1, {}, "TaskError: it diverged"))
    watch(RowTrained("mine", 2, {"test": 0.5, "worst_group": None}))
    assert capsys.readouterr().out == "mine, seed 1: failed: TaskError: it diverged\nmine, seed 2: test 0.5000\n"


def test_without_a_terminal_a_line_comes_after_a_while(capsys, monkeypatch):
    watch = Console()
    watch(Planned(notes=["Only two samples."], lines=["A plan."], steps=1000))
    watch(Stepped(10))
    assert capsys.readouterr().out == "Only two samples.\nA plan.\n"
    monkeypatch.setattr("augtree.cli.console.SILENCE", 0)
    watch(Stepped(500))
    assert capsys.readouterr().out.startswith("500 of about 1,000 steps, about 0 s left.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch(Stepped(1000))
