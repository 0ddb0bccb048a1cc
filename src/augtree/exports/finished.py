"""The finished model of a run, read back from its folder: the network, its weights, and all that belongs to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn

from augtree import models
from augtree.errors import ArgumentError, RunError, need
from augtree.tasks.contrastive import Projection

WEIGHTS, ABOUT = "model.safetensors", "training.json"


class OnPictures(nn.Module):
    """From uint8 pictures [N,C,H,W] to the model's outputs: the normalisation is part of it."""

    scale: Tensor
    shift: Tensor

    def __init__(self, model: nn.Module, mean: list[float], std: list[float], *, features: bool) -> None:
        super().__init__()
        self.model, self.features = model, features
        deviation = torch.tensor(std, dtype=torch.float64).view(1, -1, 1, 1)
        middle = torch.tensor(mean, dtype=torch.float64).view(1, -1, 1, 1)
        self.register_buffer("scale", (1 / (255 * deviation)).float())
        self.register_buffer("shift", (-middle / deviation).float())

    def forward(self, pictures: Tensor) -> Tensor:
        """Logits [N, outputs]; an encoder's features [N, features]."""
        normalised = torch.addcmul(self.shift, pictures.float(), self.scale)
        outputs: Tensor = self.model.features(normalised) if self.features else self.model(normalised)  # type: ignore[operator]
        return outputs


class OnGraphs(nn.Module):
    """From the tensors of some graphs to the model's outputs."""

    def __init__(self, model: nn.Module, *, features: bool) -> None:
        super().__init__()
        self.model, self.features = model, features

    def forward(self, x: Tensor, edge_index: Tensor, counts: Tensor) -> Tensor:
        """Node features [nodes, channels], edges [2, edges], and how many nodes each graph has [graphs]."""
        numbers = torch.arange(x.shape[0], device=x.device)
        graph = (numbers[:, None] >= counts.cumsum(0)).sum(1)  # and not searchsorted, which ONNX has not
        batch = SimpleNamespace(
            x=x, edge_index=edge_index, batch=graph, num_graphs=counts.shape[0], num_nodes=x.shape[0]
        )
        outputs: Tensor = self.model.features(batch) if self.features else self.model(batch)  # type: ignore[operator]
        return outputs


@dataclass(frozen=True)
class Finished:
    """A finished model, and what is known about it."""

    model: nn.Module
    """With its weights, in eval mode; it takes normalised pictures, or PyG batches."""
    about: Mapping[str, Any]
    """Classes, mean and std, network and inputs, and whether it gives logits or features."""

    @property
    def domain(self) -> str:
        """What the model takes: image or graph."""
        return str(self.about["inputs"]["domain"])

    def module(self) -> OnPictures | OnGraphs:
        """The model as it is exported."""
        features = self.about["outputs"] == "features"
        if self.domain == "graph":
            return OnGraphs(self.model, features=features).eval().requires_grad_(False)
        return (
            OnPictures(self.model, self.about["mean"], self.about["std"], features=features)
            .eval()
            .requires_grad_(False)
        )

    def example(self, count: int) -> tuple[Tensor, ...]:
        """Inputs of the exported model for so many samples."""
        generator = torch.Generator().manual_seed(0)
        if self.domain == "image":
            shape = (count, *self.about["shape"])
            return (torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator),)
        nodes = 5 * count
        ring = torch.arange(nodes)
        edges = torch.stack([ring, ring - ring % 5 + (ring + 1) % 5])
        x = torch.rand(nodes, self.about["inputs"]["channels"], generator=generator)
        return x, torch.cat([edges, edges.flip(0)], dim=1), torch.full((count,), 5)


def read_finished(run: str | Path, model: Callable[[], nn.Module] | None = None) -> Finished:
    """The finished model of a run; one that a function made needs that function again."""
    folder = Path(run)
    if not (folder / WEIGHTS).is_file() or not (folder / ABOUT).is_file():
        hint = " yet: the run is not done" if (folder / "spec.json").is_file() else ""
        rule = f"must be the folder of a run with a finished model ({WEIGHTS}, {ABOUT}), but there is none{hint}"
        raise RunError(f"{folder} {rule}")
    about = read_about(folder / ABOUT)
    inputs, task = about["model"], about["task"]
    options = {name: value for name, value in task["options"].items() if name != "weights"}
    if inputs["network"] is None and model is None:
        raise ArgumentError("model", "must be given: the run's model is a function (export_model(run, model=...))")
    form = models.Inputs(*(inputs[name] for name in models.Inputs._fields))
    module = models.build(inputs["network"], form, **options) if model is None else models.build(model, form)
    contrastive = task["task"] == "contrastive"
    if contrastive:
        module.fc = Projection(cast(nn.Linear, module.fc).in_features, task["dim"])
    load_weights(module, folder / WEIGHTS)
    known = {name: about[name] for name in ("classes", "mean", "std")}
    known |= {"network": inputs["network"], "options": options, "inputs": form._asdict(), "shape": inputs["shape"]}
    return Finished(module.eval(), {**known, "outputs": "features" if contrastive else "logits"})


def read_about(path: Path) -> dict[str, Any]:
    """What a run has written beside its weights."""
    try:
        about: dict[str, Any] = json.loads(path.read_bytes())
        _ = about["mean"], about["std"], about["classes"], about["task"]["options"], about["model"]["network"]
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} must say how the model is made: it is damaged, or of an older version of augtree ({error!r})"
        ) from error
    return about


def load_weights(module: nn.Module, path: Path) -> None:
    """Load the weights, which must be those of the module."""
    try:
        module.load_state_dict(need("safetensors.torch", "train").load_file(path))
    except (RuntimeError, need("safetensors", "train").SafetensorError) as error:
        raise RunError(f"{path} must hold the weights of the run's model ({error})") from error
