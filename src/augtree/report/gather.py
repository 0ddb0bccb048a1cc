"""All that a page says about a run, as a plain value: read from its folder, which need not be finished."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from augtree.data import Dataset
from augtree.errors import AugtreeError, RunError
from augtree.policies import Forest, Tree
from augtree.policies.codec import Reader, policy_in
from augtree.policies.reader import read_text
from augtree.runs.spec import Transforms, check_parts, restore_data, restore_task
from augtree.runs.store import Run, Unit, read_spec
from augtree.search.play import UNGROUPED
from augtree.tasks import Task
from augtree.transforms.base import Policy

RESULTS = ("result.json", "comparison.json", "evaluation.json")
"""Files of results, of which a run has one."""
KINDS = {
    "search": "the search for a policy",
    "forest": "the search for a policy for each group",
    "fit": "a model and the weights of groups, for given trees",
    "train": "a training with one policy",
    "compare": "a comparison of policies",
    "evaluate": "an evaluation of encoders",
}
"""What each kind of run is, in words."""
Mapped = Mapping[str, Any]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Record:
    """A run, as its folder has it."""

    folder: Path
    spec: Mapped
    units: Sequence[Unit]
    """The finished units of work, in their order."""
    facts: Mapped
    """What is recorded about the run as a whole."""
    result: Mapped = field(default_factory=dict)
    """The content of its file of results; empty until it is done."""
    training: Mapped = field(default_factory=dict)
    """The content of training.json; empty where there is no finished model."""
    policies: Mapping[str, Tree] = field(default_factory=dict)
    """The tree of each group, or of the group '' alone: found, or what is in play so far."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The weight of each group, where there are groups."""
    data: Dataset | None = None
    no_data: str = ""
    """Why there is no data."""
    task: Task | None = None
    no_task: str = ""
    """Why there is no task, and so no model."""
    no_policy: str = ""
    """Why policies cannot be drawn."""
    groups: Mapping[str, Record] = field(default_factory=dict)
    """The search of each group, with the paper's method."""

    @property
    def kind(self) -> str:
        """Search, forest, fit, train, compare or evaluate."""
        return str(self.spec.get("kind"))

    @property
    def name(self) -> str:
        """The name of the data set."""
        return str(self.spec["data"]["name"])

    @property
    def status(self) -> str:
        """Done, begun, or spent where a budget ended the search."""
        return str(self.facts.get("status", "begun"))

    @property
    def is_open(self) -> bool:
        """Whether there is work left."""
        return self.status == "begun"

    @property
    def metric(self) -> str:
        """The task's metric."""
        return str(self.spec["task"].get("metric", "accuracy"))

    @property
    def findings(self) -> Sequence[Mapped]:
        """The evidence of looks and tests, as far as there is any."""
        return cast(Sequence[Mapped], self.result.get("findings") or self.facts.get("findings") or ())

    @property
    def notes(self) -> Sequence[str]:
        """What a reader should know."""
        return cast(Sequence[str], self.result.get("notes", ()))

    @property
    def seconds(self) -> float:
        """The time that all units have taken."""
        return sum(unit.seconds for unit in (*self.units, *(u for each in self.groups.values() for u in each.units)))

    @property
    def training_steps(self) -> int | None:
        """The steps of a whole training, as far as the run tells."""
        steps = self.facts.get("plan", {}).get("training_steps") or self.spec["task"].get("steps")
        if steps is None:
            tests = [u.value for u in self.units if u.key.startswith(("test/", "look/")) and u.value.get("at")]
            trunk = [u.value["step"] for u in self.units if u.key.startswith("trunk/")]
            if tests and trunk:
                steps = round(trunk[0] / tests[0]["at"]) if tests[0]["at"] else None
        return None if steps is None else int(steps)

    def starting(self, prefix: str) -> list[Unit]:
        """The units whose keys begin so."""
        return [unit for unit in self.units if unit.key.startswith(prefix)]


