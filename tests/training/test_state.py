import torch

from augtree.training.state import seed_of, seeded


def test_seeded_numbers_repeat_and_leave_the_users_generator_alone():
    before = torch.get_rng_state()
    with seeded(5):
        first = torch.rand(3)
    with seeded(5):
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_seeds_of_places():
    assert seed_of(0, "init") == seed_of(0, "init")
    assert len({seed_of(0, "a"), seed_of(0, "b"), seed_of(1, "a"), seed_of("0", "a")}) == 4
    assert 0 <= seed_of("anything") < 2**63
