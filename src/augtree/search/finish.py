"""The end of a search: the last cool-downs, the tree that is grown by them, and the average of their models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from augtree.keys import Key
from augtree.policies import Tree
from augtree.policies.export import tree_in_words
from augtree.search.branches import Branch, Losses
from augtree.search.factorial import Effect
from augtree.search.grow import BudgetSpentError, Built
from augtree.search.play import Play
from augtree.search.scorers.base import Model, mean, se
from augtree.search.trunk import EVERYBODY, Trunk, branched
from augtree.training.schedules import cool_down
from augtree.training.trainer import State, Trainer, seed_of
from augtree.transforms import AutoAugment, Identity, RandAugment, TrivialAugment
from augtree.transforms.base import Policy, Transform
from augtree.transforms.traits import ALONE

PRESETS = (RandAugment, TrivialAugment, AutoAugment)
FEW = 100
"""With fewer validation samples nothing is told apart: the mixture stays."""
CHILD_P = 0.5
"""The probability of a child below the root, where its sibling does not say it."""


HALF_ALONE = ", half of the samples left alone"


class Cooled(NamedTuple):
    """A cool-down: what it was called and trained on, and what came of it."""

    name: str
    policy: Policy
    losses: Losses
    model: Model


@dataclass
class Finish:
    """Cool-downs from the end of the trunk, which are the scorings of Algorithm 1; each is a finished model."""

    trunk: Trunk
    done: dict[str, Cooled] = field(default_factory=dict)
    gains: dict[int, Losses] = field(default_factory=dict)
    """What each node that was kept brings on each validation sample."""

    def __post_init__(self) -> None:
        self.trainer: Trainer = self.trunk.trainer
        self.seed = self.trunk.seed
        self.left = self.trunk.plan.last

    @property
    def play(self) -> Play:
        """What is in play where groups are not told apart."""
        return self.trunk.plays[EVERYBODY]

    # ---- Algorithm 1

    def build_one_node(self, node: int, tree: Tree, p: float | None) -> Built:
        """The root is the mixture or a style over the basics; below it stand transforms that come after."""
        if node == 1:
            self.on_the_mixture()
        entries = self.roots() if node == 1 else self.children(tree, node, p)
        standing = self.cooled(self.play.mixture() if node == 1 else tree)
        rivals = [self.cooled(entry) for entry in entries[: self.left]]
        winner, gain, error = self.best(standing, rivals)
        if node == 1:
            root = winner.policy.nodes.get(1) if isinstance(winner.policy, Tree) else None
            if root is None:
                return Built(Identity(), 0.0, False, why="nothing is in play")
            why = "" if winner is not standing else "nothing beat the mixture"
            return Built(root.transform, root.p, True, gain, error, why)
        if winner is standing:
            return Built(Identity(), 0.0, False, gain, error, why=f"nothing improved on the tree without node {node}")
        self.gains[node] = standing.losses - winner.losses
        new = cast(Tree, winner.policy).nodes[node]
        return Built(new.transform, new.p, True, gain, error)

    def on_the_mixture(self) -> None:
        """The first two cool-downs, side by side: on the mixture, and on it with half of the samples left alone.

        If the latter is clearly better, half of them are left alone from here on. Where that is so already, the two
        differ in their draws alone.
        """
        mixture, lighter = self.play.mixture(), self.play.without([ALONE]).mixture()
        name = named(mixture)
        if self.left == 1:
            self.cool({name: mixture})
        elif lighter == mixture:
            self.cool({name: mixture, f"{name}, again": mixture})
        else:
            self.cool({name: mixture, f"{name}{HALF_ALONE}": lighter})
            whole, half = self.done.values()
            winner, gain, error = self.best(whole, [half])
            if len(whole.losses) >= FEW:
                self.trunk.settle(Effect(gain, error), left=winner is half)

    def roots(self) -> list[Tree]:
        """The published policies in play over the basics, RandAugment at its own strength first."""
        styles = [style for style in self.play.styles if type(style) in PRESETS]
        styles.sort(key=lambda style: (type(style) is not RandAugment or style != usual(style), 0))
        return [self.play.over_basics(style) for style in styles]

    def children(self, tree: Tree, node: int, p: float | None) -> list[Tree]:
        """What may come after: the user's own transforms, and what is no preset."""
        if not self.left:
            raise BudgetSpentError
        after = dict.fromkeys([*self.play.on_top, *self.play.styles])
        chosen = [c for c in after if not isinstance(c, (*PRESETS, Identity))]
        return [tree.with_node(node, candidate, CHILD_P if p is None else p) for candidate in chosen]

    def best(self, standing: Cooled, rivals: list[Cooled]) -> tuple[Cooled, float, float]:
        """Whoever clearly beats what stands, on samples that did not choose it (two halves that take turns)."""
        count = len(standing.losses)
        if not rivals or count < FEW:
            return standing, 0.0, 0.0
        turn = Key.of(self.seed, np.arange(count), role="halves").uniform() < 0.5
        gains = np.zeros(count)
        chosen = []
        for chooses in (turn, ~turn):
            first = min(rivals, key=lambda rival: rival.losses[chooses].mean())
            chosen.append(first)
            gains[~chooses] = standing.losses[~chooses] - first.losses[~chooses]
        gain, error = mean(gains), se(gains)
        clear = chosen[0] is chosen[1] and gain > self.trunk.options.sure * error
        return (chosen[0] if clear else standing), gain, error

    # ---- cool-downs

    def cooled(self, policy: Policy) -> Cooled:
        """A cool-down on a policy, unless there has been one."""
        for known in self.done.values():
            if known.policy == policy:
                return known
        name = named(policy)
        name = repr(policy) if name in self.done else name  # words leave out what borders are filled with
        self.cool({name: policy})
        return self.done[name]

    def cool(self, policies: Mapping[str, Policy]) -> None:
        """Cool-downs side by side, from the same draws; the names of those from other draws end with "again"."""
        one, plan = self.trainer.total_steps, self.trunk.plan
        steps = max(1, round(plan.cool * one))
        down = tuple(self.trainer.task.rate * share for share in cool_down(steps))
        branches, words = {}, {}
        for number, (name, policy) in enumerate(policies.items(), len(self.done)):
            key, seed = f"cool/{number}", seed_of(self.seed, "cool", name.endswith("again"))
            branches[key] = Branch(policy, down, seed, self.trunk.rows, kept=True)
            words[key] = name
        about = {"at": round(self.trunk.step / one, 4), "steps": steps}
        grown = branched(self.trunk, branches, about, words)
        for (name, policy), (_, losses, model) in zip(policies.items(), grown, strict=True):
            self.done[name] = Cooled(name, policy, losses, cast(Model, model))
            self.left -= 1

    # ---- the finished model

    def average(self, policy: Policy) -> tuple[State, list[str]]:
        """The average of the best cool-downs, best first, as long as the validation loss does not rise with one more.

        Batch statistics are renewed on the policy, at rate zero.
        """
        order = sorted(self.done.values(), key=lambda cooled: mean(cooled.losses))
        kept, state, losses = [order[0]], order[0].model(), order[0].losses
        for i, cooled in enumerate(order[1:]):
            made: list[State] = []
            names = [member.name for member in (*kept, cooled)]

            def work(members: list[Cooled] = [*kept, cooled], made: list[State] = made) -> State:  # noqa: B006
                found = averaged([member.model() for member in members])
                rates = [0.0] * self.trunk.options.renew
                made.append(self.trainer.train(found, policy, rates, seed_of(self.seed, "renew")))
                return made[0]

            model = self.trunk.bench.training(f"average/{i}", work)
            unit = self.trunk.bench.losses(
                f"average/{i}/losses", {"average": names}, self.judgement(model), keep=True
            )  # fmt: skip
            if unit.losses is not None and mean(unit.losses) <= mean(losses):
                kept, state, losses = [*kept, cooled], model(), unit.losses
        return state, [member.name for member in kept]

    def judgement(self, model: Model) -> Callable[[], Any]:
        """The validation losses of a model, as work for a unit."""
        return lambda: self.trainer.calibrated_losses(model(), self.trunk.rows)


def named(policy: Policy) -> str:
    """What a cool-down on a policy is called."""
    return tree_in_words(policy) if isinstance(policy, Tree) else "forest"


def usual(style: Transform) -> Transform:
    """RandAugment at its own strength, with the fill of another."""
    return RandAugment(fill=getattr(style, "fill", 0))


def averaged(states: list[State]) -> State:
    """The average of several states, whole numbers apart: they are the first one's."""
    first = states[0]
    tensors = {}
    for name, tensor in first.tensors.items():
        if tensor.is_floating_point():
            total = torch.stack([state.tensors[name].double() for state in states]).mean(0)
            tensors[name] = total.to(tensor.dtype)
        else:
            tensors[name] = tensor
    return State(tensors, first.step)
