import json
import os
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

import augtree as at
from augtree.errors import ArgumentError, PolicyFileError
from augtree.policies import codec
from augtree.transforms import BUILT_IN, Chain, Flip, Rotate, Transform, images

GOLDEN = Path(__file__).parents[1] / "golden"

DIFFERENT = {
    "magnitude": 0.4,
    "fill": 7,
    "share": 0.25,
    "n": 3,
    "m": 17,
    "policy": "svhn",
    "p": 0.3,
    "pad": 2,
    "scale": (0.2, 0.7),
    "ratio": (0.5, 1.5),
    "size": (20, 30),
    "mean": (0.1, 0.2, 0.3),
    "std": (0.4, 0.5, 0.6),
    "strength": 0.5,
    "jitter_p": 0.7,
    "grey_p": 0.1,
    "sigma": (0.05, 0.5),
    "length": 9,
    "steps": ((Rotate(0.2, fill=3), 0.5), (images.Color(0.8), 1.0)),
    "choices": ((Rotate(0.2, fill=3), 3.0), (Chain([images.Color(0.8), Flip(0.3)]), 0.25)),
}
"""For every argument of every transform a value that is not its default."""


LATER = ["OneOf", "RandGeometry", "RandTones", "TrivialGeometry", "TrivialTones", "VerticalFlip", "QuarterTurn"]
"""Transforms that are younger than the golden files of the others; they have one of their own."""


def one_of_each():
    """Every built-in transform with every argument away from its default."""
    for kind in BUILT_IN.values():
        yield kind(**{field.name: DIFFERENT[field.name] for field in fields(kind)})


def pictorial(*, later=False):
    """Those that can stand in a tree of pictures: of the first files, or those that came later."""
    return [t for t in one_of_each() if t.domain == "image" and not t.whole and (t.name in LATER) == later]


def full_tree(*, later=False):
    """A tree that holds all of these."""
    tree = at.Tree()
    usable = pictorial(later=later)
    for index, transform in enumerate(usable, start=1):
        tree = tree.with_node(index, transform, p=0.25 if index % 2 == 0 else None)
    return tree


def graph_tree():
    tree = at.Tree()
    four = [t for t in one_of_each() if t.domain == "graph" and t.name != "GraphCL"]
    for index, transform in enumerate(four, start=1):
        tree = tree.with_node(index, transform, p=0.6 if index == 2 else None)
    return tree


@pytest.mark.parametrize("transform", list(one_of_each()), ids=lambda t: t.name)
def test_every_argument_of_every_transform_round_trips(transform, tmp_path):
    for field in fields(transform):
        assert getattr(transform, field.name) != field.default
    at.save(transform, tmp_path / "t.json")
    again = at.load(tmp_path / "t.json")
    assert again == transform
    assert type(again) is type(transform)
    assert repr(again) == repr(transform)


def test_there_is_a_golden_file_for_every_transform():
    kept = "".join(path.read_text() for path in GOLDEN.glob("*.json"))
    missing = [name for name in BUILT_IN if f'"{name}"' not in kept]
    assert set(missing) <= {"Identity", "ResizedCrop", "Normalize", "GraphCL"}


@pytest.mark.parametrize("make", [full_tree, graph_tree, at.Tree], ids=["images", "graphs", "empty"])
def test_trees_round_trip(make, tmp_path):
    tree = make()
    tree.save(tmp_path / "tree.json")
    assert at.load(tmp_path / "tree.json") == tree


def test_forests_round_trip(tmp_path):
    forest = at.Forest({"pho/to~": (full_tree(), 0.1), "Skizze ü": (at.Tree(), 0.9)})
    forest.save(tmp_path / "forest.json")
    again = at.load(tmp_path / "forest.json")
    assert again == forest
    assert list(again.groups) == ["Skizze ü", "pho/to~"]  # by name


