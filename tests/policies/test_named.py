import numpy as np
import pytest

from augtree import Tree
from augtree.data import from_arrays
from augtree.errors import InputError
from augtree.policies.named import find
from augtree.tasks.named import find_for
from augtree.transforms import ColorDistortion, TrivialAugment


def pictures(channels):
    made = np.random.default_rng(0).integers(0, 256, (24, channels, 8, 8)).astype(np.uint8)
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
