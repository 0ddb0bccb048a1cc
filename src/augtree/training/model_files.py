"""A trained model as files: its weights, what pictures are normalised by, and what it takes to make it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from augtree.data import Dataset
from augtree.errors import need
from augtree.training.trainer import inputs_of

if TYPE_CHECKING:
    from augtree.tasks.base import Task


def model_files(
    model: nn.Module, task: Task, data: Dataset, mean: Sequence[float], std: Sequence[float], **about: Any
) -> dict[str, bytes]:
    """The content of model.safetensors and training.json."""
    # Copies: the weights are parts of one long vector, and tied ones are the same part twice.
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    content = {**about, "mean": list(mean), "std": list(std), "classes": list(data.classes)}
    content |= {"model": about_model(task, data), "task": task.spec()}
    return {
        "model.safetensors": need("safetensors.torch", "train").save(weights),
        "training.json": (json.dumps(content, indent=1, allow_nan=False) + "\n").encode(),
    }


def about_model(task: Task, data: Dataset) -> dict[str, Any]:
    """The network (None: a function makes it), what it is made for, and the shape of a picture."""
    name = task.model_for(data)
    shape = list(data.samples.shape[1:]) if isinstance(data.samples, Tensor) else None
    return {"network": name if isinstance(name, str) else None, **inputs_of(data)._asdict(), "shape": shape}