def test_probabilities_round_trip_to_the_last_bit(tmp_path):
    tree = at.Tree().with_node(1, Rotate(1 / 3), p=0.1 + 0.2)
    tree.save(tmp_path / "t.json")
    assert at.load(tmp_path / "t.json")[1].p == 0.1 + 0.2


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("tree-images", full_tree),
        ("tree-graphs", graph_tree),
        ("tree-empty", at.Tree),
        ("forest", lambda: at.Forest({"a": (full_tree(), 0.25), "b": (at.Tree(), 0.75)})),
        ("chain", lambda: Chain(pictorial())),
        ("tree-later", lambda: full_tree(later=True)),
    ],
)
def test_files_of_version_1_are_read_and_written_as_ever(name, make):
    """Golden files: never rewritten; a new version reads them all the same."""
    text = (GOLDEN / f"{name}.json").read_text()
    assert at.load(GOLDEN / f"{name}.json") == make()
    assert codec.to_json(make()) == text


def test_a_file_is_readable_by_a_person(tmp_path):
    tree = at.Tree().with_node(1, Rotate(0.6), p=0.7).with_node(2, images.Color(0.4), p=0.3)
    tree.save(tmp_path / "tree.json")
    assert (tmp_path / "tree.json").read_text() == (
        "{\n"
        '  "augtree": 1,\n'
        '  "kind": "tree",\n'
        '  "nodes": {\n'
        '    "1": {"transform": {"name": "Rotate", "magnitude": 0.6, "fill": 128}, "p": 0.7},\n'
        '    "2": {"transform": {"name": "Color", "magnitude": 0.4}, "p": 0.3}\n'
        "  }\n"
        "}\n"
    )


def fog(picture):
    return picture


class Mist(Transform):
    """A user's own class with no file form of its own."""


def test_a_users_function_comes_back_through_load(tmp_path):
    mine = at.wrap(fog, name="Fog", magnitude=0.4)
    at.Tree().with_node(1, mine.at(0.8), p=0.5).save(tmp_path / "t.json")
    assert at.load(tmp_path / "t.json", transforms=[mine])[1].transform == mine.at(0.8)
    with pytest.raises(
        PolicyFileError, match=r"'Fog' is no built-in transform \(give yours to load\(path, transforms="
    ):
        at.load(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("given", "pointer", "message"),
    [
        (
            at.wrap(fog, name="Fog"),
            "/nodes/1/transform/magnitude",
            "magnitude must be there if the Fog given has one",
        ),
        (at.wrap(fog, name="Fog", magnitude=1, takes="hwc"), "/nodes/1/transform/takes", "takes must be 'hwc'"),
    ],
)
def test_a_users_function_must_be_the_one_meant(tmp_path, given, pointer, message):
    at.Tree().with_node(1, at.wrap(fog, name="Fog", magnitude=0.4)).save(tmp_path / "t.json")
    with pytest.raises(PolicyFileError, match=message) as caught:
        at.load(tmp_path / "t.json", transforms=[given])
    assert caught.value.pointer == pointer


def test_only_transforms_of_ones_own_can_be_given(tmp_path):
    at.Tree().save(tmp_path / "t.json")
    for wrong in (fog, Rotate(0.6), 3):
        with pytest.raises(ArgumentError, match="transforms must be wrapped functions"):
            at.load(tmp_path / "t.json", transforms=[wrong])
    with pytest.raises(ArgumentError, match="must not have the name of a built-in transform, got 'Rotate'"):
        at.load(tmp_path / "t.json", transforms=[type("Rotate", (Transform,), {})])
    with pytest.raises(ArgumentError, match="transforms must not have two of one name, got 'Fog'"):
        at.load(tmp_path / "t.json", transforms=[at.wrap(fog, name="Fog"), at.wrap(abs, name="Fog")])
    with pytest.raises(ArgumentError, match="transforms must be a list"):
        at.load(tmp_path / "t.json", transforms=at.wrap(fog, name="Fog"))
    assert at.load(tmp_path / "t.json", transforms=[Mist]) == at.Tree()


def test_saving_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "tree.json"
    at.Tree().save(path)
    before = path.read_text()

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(ArgumentError, match=r"path must be a file that can be written \(No space left on device\)"):
        full_tree().save(path)
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["tree.json"]


