"""The end of a search: the last cool-downs, the tree that Algorithm 1 grows by them, the average of their models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch

from augtree.keys import Key
from augtree.policies import Tree
from augtree.policies.drawing import tree_in_words
from augtree.runs.checkpoints import LazyState
from augtree.runs.failures import BudgetSpentError
from augtree.search.branches import Branch, Losses
from augtree.search.grow import Built
from augtree.search.play import UNGROUPED, Play
from augtree.search.scorers.base import mean, se
from augtree.search.trunk import Trunk
from augtree.tasks.trainer import Trainer
from augtree.training.schedules import cooldown_rates
from augtree.training.state import State, seed_of
from augtree.transforms import AutoAugment, Identity, RandAugment, TrivialAugment
from augtree.transforms.base import Policy, Transform

PRESETS = (RandAugment, TrivialAugment, AutoAugment)
MIN_VAL_TO_CHOOSE = 100
"""The fewest validation samples to choose a policy by: with fewer, the mixture stays."""
CHILD_P = 0.5
"""The probability of a child below the root that has no sibling."""


class CooledModel(NamedTuple):
    """A finished cool-down: its name and policy, its validation losses, its model."""

    name: str
    policy: Policy
    losses: Losses
    model: LazyState


@dataclass
class FinalCooldowns:
    """The Scorer of a search by cool-downs: each scoring is a cool-down from the end of the trunk."""

    trunk: Trunk
    done: dict[str, CooledModel] = field(default_factory=dict)
    gains: dict[int, Losses] = field(default_factory=dict)
    """The gain of each confirmed node on each validation sample."""

    def __post_init__(self) -> None:
        self.trainer: Trainer = self.trunk.trainer
        self.seed = self.trunk.seed
        self.remaining = self.trunk.plan.last

    @property
    def play(self) -> Play:
        """What is in play in a search that knows no groups."""
        return self.trunk.plays[UNGROUPED]

    # ---- Algorithm 1

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """The root is the mixture or a style over the basics; below it stand transforms that come after."""
        if node == 1:
            self.cool_mixture()
        policies = self.roots() if node == 1 else self.children(tree, node, p)
        champion = self.cooled_on(self.play.mixture() if node == 1 else tree)
        rivals = [self.cooled_on(policy) for policy in policies[: self.remaining]]
        winner, gain, error = self.best(champion, rivals)
        if node == 1:
            root = winner.policy.nodes.get(1) if isinstance(winner.policy, Tree) else None
            if root is None:
                return Built(Identity(), 0.0, False, why="nothing is in play")
            kept = "nothing beat the mixture" if rivals else "the mixture of what is in play"
            why = "" if winner is not champion else kept
            return Built(root.transform, root.p, True, gain, error, why)
        if winner is champion:
            return Built(Identity(), 0.0, False, gain, error, why=f"nothing improved on the tree without node {node}")
        self.gains[node] = champion.losses - winner.losses
        new = cast(Tree, winner.policy).nodes[node]
        return Built(new.transform, new.p, True, gain, error)

    def cool_mixture(self) -> None:
        """The first cool-down, on the mixture, and the second beside it, which differs only in its random draws."""
        mixture = self.play.mixture()
        name = policy_name(mixture)
        self.run(dict.fromkeys((name, f"{name}, again")[: self.remaining], mixture))

    def roots(self) -> list[Tree]:
        """The published policies in play over the basics, RandAugment at its own strength first."""
        styles = [style for style in self.play.styles if type(style) in PRESETS]
        styles.sort(key=lambda style: type(style) is not RandAugment or style != default_randaugment(style))
        return [self.play.over_basics(style) for style in styles]

    def children(self, tree: Tree, node: int, p: float | None) -> list[Tree]:
        """What may come after: the user's own transforms, and candidates that are no presets."""
        if not self.remaining:
            raise BudgetSpentError
        after = dict.fromkeys([*self.play.own, *self.play.styles])
        candidates = [candidate for candidate in after if not isinstance(candidate, (*PRESETS, Identity))]
        return [tree.with_node(node, candidate, CHILD_P if p is None else p) for candidate in candidates]

    def best(self, champion: CooledModel, rivals: list[CooledModel]) -> tuple[CooledModel, float, float]:
        """The rival that clearly beats the champion on samples that did not choose it, or else the champion.

        Each half of the samples chooses a rival, and the other half judges it.
        """
        count = len(champion.losses)
        if not rivals or count < MIN_VAL_TO_CHOOSE:
            return champion, 0.0, 0.0
        half = Key.of(self.seed, np.arange(count), role="halves").uniform() < 0.5
        gains = np.zeros(count)
        choices = []
        for rows in (half, ~half):
            choice = min(rivals, key=lambda rival: rival.losses[rows].mean())
            choices.append(choice)
            gains[~rows] = champion.losses[~rows] - choice.losses[~rows]
        gain, error = mean(gains), se(gains)
        clear = choices[0] is choices[1] and gain > self.trunk.options.sure * error
        return (choices[0] if clear else champion), gain, error

    # ---- cool-downs

    def cooled_on(self, policy: Policy) -> CooledModel:
        """The cool-down on a policy, done now unless it has been."""
        for done in self.done.values():
            if done.policy == policy:
                return done
        name = policy_name(policy)
        name = repr(policy) if name in self.done else name  # a name leaves out what borders are filled with
        self.run({name: policy})
        return self.done[name]

    def run(self, policies: Mapping[str, Policy]) -> None:
        """Cool-downs side by side, from the same draws; those whose names end with "again" have other draws."""
        training_steps = self.trainer.total_steps
        steps = max(1, round(self.trunk.plan.cool * training_steps))
        rates = tuple(self.trainer.task.rate * share for share in cooldown_rates(steps))
        branches, names = {}, {}
        for number, (name, policy) in enumerate(policies.items(), len(self.done)):
            key, seed = f"cool/{number}", seed_of(self.seed, "cool", name.endswith("again"))
            branches[key] = Branch(policy, rates, seed, self.trunk.rows, keep_model=True)
            names[key] = name
        about = {"at": round(self.trunk.step / training_steps, 4), "steps": steps}
        cooled = self.trunk.run_branches(branches, about, names)
        for (name, policy), (losses, model) in zip(policies.items(), cooled, strict=True):
            self.done[name] = CooledModel(name, policy, losses, cast(LazyState, model))
            self.remaining -= 1

    # ---- the finished model

    def average(self, policy: Policy) -> tuple[State, list[str]]:
        """The average of the best cool-downs, best first, as long as the validation loss does not rise with one more.

        Batch-norm statistics are renewed on the policy, at rate zero.
        """
        context = self.trunk.context
        best, *others = sorted(self.done.values(), key=lambda cooldown: mean(cooldown.losses))
        members, state, losses = [best], best.model(), best.losses
        for i, cooldown in enumerate(others):
            model = context.training(f"average/{i}", partial(self.averaged, [*members, cooldown], policy))
            names = [member.name for member in (*members, cooldown)]
            work = partial(self.losses, model)
            unit = context.losses(f"average/{i}/losses", {"average": names}, work, keep=True)
            if unit.losses is not None and mean(unit.losses) <= mean(losses):
                members, state, losses = [*members, cooldown], model(), unit.losses
        return state, [member.name for member in members]

    def averaged(self, members: list[CooledModel], policy: Policy) -> State:
        """The average of some models, its batch-norm statistics renewed."""
        average = average_of([member.model() for member in members])
        rates = [0.0] * self.trunk.options.renew
        return self.trainer.train(average, policy, rates, seed_of(self.seed, "renew"))

    def losses(self, model: LazyState) -> Losses:
        """The validation losses of a model."""
        return self.trainer.calibrated_losses(model(), self.trunk.rows)


def policy_name(policy: Policy) -> str:
    """The name of a cool-down on a policy."""
    return tree_in_words(policy) if isinstance(policy, Tree) else "forest"


def default_randaugment(style: Transform) -> Transform:
    """RandAugment at its default strength, with the fill of a style."""
    return RandAugment(fill=getattr(style, "fill", 0))


def average_of(states: list[State]) -> State:
    """The average of several states; integers (counters) are those of the first."""
    first = states[0]
    tensors = {}
    for name, tensor in first.tensors.items():
        if tensor.is_floating_point():
            total = torch.stack([state.tensors[name].double() for state in states]).mean(0)
            tensors[name] = total.to(tensor.dtype)
        else:
            tensors[name] = tensor
    return State(tensors, first.step)
