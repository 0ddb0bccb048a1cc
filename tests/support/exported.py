"""Exported modules: run them as a stranger would, and enumerate what the code of their policies can do."""

import ast
import sys
from collections import defaultdict

import numpy as np
import torch

import augtree as at
from augtree.transforms import Chain, Flip, OneOf, VerticalFlip

CALLS = {
    "Rotate": "rotate",
    "Color": "adjust_color",
    "Sharpness": "adjust_sharpness",
    "AutoContrast": "autocontrast",
    "Posterize": "keep_bits",
    "Equalize": "equalize_histogram",
}
"""Operations of which no two are written as the same call."""


def run(source, allowed=("torch",)):
    """The names of a module after it has run without augtree; it may import what is allowed."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, *allowed}
    names = {"__name__": "exported"}
    library, sys.modules["augtree"] = sys.modules["augtree"], None  # so that its import fails
    try:
        exec(compile(source, "exported.py", "exec"), names)
    finally:
        sys.modules["augtree"] = library
    return names


def random_tree(seed, levels=4, composites=False):
    """A tree of named operations with probabilities that may be 0 and 1."""
    rng = np.random.default_rng(seed)
    space = at.spaces.images()
    plain = [space[name, 0.6] for name in CALLS]
    more = [Chain([(plain[0], 0.5), plain[1]]), OneOf([(plain[2], 3), plain[3]]), Flip(0.3), VerticalFlip()]
    tree = at.Tree()
    for index in range(1, 2**levels):
        if index > 1 and (index // 2 not in tree.nodes or rng.random() < 0.25):
            continue
        sibling = tree.nodes.get(index ^ 1) if index > 1 else None
        p = rng.choice([0.0, 1.0, 0.3, rng.random()]) if sibling is None else 1 - sibling.p
        pool = plain + more if composites else plain
        tree = tree.with_node(index, pool[rng.integers(len(pool))], p=float(p))
    return tree


class Decisions:
    """One run through code that asks for random numbers: takes the branches it is told to, and then the first."""

    def __init__(self, told):
        self.told, self.taken, self.probability = told, [], 1.0

    def take(self, probabilities):
        """The number of the branch; branches without probability are never taken."""
        options = [i for i, p in enumerate(probabilities) if p > 1e-15]
        here = len(self.taken)
        which = self.told[here] if here < len(self.told) else 0
        self.taken.append((which, len(options)))
        self.probability *= probabilities[options[which]]
        return options[which]


class Unknown:
    """A number that is uniform in an interval, which a comparison cuts."""

    def __init__(self, decisions):
        self.decisions, self.low, self.high = decisions, 0.0, 1.0

    def __lt__(self, edge):
        cut = min(max(edge, self.low), self.high)
        below = (cut - self.low) / (self.high - self.low)
        if self.decisions.take([below, 1 - below]) == 0:
            self.high = cut
            return True
        self.low = cut
        return False

    def __ge__(self, edge):
        return not self < edge


class Draws:
    """Stands for an exported module's draws: every number is asked for once."""

    def __init__(self, decisions, place=(), asked=None):
        self.decisions, self.place, self.asked = decisions, place, {} if asked is None else asked

    def at(self, place):
        return Draws(self.decisions, (*self.place, place), self.asked)

    def uniform(self, counter=0):
        return self.asked.setdefault((self.place, counter), Unknown(self.decisions))

    def below(self, high, counter=0):
        return self.decisions.take([1 / high] * high)


def distribution(names, group=None):
    """What the policy of an exported module does, each sequence of calls with its probability."""
    names = {**names, **{name: recorded(name) for name in CALLS.values()}, "level": fixed, "sign": fixed}
    names |= {name: recorded(name) for name in ("flip_left_right", "flip_up_down")}
    for name, value in list(names.items()):  # so that the module's own functions see these
        if callable(value) and getattr(value, "__code__", None) and value.__code__.co_filename == "exported.py":
            names[name] = type(value)(value.__code__, names, name, value.__defaults__)
    found, waiting = defaultdict(float), [()]
    while waiting:
        told = waiting.pop()
        decisions = Decisions(told)
        found[names["augment"]((), Draws(decisions), group)] += decisions.probability
        for place in range(len(told), len(decisions.taken)):
            before = tuple(which for which, _ in decisions.taken[:place])
            waiting += [(*before, other) for other in range(1, decisions.taken[place][1])]
    return dict(found)


def recorded(name):
    """A function that notes its call."""
    return lambda calls, *_: (*calls, name)


def fixed(*_):
    return 1.0


def expected(paths):
    """The distribution over paths, as calls."""
    found = defaultdict(float)
    for probability, path in paths:
        for share, calls in spelled(path):
            if probability * share > 1e-15:
                found[calls] += probability * share
    return dict(found)


def spelled(path):
    """What a path of transforms calls, composites taken apart by their definition."""
    ways = [(1.0, ())]
    for transform in path:
        ways = [(p * q, calls + more) for p, calls in ways for q, more in spelled_out(transform)]
    return ways


def spelled_out(transform):
    match transform:
        case Chain(steps=steps):
            ways = [(1.0, ())]
            for step, p in steps:
                both = [(p * q, more) for q, more in spelled_out(step)] + [(1 - p, ())]
                ways = [(p * q, calls + more) for p, calls in ways for q, more in both]
            return ways
        case OneOf(choices=choices):
            total = sum(weight for _, weight in choices)
            return [(weight / total * q, more) for choice, weight in choices for q, more in spelled_out(choice)]
        case Flip(p=p):
            return [(p, ("flip_left_right",)), (1 - p, ())]
        case VerticalFlip(p=p):
            return [(p, ("flip_up_down",)), (1 - p, ())]
    return [(1.0, (CALLS[transform.name],))]


def noise(count, channels, height, width, seed=0):
    """Pictures of noise."""
    shape = (count, channels, height, width)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