def test_a_policy_that_cannot_be_written_leaves_no_file(tmp_path):
    class Odd(Transform):
        def arguments(self):
            return {"value": object()}

    with pytest.raises(TypeError):
        at.save(Odd(), tmp_path / "t.json")
    with pytest.raises(ArgumentError, match="policy must be a tree, a forest or a transform"):
        at.save(3, tmp_path / "t.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("missing/tree.json", "path must be a file that can be written"),
        (".", "path must not be something other than a file"),
        ("a\0b", "path must be a file that can be written"),
    ],
)
def test_places_that_cannot_be_written_are_named(tmp_path, place, message):
    with pytest.raises(ArgumentError, match=message):
        at.Tree().save(f"{tmp_path}/{place}")


def test_what_is_there_and_is_no_file_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="path must not be something other than a file"):
        at.Tree().save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_links_are_followed_and_modes_kept(tmp_path):
    at.Tree().save(tmp_path / "tree.json")
    (tmp_path / "tree.json").chmod(0o600)
    (tmp_path / "link.json").symlink_to(tmp_path / "tree.json")
    full_tree().save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert at.load(tmp_path / "tree.json") == full_tree()
    assert (tmp_path / "tree.json").stat().st_mode & 0o777 == 0o600


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    crowd = Chain([Chain([Rotate(0.2)] * 64)] * 64)
    with pytest.raises(ArgumentError, match="policy must fit into a file of 262144 bytes"):
        at.save(crowd, tmp_path / "t.json")
    nest = at.Tree()
    for _ in range(30):
        nest = at.Tree().with_node(1, nest.with_node(1, Rotate(0.2)) if not len(nest) else nest)
    with pytest.raises(ArgumentError, match="could not be read again .*nested 64 deep"):
        nest.save(tmp_path / "t.json")
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Outer(Transform):
    """A user's class that holds a transform."""

    inner: Transform = Rotate(0.2)
    others: tuple[Transform, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "others", tuple(self.others))


def test_transforms_among_the_arguments_of_ones_own_class_round_trip(tmp_path):
    mine = Outer(images.Color(0.4), (Chain([Rotate(0.6)]), images.Invert()))
    at.save(mine, tmp_path / "t.json")
    assert at.load(tmp_path / "t.json", transforms=[Outer]) == mine


class Plain(Transform):
    """No dataclass, so it has no arguments that could be read."""


class Picky(Outer):
    """Raises what it likes."""

    def __post_init__(self):
        raise ValueError("not today")


@pytest.mark.parametrize("kind", [Plain, Picky])
def test_whatever_ones_own_class_raises_gets_its_place(tmp_path, kind):
    (tmp_path / "t.json").write_text(
        json.dumps(
            {"augtree": 1, "kind": "transform", "transform": {"name": kind.__name__, "inner": {"name": "Flip"}}}
        )
    )
    with pytest.raises(PolicyFileError) as caught:
        at.load(tmp_path / "t.json", transforms=[kind])
    assert caught.value.pointer == "/transform"
    assert "could not be made" in caught.value.problem


def test_a_byte_order_mark_is_no_harm(tmp_path):
    at.Tree().save(tmp_path / "t.json")
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.json").read_bytes())
    assert at.load(tmp_path / "bom.json") == at.Tree()


@pytest.mark.parametrize("name", ["tree.json", "forest.json", "policy.json"])
def test_the_folder_of_a_run_stands_for_its_policy(name, tmp_path):
    tree = at.Tree().with_node(1, Flip(), p=0.5)
    at.save(tree, tmp_path / name)
    assert at.load(tmp_path) == at.load(str(tmp_path)) == tree


def test_a_folder_without_a_policy_is_refused(tmp_path):
    with pytest.raises(PolicyFileError, match="a folder must be that of a run with a policy .*, but there is none$"):
        at.load(tmp_path)
    (tmp_path / "spec.json").write_text("{}")
    with pytest.raises(PolicyFileError, match="but there is none yet: the run is not done$"):
        at.load(tmp_path)
