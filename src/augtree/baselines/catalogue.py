"""What can be a row of a comparison by name: what each is, where it is from, what it needs and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from augtree.baselines.base import SETTINGS
from augtree.baselines.controls import Control, Longer, Searched, Soup
from augtree.baselines.registry import METHODS
from augtree.data import Dataset
from augtree.policies.presets import NAMED
from augtree.search.search import space_for
from augtree.tasks import Classification, Task

IMAGE, GRAPH, BOTH = ("image",), ("graph",), ("image", "graph")
ALL = tuple(SETTINGS.values())


@dataclass(frozen=True)
class Entry:
    """A name that `augtree compare` takes."""

    name: str
    kind: str
    """free (a policy without a search), control, search or method."""
    about: str
    source: str
    needs: str
    costs: str
    settings: tuple[str, ...]
    domains: tuple[str, ...]


def free(name: str, about: str, source: str, domains: tuple[str, ...] = IMAGE) -> Entry:
    """The entry of a free policy."""
    return Entry(name, "free", about, source, "", "1", ALL, domains)


RANDAUGMENT, TRIVIAL = "Cubuk et al. 2020, NeurIPS", "Müller and Hutter 2021, ICCV"
PRESETS = {
    entry.name: entry
    for entry in (
        free("none", "nothing beyond the task's preprocessing", "empirical risk", BOTH),
        free(
            "randaugment", "two operations of fourteen, at magnitude 9 of 30; for graphs of five", RANDAUGMENT, BOTH
        ),
        free("trivialaugment", "one operation of fourteen, at any magnitude", TRIVIAL),
        free("flip-crop", "flips left-right and crops", "usual practice"),
        free("flip-crop-randaugment", "flips, crops, RandAugment", RANDAUGMENT),
        free("flip-crop-trivialaugment", "flips, crops, TrivialAugment", TRIVIAL),
        free(
            "autoaugment",
            "AutoAugment's policy for the data, or for ImageNet",
            "Cubuk et al. 2019, CVPR",
        ),
        free("autoaugment-cifar10", "AutoAugment's policy for CIFAR-10", "Cubuk et al. 2019, CVPR"),
        free("autoaugment-svhn", "AutoAugment's policy for SVHN", "Cubuk et al. 2019, CVPR"),
        free("autoaugment-imagenet", "AutoAugment's policy for ImageNet", "Cubuk et al. 2019, CVPR"),
        free("simclr", "crops, colours and blur", "Chen et al. 2020, ICML"),
        free("graphcl", "one of four operations on graphs", "You et al. 2020, NeurIPS", GRAPH),
        free("graph-randaugment", "two of four operations on graphs, or none", RANDAUGMENT, GRAPH),
    )
}
CONTROLS: dict[str, Callable[[Dataset, Task], Control]] = {
    "search": lambda data, task: Searched(space_for(data, task, None)),
    "longer": lambda data, task: Longer(2),  # noqa: ARG005
    "soup": lambda data, task: Soup(2),  # noqa: ARG005
}
"""Methods whose values depend on the comparison."""
BEST_FREE = "a free policy in the table"
OTHERS = (
    (
        "search",
        "search",
        "augtree's search, judged by the model that it ends with",
        "augtree",
        "8 validation samples",
    ),
    ("longer", "control", "the best free policy of the table, trained twice as long", "a control", BEST_FREE),
    ("soup", "control", "the average of two cool-downs with the best free policy", "a control", BEST_FREE),
)
"""Name, kind, what it is, source and needs of those that cost two trainings and are for all tasks."""


def control_of(name: str, data: Dataset, task: Task | None = None) -> Control:
    """The control, or the search, of a name."""
    return CONTROLS[name](data, Classification() if task is None else task)


def catalogue() -> Iterator[Entry]:
    """Every name, free policies first."""
    yield from (PRESETS[name] for name in NAMED)
    yield from (Entry(*other, "2", ALL, BOTH) for other in OTHERS)
    for method in METHODS.values():
        about = (method.about, method.source, method.needs, method.costs)
        yield Entry(method.name, method.kind, *about, method.settings, method.domains)


def is_known(name: str) -> bool:
    """Whether a text is the name of a policy or a method, and not a file."""
    return name.lower() in NAMED or name.lower() in METHODS or name.lower() in CONTROLS


def is_method(name: str) -> bool:
    """Whether a text names a method, a control or a search, and not a policy."""
    return is_known(name) and name.lower() not in NAMED


def names() -> list[str]:
    """Every name."""
    return [*NAMED, *CONTROLS, *METHODS]


def listing() -> list[dict[str, Any]]:
    """Every entry as JSON has it."""
    return [asdict(entry) for entry in catalogue()]
