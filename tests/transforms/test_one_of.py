import numpy as np
import pytest
import torch
from scipy import stats

import augtree as at
from augtree.errors import ArgumentError, InputError, PolicyFileError
from augtree.keys import Key
from augtree.testing import check_transform
from augtree.transforms import (
    Chain,
    DropNodes,
    Flip,
    Identity,
    Invert,
    Normalize,
    OneOf,
    Posterize,
    RandAugment,
    ResizedCrop,
    Rotate,
    SamplePairing,
    TrivialAugment,
)


def constant(value):
    """A function that makes every pixel this."""
    return at.wrap(lambda picture: torch.full_like(picture, value), name=f"All{value}")


BLANK = torch.zeros(2400, 1, 1, 1, dtype=torch.uint8)
THREE = OneOf([(constant(1), 5), (constant(2), 3.0), constant(3)])


def test_shares_are_those_of_the_weights():
    assert THREE.shares == pytest.approx([5 / 9, 3 / 9, 1 / 9])
    counts = np.bincount(THREE(BLANK, seed=0).flatten(), minlength=4)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], 2400 * np.array(THREE.shares)).pvalue > 0.01


def test_weights_are_relative():
    alike = OneOf([(constant(1), 5e6), (constant(2), 3e6), (constant(3), 1e6)])
    assert torch.equal(alike(BLANK, seed=0), THREE(BLANK, seed=0))


def test_without_weights_all_are_equally_likely():
    assert OneOf([Flip(), Invert(), Rotate(0.2)]).shares == pytest.approx([1 / 3] * 3)


def test_a_draw_depends_on_the_seed_and_the_place_and_not_on_the_batch(noise):
    policy = OneOf([Flip(1.0), Invert(), (RandAugment(), 2.0), Chain([(Rotate(0.6), 0.5), Posterize(1.0)])])
    whole = policy(noise, seed=5)
    assert torch.equal(torch.cat([policy(noise[:7], seed=5), policy(noise[7:], seed=5, index=7)]), whole)
    order = torch.randperm(len(noise), generator=torch.Generator().manual_seed(0))
    assert torch.equal(policy(noise[order], seed=5, index=order), whole[order])
    assert torch.equal(policy(noise[9], seed=5, index=9), whole[9])
    assert not torch.equal(policy(noise, seed=6), whole)
    assert not torch.equal(policy(noise, seed=5, step=1), whole)


def test_each_sample_gets_what_the_choice_alone_would_give_it(noise):
    choices = [Flip(1.0), Invert(), Rotate(0.6)]
    done, told = OneOf(choices)(noise, seed=2), OneOf(choices).describe(Key.of(2, range(64)))
    key = Key.of(2, range(64)).at(0)
    alone = {str(choice): at.transforms.base.apply_to_pictures(choice, noise, key) for choice in choices}
    for row, (name,) in enumerate(told):
        assert torch.equal(done[row], alone[name][row])
    assert {name for (name,) in told} == set(alone)


def test_choices_share_their_draws(noise):
    """A sample that falls to Rotate is turned by the same angle, whatever stands beside it."""
    two, other = (OneOf([choice, Rotate(0.6)])(noise, seed=0) for choice in (Invert(), Posterize(1.0)))
    turned = [len(words) > 0 and words[0] == "Rotate(0.6)" for words in OneOf([Invert(), Rotate(0.6)]).describe(KEY)]
    assert 20 < sum(turned) < 44
    assert torch.equal(two[turned], other[turned])


KEY = Key.of(0, range(64))


def test_it_does_not_choose_as_what_stands_inside_it_does():
    """A choice within a choice is drawn anew: all four ways are taken."""
    inner = OneOf([constant(1), constant(2)])
    outer = OneOf([Chain([inner, constant_plus(10)]), inner])
    counts = np.bincount(outer(BLANK, seed=0).flatten(), minlength=13)[[1, 2, 11, 12]]
    assert counts.sum() == 2400
    assert stats.chisquare(counts).pvalue > 0.01


def constant_plus(value):
    return at.wrap(lambda picture: picture + value, name=f"Plus{value}")


def test_one_choice_is_that_choice_alone(noise):
    assert torch.equal(OneOf([Invert()])(noise, seed=0), Invert()(noise))
    assert OneOf([Invert()]).random is False
    assert OneOf([Invert(), Flip()]).random


