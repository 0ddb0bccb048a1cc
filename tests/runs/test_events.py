import dataclasses
import importlib
import pkgutil

import augtree
from augtree.runs.events import Event, Note, Planned, RowTrained, silent


def kinds(of=Event):
    return {of, *(kind for each in of.__subclasses__() for kind in kinds(each))}


def test_every_event_is_an_immutable_value():
    for module in pkgutil.walk_packages(augtree.__path__, "augtree."):
        if module.name.split(".")[1] in ("search", "forests", "comparison", "evaluation", "runs"):
            importlib.import_module(module.name)
    ours = {kind for kind in kinds() if kind.__module__.startswith("augtree.")}
    assert {"Planned", "TrunkTrained", "NodeBuilt", "Scored", "GroupStarted", "RowTrained"} <= {
        k.__name__ for k in ours
    }
    for kind in ours:
        assert dataclasses.is_dataclass(kind)
        assert kind.__dataclass_params__.frozen, kind
        assert kind.__doc__, kind


def test_events_with_the_same_content_are_equal():
    assert Note("a") == Note("a") != Note("b")
    assert Planned(steps=3) == Planned((), (), 3)
    assert RowTrained("none", 0, {}) == RowTrained("none", 0, {}, failed="")


def test_silence():
    assert silent(Note("a")) is None
