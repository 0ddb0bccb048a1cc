import pytest

import augtree as at
from augtree.transforms import BUILT_IN, Chain, GraphCL, Identity, OneOf, Rotate, images
from augtree.transforms.traits import EVERY_SAMPLE, GEOMETRY, STRONG, STRONGER_THAN, TONES, TRAIT_WORDS, traits, union

KNOWN = {
    GEOMETRY: "ShearX ShearY TranslateX TranslateY Rotate Rotation RandomCrop RandGeometry TrivialGeometry",
    TONES: "Brightness Color Contrast Sharpness Posterize Solarize AutoContrast Equalize Invert ColorDistortion"
    " RandTones TrivialTones",
    "both": "RandAugment TrivialAugment AutoAugment",
    "none": "Identity Chain",
}
MADE_OF_OTHERS = ("Chain", "OneOf", "GraphCL")


def an(kind):
    """One of its kind."""
    return kind(0.2) if "magnitude" in kind.__dataclass_fields__ else kind()


def expected(name):
    """Written down by hand; all else is known by its own name."""
    for traits_, names in KNOWN.items():
        if name in names.split():
            return {"both": {GEOMETRY, TONES}, "none": set()}.get(traits_, {traits_})
    return {name}


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name not in MADE_OF_OTHERS])
def test_the_traits_of_every_built_in(name):
    assert traits(an(BUILT_IN[name])) == expected(name)


def test_all_of_randaugment_s_operations_are_geometry_or_tones():
    halves = {half: BUILT_IN[half].palette for half in ("RandGeometry", "RandTones")}
    assert union(an(kind) for kind in halves["RandGeometry"]) == {GEOMETRY}
    assert union(an(kind) for kind in halves["RandTones"]) == {TONES}
    whole = BUILT_IN["RandAugment"].palette
    assert sorted(k.__name__ for k in whole) == sorted({k.__name__ for half in halves.values() for k in half})


def test_a_chain_has_the_traits_of_the_steps_that_are_taken():
    steps = [(Rotate(0.2), 0.5), (images.Cutout(0.2), 1.0), (images.Color(0.2), 0.0)]
    assert traits(Chain(steps)) == {GEOMETRY, "Cutout"}


def test_what_chooses_has_the_traits_of_all_its_choices():
    assert traits(OneOf([Identity(), (Rotate(0.2), 1e-6), Chain([images.Color(0.2)])])) == {GEOMETRY, TONES}


def test_a_tree_has_the_traits_of_its_nodes():
    tree = at.Tree().with_node(1, Rotate(0.2)).with_node(2, images.Cutout(0.2), p=0.5)
    assert traits(tree) == {GEOMETRY, "Cutout"}
    assert traits(at.Tree()) == set()


def test_a_function_of_one_s_own_is_known_by_its_name():
    assert traits(at.wrap(abs, name="Fog", magnitude=0.9)) == {"Fog"}


@pytest.mark.parametrize("name", ["DropNodes", "PermuteEdges", "Subgraph", "MaskNodes"])
def test_ratios_of_graphs_above_a_quarter_are_strong(name):
    assert traits(BUILT_IN[name](STRONGER_THAN)) == {name}
    assert traits(BUILT_IN[name](0.3)) == {name, STRONG}


def test_graphcl_is_one_of_its_four():
    four = {"DropNodes", "PermuteEdges", "Subgraph", "MaskNodes"}
    assert traits(GraphCL(0.2)) == four
    assert traits(GraphCL(0.3)) == four | {STRONG}


def test_large_magnitudes_of_pictures_are_not_strong_ratios():
    assert traits(Rotate(1.0)) == {GEOMETRY}
    assert traits(images.Cutout(1.0)) == {"Cutout"}


def test_every_trait_that_is_no_name_has_words():
    assert {GEOMETRY, TONES, STRONG, EVERY_SAMPLE} <= TRAIT_WORDS.keys()
    assert all(name in BUILT_IN for name in TRAIT_WORDS.keys() - {GEOMETRY, TONES, STRONG, EVERY_SAMPLE})
