import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree.errors import ArgumentError
from augtree.policies.presets import find
from augtree.transforms import (
    AutoAugment,
    Chain,
    Cutout,
    DropNodes,
    Flip,
    GraphCL,
    Identity,
    Normalize,
    PadCrop,
    QuarterTurn,
    RandAugment,
    RandGeometry,
    RandTones,
    Rotate,
    Space,
    TrivialAugment,
    TrivialGeometry,
    TrivialTones,
    VerticalFlip,
)
from augtree.transforms.spaces import auto, basics, styles


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


# ---- what a search tries where nothing else is asked for


def pictures(channels=3, height=32, width=32, fill=128):
    made = np.zeros((4, channels, height, width), np.uint8)
    return at.data.from_arrays(made, [0, 1, 0, 1], split=["train"] * 4, fill=fill)


def rings(features):
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    more = {"x": torch.ones(3, features)} if features else {"num_nodes": 3}
    graphs = [Data(edge_index=edges, **more) for _ in range(4)]
    return at.data.from_arrays(graphs, [0, 1, 0, 1], split=["train"] * 4)


def test_pictures_have_basics_times_styles():
    space = auto(pictures())
    assert space.basics == (Flip(), VerticalFlip(), QuarterTurn(), PadCrop(4, fill=0))
    assert list(space) == [
        Identity(),
        *(RandAugment(m=m) for m in (5, 9, 14)),
        TrivialAugment(),
        RandGeometry(m=9),
        RandGeometry(m=14),
        TrivialGeometry(),
        RandTones(m=9),
        RandTones(m=14),
        TrivialTones(),
        AutoAugment("cifar10"),
        Chain([RandAugment(), Cutout(1.0, share=0.5)]),
    ]
    assert space.combines
    assert space.own == ()


@pytest.mark.parametrize(("height", "width", "pad"), [(32, 32, 4), (31, 64, 3), (64, 28, 3), (8, 8, 1), (5, 224, 1)])
def test_crops_are_padded_by_an_eighth_of_the_shorter_side(height, width, pad):
    assert auto(pictures(1, height, width)).basics[-1] == PadCrop(pad, fill=0)


def test_what_is_uncovered_is_the_data_s_fill():
    space = auto(pictures(fill=0))
    assert all(style.fill == 0 for style in space if hasattr(style, "fill"))
    assert str(space[-1]) == "Chain(RandAugment, Cutout(1))"
    assert [step.fill for step, _ in space[-1].pairs] == [0, 0]
    assert auto(pictures(fill=7)).basics[-1] == PadCrop(4, fill=7)
    assert auto(pictures(fill=128)).basics[-1] == PadCrop(4, fill=0)  # black, where grey was nobody's choice


def test_grey_pictures_have_the_same_styles():
    assert auto(pictures(1)) == auto(pictures(3))


@pytest.mark.parametrize("channels", [2, 4])
def test_other_channels_have_what_knows_no_colours(channels):
    data = pictures(channels)
    space = auto(data)
    assert space.names == ["Identity", "RandGeometry", "RandGeometry", "TrivialGeometry", "Cutout"]
    assert len(space.basics) == 4


@pytest.mark.parametrize("data", [pictures(1, 8, 8), pictures(3, 12, 20), pictures(4, 9, 9)])
def test_every_basic_and_style_works_on_the_data_it_is_for(data):
    space = auto(data)
    for transform in (*space, *space.basics):
        assert transform(data.samples, seed=0).shape == data.samples.shape


def test_graphs_have_no_basics_and_mask_features_only_where_there_are_some():
    featured, bare = auto(rings(2)), auto(rings(0))
    assert list(featured) == [*at.spaces.graphs(), GraphCL(0.2)]
    assert list(bare) == [c for c in at.spaces.graphs() if c.name != "MaskNodes"]
    assert featured.basics == bare.basics == ()
    assert featured.combines
    assert bare.combines


def test_basics_and_styles_by_hand():
    assert basics(16, 40) == [Flip(), VerticalFlip(), QuarterTurn(), PadCrop(2, fill=0)]
    assert basics(16, 40, fill=3)[-1] == PadCrop(2, fill=3)
    assert Space(styles()) == Space(list(auto(pictures())))


def test_what_is_added_may_also_come_on_top_of_any_other():
    fog = at.wrap(abs, name="Fog")
    space = auto(pictures()) + [fog]
    assert space[-1] == fog
    assert space.own == (fog,)
    assert space.basics == auto(pictures()).basics
    assert (space + [Rotate(0.2)]).own == (fog, Rotate(0.2))
    assert auto(pictures()).own == ()


def test_what_is_added_to_a_space_without_combinations_is_a_candidate_alone():
    space = at.spaces.images() + [at.wrap(abs, name="Fog")]
    assert not space.combines
    assert space.own == ()


def test_the_basics_are_part_of_what_a_space_is():
    plain = Space([Rotate(0.2)])
    assert plain != Space([Rotate(0.2)], basics=[Flip()])
    assert plain != Space([Rotate(0.2)], own=())
    assert len({plain, Space([Rotate(0.2)], basics=[Flip()]), Space([Rotate(0.2)])}) == 2
    assert repr(auto(pictures())).endswith("; over Flip, VerticalFlip, QuarterTurn, PadCrop(4)")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Space([Flip()], basics=[Flip()]), "candidate must not be in the space twice, got 'Flip"),
        (lambda: Space([Rotate(0.2)], basics=[Normalize()]), "candidate must not change shape or type in a tree"),
        (lambda: Space([DropNodes(0.2)], basics=[Flip()]), "candidate must work on what the others work on"),
        (lambda: Space([Rotate(0.2)], basics=[3]), "candidate must be a transform"),
        (lambda: auto(pictures()) + [Flip()], "candidate must not be in the space twice"),
        (lambda: auto(pictures()) + [DropNodes(0.2)], "candidate must work on what the others work on"),
        (lambda: auto(rings(1)) + [Flip()], "candidate must work on what the others work on"),
    ],
)
def test_what_can_be_no_basic_is_refused(made, message):
    with pytest.raises(ArgumentError, match=message):
        made()


def test_magnitudes_without_an_effect_are_one_candidate():
    space = at.spaces.images()
    assert len(space.distinct) == 81 - 3 * 4  # AutoContrast, Invert, Equalize
    assert [c.name for c in space.distinct].count("Equalize") == 1
    assert space.distinct[0] == Identity()
    assert auto(pictures()).distinct == tuple(auto(pictures()))
