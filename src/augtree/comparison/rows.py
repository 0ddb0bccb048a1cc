"""What a run found, as ways to train: its policy by one training, its search again, controls that cost as much."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from augtree.baselines.controls import Longer, Searched, Soup
from augtree.baselines.ways import Asked
from augtree.data import Dataset
from augtree.data.presets import find_for
from augtree.errors import RunError
from augtree.forests import Weighting
from augtree.forests.weighted import weighted_of_run
from augtree.policies import load
from augtree.policies.codec import Reader
from augtree.runs.store import read_spec
from augtree.search.scorers import Cooldown
from augtree.search.search import scorer_again, space_again

DEFAULT_PRACTICE = "flip-crop-trivialaugment"
"""What many would take for pictures without a search."""


def ways_of_run(folder: str | Path, data: Dataset) -> dict[str, Asked]:
    """The rows for a run in a comparison; nothing for a run that found no policy.

    A search ends with a finished model, and so the comparison searches again for every seed. Beside it stand the
    policy by one training, and three controls that cost what the search has cost: the usual practice, and the best
    free policy, trained for as long; and the average of cool-downs of the best free policy.
    """
    place = Path(folder)
    spec = read_spec(place)
    forest = weighted_of_run(place)
    if forest is not None:
        forest = replace(forest, groups=None, merge=None)  # the data is the run's, in its groups
        even = replace(forest, weighting=replace(forest.weighting, eta=0.0, start="uniform"))
        ways: dict[str, Asked] = {"forest, uniform weights": even, "forest": forest}
        if spec.get("method") != "shared":
            return ways
        ways = {"forest's policies": ways["forest"]}
    elif not (place / "tree.json").is_file():
        return {}
    else:
        ways = {f"{place.resolve().name}/tree": load(place / "tree.json")}
        if spec["scorer"]["name"] != "cooldown":
            return ways
    cost = cost_of(place)
    if data.domain == "image":
        ways |= {"usual practice, as long": Longer(cost, find_for(data, DEFAULT_PRACTICE))}
    ways |= {"best free, as long": Longer(cost), "best free, averaged": Soup(cost)}
    return ways | {"forest" if forest else "search": search_of(place, spec)}


def cost_of(folder: Path) -> float:
    """What a run has cost, in training equivalents."""
    place = folder / "result.json"
    if not place.is_file():
        raise RunError(f"{folder} must be done before it can be compared: augtree resume {folder}")
    cost = json.loads(place.read_text())["cost"]
    return float(cost.get("training_equivalents") or cost.get("search_equivalents"))


def search_of(folder: Path, spec: dict[str, Any]) -> Searched:
    """The search of a run, to be done again."""
    reader = Reader(folder / "spec.json", ())
    scorer = cast(Cooldown, scorer_again(spec["scorer"], folder))
    weighting = Weighting(**spec["weighting"]) if spec["kind"] == "forest" else None
    budget = cost_of(folder) if isinstance(spec["budget"], str) else spec["budget"]  # a time is not the same again
    return Searched(space_again(spec["space"], reader), budget, scorer, spec["depth"], weighting)