def gather(
    folder: str | Path, data: Dataset | None = None, task: Task | None = None, transforms: Transforms = ()
) -> Record:
    """A run as its folder has it now, with its data and task where they are still there."""
    path = Path(folder)
    spec = read_spec(path)
    check_parts(spec, path)
    units, facts = stored(path)
    units += stored(path / "fit")[0] if (path / "fit" / "spec.json").is_file() else []
    reader = Reader(path / "spec.json", transforms)
    found, no_data = tried(lambda: restore_data(spec["data"], path, own_data(spec, data)))
    made, no_task = (task, "") if task is not None else tried(lambda: restore_task(spec["task"], reader))
    policies, weights, no_policy = policies_of(path, spec, facts, transforms)
    return Record(
        path, spec, units, facts, read_first(path, RESULTS), read_first(path, ("training.json",)),
        policies, weights, found, no_data, made, no_task, no_policy, groups_of(path, spec, transforms),
    )  # fmt: skip


def restored_data(folder: Path, data: Dataset | None = None) -> Dataset | None:
    """The data of a run, read once for many pages; None where it is not there."""
    spec = read_spec(folder)
    check_parts(spec, folder)
    return tried(lambda: restore_data(spec["data"], folder, own_data(spec, data)))[0]


def own_data(spec: Mapped, data: Dataset | None) -> Dataset | None:
    """The given data where they are those of a run: among several runs, not all need be on the same data."""
    return data if data is not None and data.fingerprint == spec["data"]["fingerprint"] else None


def stored(folder: Path) -> tuple[list[Unit], dict[str, Any]]:
    """The units and facts of a run; a run that has only begun has none."""
    with Run.open(folder, write=False, thorough=False) as run:
        if not (folder / "run.sqlite").is_file():
            return [], {}
        names = [name for (name,) in run.store.read("SELECT key FROM facts")]
        return list(run.units()), {name: run.fact(name) for name in names}


def tried(work: Callable[[], Value]) -> tuple[Value | None, str]:
    """A value, or the reason why there is none."""
    try:
        return work(), ""
    except (AugtreeError, OSError) as error:
        return None, str(error)


def read_first(folder: Path, names: Iterable[str]) -> Mapped:
    """The content of the first of these JSON files that is there."""
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} must be JSON ({error})") from error
    return content if isinstance(content, dict) else {}


# ---- policies


def policies_of(
    folder: Path, spec: Mapped, facts: Mapped, transforms: Transforms
) -> tuple[dict[str, Tree], dict[str, float], str]:
    """The trees of a run by group and their weights; of one that is not done, what there is so far."""
    try:
        found = policy_of_run(folder, spec, facts, transforms)
    except AugtreeError as error:
        return {}, {}, str(error)
    if isinstance(found, Forest):
        members = found.groups.items()
        return {name: m.tree for name, m in members}, {name: m.weight for name, m in members}, ""
    return {name: as_tree(policy) for name, policy in found.items()}, {}, ""


def policy_of_run(folder: Path, spec: Mapped, facts: Mapped, transforms: Transforms) -> Forest | Mapping[str, Policy]:
    """The policy that a run has found or is about, or what is in play so far."""
    reader = Reader(folder / "spec.json", transforms)
    try:
        path = policy_in(folder)
    except AugtreeError:
        texts = {UNGROUPED: facts["tree"]} if "tree" in facts else facts.get("mixtures", {})
        texts = texts or spec.get("trees") or ({UNGROUPED: spec["policy"]} if "policy" in spec else {})
        return {name: reader.policy(text) for name, text in texts.items()}
    found = Reader(path, transforms).policy(read_text(path))
    return found if isinstance(found, Forest) else {UNGROUPED: found}


def as_tree(policy: Policy) -> Tree:
    """A policy as a tree: a transform stands at the root."""
    return policy if isinstance(policy, Tree) else Tree().with_node(1, cast(Any, policy))


def groups_of(folder: Path, spec: Mapped, transforms: Transforms) -> dict[str, Record]:
    """The searches of the groups' trees, with the paper's method."""
    if spec.get("method") != "paper":
        return {}
    places = sorted(path.parent for path in (folder / "groups").glob("*/spec.json"))
    return {group_name(record.name): record for record in (gather_group(place, transforms) for place in places)}


def gather_group(folder: Path, transforms: Transforms) -> Record:
    """The search of one group, whose data is a part of the whole run's."""
    spec = read_spec(folder)
    units, facts = stored(folder)
    policies, _, no_policy = policies_of(folder, spec, facts, transforms)
    return Record(folder, spec, units, facts, read_first(folder, RESULTS), {}, policies, no_policy=no_policy)


def group_name(name: str) -> str:
    """The group in the name of a data set of one group, NAME[GROUP]."""
    return name[name.rindex("[", 0, -1) + 1 : -1] if name.endswith("]") and "[" in name else name
