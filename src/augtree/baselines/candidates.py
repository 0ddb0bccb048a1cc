"""The single operations that methods choose among, and what they choose by."""

from __future__ import annotations

from typing import Any

from augtree.data import Dataset
from augtree.tasks.trainer import Trainer
from augtree.training.metrics import METRICS
from augtree.training.state import State
from augtree.transforms import Cutout
from augtree.transforms.base import Transform
from augtree.transforms.geometry import Geometry
from augtree.transforms.images import OPERATIONS, Color
from augtree.transforms.spaces import GRAPH_MAGNITUDES, IMAGE_MAGNITUDES, auto


def kinds_for(data: Dataset) -> tuple[type[Transform], ...]:
    """AutoAugment's operations for pictures or GraphCL's for graphs that suit the samples; none mixes samples."""
    if data.domain == "graph":
        return tuple(
            dict.fromkeys(type(each) for each in auto(data) if type(each).__name__ not in ("Identity", "GraphCL"))
        )
    shape: Any = getattr(data.samples, "shape", ())
    coloured = shape[1] in (1, 3)
    return tuple(kind for kind in OPERATIONS if not kind.mixes and (coloured or kind is not Color))


def magnitudes_for(data: Dataset) -> tuple[float, ...]:
    """The usual magnitudes, ascending."""
    return tuple(GRAPH_MAGNITUDES if data.domain == "graph" else IMAGE_MAGNITUDES)


def made(kind: type[Transform], magnitude: float, data: Dataset) -> Transform:
    """An operation at a magnitude, with the fill of the data."""
    options: dict[str, Any] = {"fill": data.fill} if issubclass(kind, Geometry | Cutout) else {}
    return kind(magnitude, **options)  # type: ignore[call-arg]


def validation_score(trainer: Trainer, state: State) -> float:
    """The metric on validation data; higher is better."""
    metric = METRICS[trainer.task.metric]
    value = trainer.measures(state, trainer.data.indices("val"))[metric.name]
    return value if metric.higher_is_better else -value
