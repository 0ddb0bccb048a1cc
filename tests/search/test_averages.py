"""The finished model: an average of the last cool-downs."""

import torch
from torch import nn

import augtree as at
from augtree.policies import Tree
from augtree.runs.checkpoints import LazyState
from augtree.search.cooldowns import (
    CooledModel,
    FinalCooldowns,
    average_of,
)
from augtree.search.play import UNGROUPED, Play
from augtree.tasks import Classification
from augtree.training.state import State
from support.searches import CORNERS, LINEAR, corners, trunk_on


def state(*values, step=3):
    numbers = {"weights": torch.tensor(values), "count": torch.tensor([int(10 * values[0])])}
    return State(numbers, step)


def test_the_average_of_equal_states_is_that_state():
    one = state(0.1, 1 / 3, 7e-9, 3e8)
    found = average_of([one] * 3)
    assert torch.equal(found.tensors["weights"], one.tensors["weights"])
    assert found.step == 3


def test_the_average_of_two_is_their_mean_but_for_whole_numbers():
    found = average_of([state(1.0, -2.0), state(2.0, 5.0)])
    assert found.tensors["weights"].tolist() == [1.5, 1.5]
    assert found.tensors["weights"].dtype == torch.float32
    assert found.tensors["count"].tolist() == [10]


def with_models(states, renew=0, model=LINEAR):
    """The end of a search whose cool-downs are these states, with their own losses."""
    trunk = trunk_on(corners(lower=0), {UNGROUPED: Play(CORNERS)}, at.search.Cooldown(renew=renew), task=model)
    cooldowns = FinalCooldowns(trunk)
    for name, each in states(trunk.trainer).items():
        losses = trunk.trainer.calibrated_losses(each, trunk.rows)
        cooldowns.done[name] = CooledModel(name, Tree(), losses, LazyState(lambda each=each: each, each))
    return cooldowns


def moved(base, direction, length):
    tensors = {**base.tensors, "weights": base.tensors["weights"] + length * direction}
    return State(tensors, base.step)


def trained(trainer):
    base = trainer.fit(Tree(), 0)
    torch.manual_seed(0)
    direction = torch.randn_like(base.tensors["weights"])
    return base, direction / direction.norm() * base.tensors["weights"].norm()


def test_an_average_keeps_no_member_that_raises_the_loss():
    def states(trainer):
        base, direction = trained(trainer)
        worse = State({**base.tensors, "weights": -base.tensors["weights"]}, base.step)
        return {"good": base, "upside down": worse, "astray": moved(base, direction, 5.0)}

    cooldowns = with_models(states)
    found, members = cooldowns.average(Tree())
    assert members == ["good"]
    assert torch.equal(found.tensors["weights"], cooldowns.done["good"].model().tensors["weights"])


def test_an_average_keeps_members_whose_faults_cancel():
    def states(trainer):
        base, direction = trained(trainer)
        return {"one": moved(base, direction, 2.0), "other": moved(base, direction, -2.0)}

    cooldowns = with_models(states)
    found, members = cooldowns.average(Tree())
    assert sorted(members) == ["one", "other"]
    trainer, rows = cooldowns.trainer, cooldowns.trunk.rows
    mean_loss = trainer.calibrated_losses(found, rows).mean()
    assert mean_loss < min(cooled.losses.mean() for cooled in cooldowns.done.values())
    middle = sum(cooled.model().tensors["weights"] for cooled in cooldowns.done.values()) / 2
    assert torch.allclose(found.tensors["weights"], middle)


def test_members_are_tried_from_the_best_on():
    def states(trainer):
        base, direction = trained(trainer)
        return {name: moved(base, direction, by) for name, by in (("far", 0.9), ("best", 0.0), ("near", 0.2))}

    cooldowns = with_models(states)
    order = sorted(cooldowns.done, key=lambda name: cooldowns.done[name].losses.mean())
    cooldowns.average(Tree())
    tried = [
        unit.value["average"] for unit in cooldowns.trunk.context.run.units("average/") if "average" in unit.value
    ]
    assert tried[0] == order[:2]
    assert tried[1][-1] == order[2]


def normed():
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 2))


def test_an_average_renews_its_batch_statistics_and_no_weight():
    task = Classification(model=normed, steps=40, batch_size=64, lr=0.02, device="cpu")

    def states(trainer):
        return {"one": trainer.fit(Tree(), 0), "same": trainer.fit(Tree(), 0)}

    cooldowns = with_models(states, renew=30, model=task)
    for name, tensor in cooldowns.done["same"].model().tensors.items():
        if "running" in name:
            tensor.fill_(9.0)
    cooldowns.done["one"].losses[:] = cooldowns.done["same"].losses[:] = 100.0  # whatever comes is better
    found, members = cooldowns.average(Tree())
    assert members == ["one", "same"]
    one = cooldowns.done["one"].model().tensors
    assert torch.equal(found.tensors["weights"], one["weights"])
    running = next(name for name in one if "running_mean" in name)
    assert (found.tensors[running] - one[running]).abs().max() < 0.4  # half of what was spoilt is 4.5
    assert not torch.equal(found.tensors[running], one[running])
