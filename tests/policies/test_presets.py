import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import augtree as at
from augtree import Tree
from augtree.baselines.methods import is_free
from augtree.data import from_arrays
from augtree.data.presets import find_for
from augtree.errors import InputError, PolicyFileError
from augtree.keys import Key
from augtree.policies.presets import NAMED, find
from augtree.transforms import Chain, ColorDistortion, Flip, PadCrop, RandAugment, TrivialAugment
from support.contrastive import graphs


def pictures(channels, height=8, width=8):
    made = np.random.default_rng(0).integers(0, 256, (24, channels, height, width)).astype(np.uint8)
    return from_arrays(made, np.arange(24) % 2, split=["train"] * 24, name="noise", fill=7)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_simclr_by_name_works_for_any_number_of_channels(channels):
    data = pictures(channels)
    policy = find_for(data, "SimCLR")
    assert policy(data.samples, seed=0).shape == data.samples.shape
    wanted = (
        "RandomCrop, ColorDistortion, GaussianBlur p=0.5" if channels in (1, 3) else "RandomCrop, GaussianBlur p=0.5"
    )
    assert str(policy) == f"Chain({wanted})"


def test_a_tree_of_one_s_own_keeps_its_colours(tmp_path):
    tree = Tree().with_node(1, ColorDistortion(), p=1.0)
    tree.save(tmp_path / "tree.json")
    data = pictures(4)
    found = find_for(data, str(tmp_path / "tree.json"))
    assert found == tree
    with pytest.raises(InputError, match="ColorDistortion needs pictures of 1 or 3 channels, got 4"):
        found(data.samples, seed=0)


def test_other_names_are_made_for_the_data_s_fill():
    assert find_for(pictures(4), "trivialaugment") == TrivialAugment(fill=7) != find("trivialaugment")


STYLES = {
    "flip-crop": [],
    "flip-crop-randaugment": [RandAugment(fill=7)],
    "flip-crop-trivialaugment": [TrivialAugment(fill=7)],
}


@pytest.mark.parametrize("name", STYLES)
def test_usual_practice_is_a_flip_a_crop_and_a_policy(name):
    assert find(name, 7) == Chain([Flip(), PadCrop(4), *STYLES[name]])
    assert find_for(pictures(3), name.upper()) == Chain([Flip(), PadCrop(1), *STYLES[name]])


@pytest.mark.parametrize(
    ("height", "width", "pad"), [(32, 32, 4), (28, 28, 3), (64, 24, 3), (7, 40, 1), (96, 96, 12)]
)
def test_its_crop_is_padded_by_an_eighth_of_the_shorter_side(height, width, pad):
    policy = find_for(pictures(1, height, width), "flip-crop")
    assert policy == Chain([Flip(), PadCrop(pad)])


@pytest.mark.parametrize("name", STYLES)
def test_usual_practice_needs_no_search(name):
    assert is_free(find(name))
    assert is_free(find_for(pictures(3), name))


def test_what_is_built_on_usual_practice_does():
    assert not is_free(Chain([Flip(), PadCrop(4), ColorDistortion()]))
    assert not is_free(Chain([(Flip(), 0.5), PadCrop(4)]))


@pytest.mark.parametrize("name", [name for name in NAMED if "graph" not in name])
def test_every_named_policy_is_kept_by_a_file(name, tmp_path):
    policy = find(name, 7)
    at.save(policy, tmp_path / "policy.json")
    assert at.load(tmp_path / "policy.json") == policy
    data = pictures(3)
    assert torch.equal(at.load(tmp_path / "policy.json")(data.samples, seed=1), policy(data.samples, seed=1))


def test_randaugment_on_graphs_draws_two_of_five_for_each_graph(tmp_path):
    policy = find_for(graphs(), "RandAugment")
    assert policy == find("graph-randaugment") == find_for(graphs(), "graph-randaugment")
    assert is_free(policy)
    told = [[step.split("(")[0] for step in steps] for steps in policy.describe(Key.of(0, np.arange(5000)))]
    counts = np.bincount([len(steps) for steps in told], minlength=3) / 5000
    assert counts == pytest.approx([1 / 25, 8 / 25, 16 / 25], abs=0.03)  # Identity says nothing
    firsts = [steps[0] for steps in told if len(steps) == 2]
    shares = {name: firsts.count(name) / len(firsts) for name in set(firsts)}
    names = ["DropNodes", "PermuteEdges", "Subgraph", "MaskNodes"]
    assert shares == pytest.approx(dict.fromkeys(names, 0.25), abs=0.03)
    twice = [steps for steps in told if len(steps) == 2 and steps[0] == steps[1]]
    assert len(twice) / 5000 == pytest.approx(4 / 25, abs=0.03)  # independent of each other
    at.save(policy, tmp_path / "policy.json")
    assert at.load(tmp_path / "policy.json") == policy


def test_randaugment_masks_nothing_where_there_is_nothing_to_mask():
    without = [Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes) for graph in graphs().samples]
    data = from_arrays(without, np.arange(48) % 2, split=["train"] * 48, name="bare")
    policy = find_for(data, "randaugment")
    assert is_free(policy)
    assert "MaskNodes" not in str(policy)
    assert "DropNodes" in str(policy)


def test_a_name_that_is_nearly_right_is_told():
    with pytest.raises(PolicyFileError, match=r"did you mean flip-crop-randaugment\?"):
        find("flip-crop-randaugmnt")


def test_a_folder_must_be_that_of_a_run_with_a_policy(tmp_path):
    with pytest.raises(PolicyFileError, match=r"must be that of a run with a policy .*, but there is none$"):
        find(str(tmp_path))
    (tmp_path / "spec.json").write_text("{}")
    with pytest.raises(PolicyFileError, match="but there is none yet: the run is not done"):
        find(str(tmp_path))
    at.save(find("flip-crop"), tmp_path / "policy.json")
    assert find(str(tmp_path)) == find("flip-crop")
