"""The rows for a run in a comparison: its policy by one training, its search again, controls of the same cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.methods import PolicyLike
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.errors import ArgumentError, RunError
from augtree.forests import Weighting
from augtree.forests.weighted import weighted_of_run
from augtree.policies import load
from augtree.policies.codec import Reader
from augtree.runs.spec import restore_space
from augtree.runs.store import read_spec
from augtree.search.options import restore_scorer
from augtree.search.scorers import Cooldown

DEFAULT_PRACTICE = "flip-crop-trivialaugment"
"""Usual practice for pictures without a search."""


def rows_of_run(folder: str | Path, data: Dataset) -> dict[str, PolicyLike]:
    """The rows for a run in a comparison; none for a run without a policy.

    A search ends with a finished model, so the comparison searches again for every seed. Beside it stand the policy
    by one training, and three controls that cost what the search has cost: usual practice and the best free policy,
    each trained for as long, and the average of cool-downs of the best free policy.

    Parameters
    ----------
    folder
        The run's folder.
    data
        The data of the comparison.

    Examples
    --------
    >>> import tempfile
    >>> import augtree as at
    >>> from augtree.comparison import rows_of_run
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = at.search_tree(data, task, depth=1, budget=1, out=f"{folder}/mine")
    ...     list(rows_of_run(f"{folder}/mine", data))
    ['mine/tree', 'usual practice, as long', 'best free, as long', 'best free, averaged', 'search']

    """
    path = Path(folder)
    spec = read_spec(path)
    forest = weighted_of_run(path)
    if forest is not None:
        forest = replace(forest, groups=None, merge=None)  # the data is the run's, in its groups
        uniform = replace(forest, weighting=replace(forest.weighting, eta=0.0, start="uniform"))
        rows: dict[str, PolicyLike] = {"forest, uniform weights": uniform, "forest": forest}
        if spec.get("method") != "shared":
            return rows
        rows = {"forest's policies": rows["forest"]}
    elif spec["kind"] == "train" and (path / "policy.json").is_file():
        return {f"{path.resolve().name}/policy": load(path / "policy.json")}
    elif spec["kind"] not in ("search", "train"):
        return {}
    elif not (path / "tree.json").is_file():
        raise not_done(path)
    else:
        rows = {f"{path.resolve().name}/tree": load(path / "tree.json")}
        if spec["scorer"]["name"] != "cooldown":
            return rows
    cost = cost_of(path)
    if data.domain == "image":
        rows |= {"usual practice, as long": Longer(cost, find_for(data, DEFAULT_PRACTICE))}
    rows |= {"best free, as long": Longer(cost), "best free, averaged": Soup(cost)}
    return rows | {"forest" if forest else "search": search_of(path, spec)}


def cost_of(folder: Path) -> float:
    """The cost of a run in training equivalents."""
    path = folder / "result.json"
    if not path.is_file():
        raise not_done(folder)
    cost = json.loads(path.read_text())["cost"]
    return float(cost.get("training_equivalents") or cost.get("search_equivalents"))


def not_done(folder: Path) -> RunError:
    """The error for a run without its result."""
    return RunError(f"{folder} must be done before it can be compared: augtree resume {folder}")


def search_of(folder: Path, spec: dict[str, Any]) -> Searched:
    """The search of a run, to be done again."""
    reader = Reader(folder / "spec.json", ())
    scorer = cast(Cooldown, restore_scorer(spec["scorer"], folder))
    weighting = Weighting.from_spec(spec["weighting"]) if spec["kind"] == "forest" else None
    budget = cost_of(folder) if isinstance(spec["budget"], str) else spec["budget"]  # a time is not the same again
    return Searched(restore_space(spec["space"], reader), budget, scorer, spec["depth"], weighting)


def rows_with_weights(folder: str | Path, option: str, values: Sequence[Any]) -> dict[str, PolicyLike]:
    """The rows of a comparison for the run of a forest, trained with other options of the weights.

    Parameters
    ----------
    folder
        The run's folder.
    option
        An option of `augtree.Weighting`.
    values
        Its values: a row for each.

    Examples
    --------
    >>> import tempfile
    >>> import augtree as at
    >>> data = at.data.group(at.data.load("digits", train=60, val=60), lambda _: "all digits")
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=2, batch_size=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = at.fit_forest(data, task, alpha=1, out=folder)
    ...     list(rows_with_weights(folder, "alpha", [1, 2]))
    ['forest, alpha=1', 'forest, alpha=2']

    """
    forest = weighted_of_run(folder)
    if forest is None:
        raise ArgumentError("folder", "must be the run of a forest", str(folder))
    forest = replace(forest, groups=None, merge=None)  # the data is the run's, in its groups
    own = forest.weighting.spec()
    return {
        f"forest, {option}={value}": replace(forest, weighting=Weighting.of({**own, option: value}))
        for value in values
    }
