"""`train`: one model with a policy, to keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from augtree.baselines.ways import Asked, check_domain, policy_of
from augtree.data import Dataset
from augtree.errors import whole_number
from augtree.files import make_folder, write_atomically
from augtree.policies.codec import to_json
from augtree.search.search import Watch
from augtree.tasks import Classification, Task
from augtree.training.model_files import model_files


@dataclass(frozen=True)
class Trained:
    """A model and how it does on each split; it takes pictures normalised by `mean` and `std` of 0..1."""

    model: nn.Module
    metrics: Mapping[str, Mapping[str, float]]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def train(
    data: Dataset,
    task: Task | None = None,
    policy: Asked = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    watch: Watch = lambda *_, **__: None,
) -> Trained:
    """Train one model with a policy. With `out`, its weights (safetensors), policy and metrics go to that folder."""
    task, found = task or Classification(), policy_of(policy, "policy", data)
    check_domain("policy", found, data)
    seed = whole_number("seed", seed, 0, 2**63 - 1)
    about = {"policy.json": to_json(found).encode()}
    folder = None if out is None else Path(out)
    if folder is not None:
        make_folder(folder)  # before the work is done for it
    trainer = task.prepare(data)
    steps = trainer.total_steps
    watch("plan", steps=steps)
    state = trainer.train(
        trainer.fresh(seed), found, task.rates(steps), seed, tick=lambda done: watch("step", done=done)
    )
    judged = [split for split in ("val", "test") if len(data.indices(split))]
    metrics = {split: trainer.measures(state, data.indices(split)) for split in judged}
    result = Trained(trainer.module(state), metrics, *trainer.mean_and_std())
    if folder is not None:
        files = model_files(result.model, task.spec(), data.classes, result.mean, result.std, metrics=result.metrics)
        for name, content in {**files, **about}.items():
            write_atomically(folder / name, content)
    return result
