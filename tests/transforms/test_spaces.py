import numpy as np
import pytest

import augtree as at
from augtree.errors import ArgumentError
from augtree.policies.named import find
from augtree.transforms import DropNodes, GraphCL, Identity, Normalize, RandAugment, Rotate, Space, TrivialAugment


def test_images_are_sixteen_operations_at_five_magnitudes_and_identity():
    space = at.spaces.images()
    assert len(space) == 81
    assert len(set(space.names)) == 17
    assert str(space["Rotate", 0.6]) == "Rotate(0.6)"
    assert (space["Rotate", 0.6].name, space["Rotate", 0.6].magnitude) == ("Rotate", 0.6)
    assert space[0] == Identity()
    assert [c.magnitude for c in space if c.name == "Color"] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert all(c.domain == "image" for c in space if c.name != "Identity")


def test_magnitudes_are_found_to_within_rounding():
    assert at.spaces.images()["Rotate", 0.1 + 0.2 + 0.3] == Rotate(0.6)


def test_composites_are_candidates_too():
    space = at.spaces.images(composites=True, fill=0)
    assert len(space) == 85
    assert space["TrivialAugment"] == TrivialAugment(fill=0)
    assert space["RandAugment(m=14)"] == RandAugment(m=14, fill=0)
    assert (space + [RandAugment(m=3)])["RandAugment(m=3)"] == RandAugment(m=3)
    assert space["ShearX", 1.0].fill == 0
    assert space["Cutout", 1.0].fill == 0


def test_graphs_are_four_transformations_at_five_magnitudes_and_identity():
    space = at.spaces.graphs()
    assert len(space) == 21
    assert space["DropNodes", 0.3] == DropNodes(0.3)


def test_composites_of_graphs_are_one_of_the_four():
    space = at.spaces.graphs(composites=True)
    assert len(space) == 26
    assert space["GraphCL", 0.2] == GraphCL(0.2) == find("graphcl")


def test_contrastive_learning_has_its_free_policies_as_composites():
    space = at.spaces.simclr(composites=True, fill=0)
    assert list(space)[:8] == list(at.spaces.simclr())
    strengths = [RandAugment(m=m, fill=0) for m in (9, 14, 19)]
    assert list(space)[8:] == [find("simclr"), TrivialAugment(fill=0), *strengths]


def test_contrastive_learning_has_seven():
    names = "Identity RandomCrop Cutout Rotation ColorDistortion Sobel GaussianNoise GaussianBlur"
    assert at.spaces.simclr().names == names.split()


def test_a_space_is_a_sequence():
    space = at.spaces.graphs()
    assert list(space)[3] == space[3]
    assert space[1:3] == list(space)[1:3]
    assert space[np.int64(3)] == space[3]
    assert space[-1] in space
    assert Rotate(0.6) not in space
    assert space == at.spaces.graphs()
    assert space != at.spaces.images()
    assert hash(space) == hash(at.spaces.graphs())
    assert repr(at.spaces.simclr()).startswith("Space of 8 candidates: Identity, RandomCrop, Cutout")


def test_a_space_grows_by_addition_and_keeps_one_identity():
    fog = at.wrap(abs, name="Fog")
    space = at.spaces.images() + [fog, Identity()]
    assert len(space) == 82
    assert space["Fog"] == fog
    assert len(at.spaces.images()) == 81


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (("Rotate", 0.7), r"must be one of Rotate\(0.2\), Rotate\(0.4\), .*, got \('Rotate', 0.7\)"),
        ("Fog", "must be one of AutoContrast, .*, got 'Fog'"),
        ("Rotat", r"did you mean Rotate\?"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(which, message):
    with pytest.raises(ArgumentError, match=message):
        at.spaces.images()[which]


def test_a_name_that_fits_several_is_refused():
    space = Space([RandAugment(m=5, fill=0), RandAugment(m=5, fill=9)])
    with pytest.raises(ArgumentError, match="must be named so that it is one of"):
        space["RandAugment(m=5)"]


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([42], "candidate must be a transform"),
        (
            [at.wrap(abs, name="Fog"), at.wrap(len, name="Fog")],
            "candidate must not share its name with another function, got 'Fog'",
        ),
        ([Rotate(0.6), Rotate(0.6)], r"candidate must not be in the space twice, got 'Rotate\(0.6\)'"),
        ([Normalize()], "candidate must not change shape or type in a tree, got 'Normalize'"),
        ([Rotate(0.6), DropNodes(0.2)], "candidate must work on what the others work on"),
    ],
)
def test_what_cannot_be_a_candidate_is_refused(candidates, message):
    with pytest.raises(ArgumentError, match=message):
        Space(candidates)
