"""A trained model as files: its weights, and what pictures are normalised by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from augtree.errors import need


def model_files(
    model: nn.Module, task: Mapping[str, Any], classes: Sequence[str], mean: Sequence[float], std: Sequence[float],
    **about: Any,
) -> dict[str, bytes]:  # fmt: skip
    """The content of model.safetensors and training.json."""
    # Copies: the weights are parts of one long vector, and tied ones are the same part twice.
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    content = {**about, "mean": list(mean), "std": list(std), "classes": list(classes), "task": dict(task)}
    return {
        "model.safetensors": need("safetensors.torch", "train").save(weights),
        "training.json": (json.dumps(content, indent=1, allow_nan=False) + "\n").encode(),
    }