def test_identity_leaves_its_share_alone(noise):
    done = OneOf([Identity(), (Invert(), 3)])(noise.repeat(20, 1, 1, 1), seed=0)
    kept = (done == noise.repeat(20, 1, 1, 1)).flatten(1).all(1).float().mean()
    assert abs(float(kept) - 0.25) < 0.04


def test_graphs_are_chosen_for_too():
    from torch_geometric.data import Batch, Data

    ring = Data(edge_index=torch.stack([torch.arange(20), (torch.arange(20) + 1) % 20]), num_nodes=20)
    done = OneOf([Identity(), DropNodes(0.5)])(Batch.from_data_list([ring] * 200), seed=0)
    sizes = np.bincount([graph.num_nodes for graph in done.to_data_list()], minlength=21)
    assert sizes[20] + sizes[10] == 200
    assert 75 < sizes[10] < 125


def test_it_has_the_properties_of_its_choices():
    assert OneOf([Identity(), Rotate(0.6)]).domain == "image"
    assert OneOf([DropNodes(0.2)]).domain == "graph"
    assert OneOf([Identity()]).domain == "any"
    assert OneOf([Flip(), SamplePairing(0.2)]).mixes
    assert not OneOf([Flip()]).mixes


def test_it_prints_its_choices_with_their_shares():
    assert str(OneOf([(TrivialAugment(), 3), RandAugment(m=14)])) == (
        "OneOf(TrivialAugment 75 % | RandAugment(m=14) 25 %)"
    )
    assert str(OneOf([Flip(), Identity(), Invert()])) == "OneOf(Flip 33.3 % | Identity 33.3 % | Invert(1) 33.3 %)"


def test_files_keep_choices_and_weights_to_the_last_bit(tmp_path):
    policy = OneOf([(Chain([(Flip(0.25), 0.3)]), 0.1 + 0.2), OneOf([RandAugment(m=3), (Identity(), 7)])])
    at.save(policy, tmp_path / "policy.json")
    again = at.load(tmp_path / "policy.json")
    assert again == policy
    assert again.pairs[0][1] == 0.1 + 0.2
    at.Tree().with_node(1, policy, p=0.5).save(tmp_path / "tree.json")
    assert at.load(tmp_path / "tree.json")[1].transform == policy


def test_a_file_with_a_wrong_choice_names_the_place(tmp_path):
    at.save(OneOf([Flip(), Invert()]), tmp_path / "policy.json")
    text = (tmp_path / "policy.json").read_text()
    (tmp_path / "policy.json").write_text(text.replace('"Invert"', '"Invrt"'))
    with pytest.raises(PolicyFileError, match=r"did you mean Invert\?\) at /transform/choices/1/transform/name"):
        at.load(tmp_path / "policy.json")


def test_it_keeps_the_contract(photos):
    check_transform(OneOf([Identity(), (RandAugment(), 2.0), Chain([Flip(), Invert()])]), photos)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([], "choices must be a list of 1 to 256 transforms"),
        ("ab", "choices must be a list of 1 to 256 transforms, got 'ab'"),
        ([Flip()] * 257, "choices must be a list of 1 to 256 transforms"),
        ([Flip(), 3], "choices/1 must be a transform, or a transform and its weight, got 3"),
        ([(Flip(), 0)], r"choices/0/weight must be a number in \(0, 1e\+09\], got 0"),
        ([(Flip(), -1.0)], "choices/0/weight must be a number in"),
        ([(Flip(), float("nan"))], "choices/0/weight must be a number in .* got nan"),
        ([(Flip(), "1")], "choices/0/weight must be a number in"),
        ([Flip(), Normalize()], "choices/1 must not change shape or type, since it is for some samples only"),
        ([Chain([ResizedCrop(8)])], "choices/0 must not change shape or type"),
        ([Flip(), DropNodes(0.2)], "choices must all work on pictures or all on graphs"),
    ],
)
def test_bad_choices_are_refused(choices, message):
    with pytest.raises(ArgumentError, match=message):
        OneOf(choices)


def test_pictures_are_refused_where_the_choices_are_for_graphs(noise):
    with pytest.raises(InputError, match="graphs"):
        OneOf([DropNodes(0.2)])(noise, seed=0)
