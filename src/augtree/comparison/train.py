"""`train`: one model with a policy, to keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from augtree.baselines.methods import PolicyLike, check_domain, policy_of
from augtree.data import Dataset
from augtree.errors import whole_number
from augtree.files import make_folder, write_atomically
from augtree.policies.codec import to_json
from augtree.runs.events import Planned, Stepped, Watch, silent
from augtree.tasks import Classification, Task
from augtree.training.model_files import model_files


@dataclass(frozen=True)
class Trained:
    """A trained model and its metrics."""

    model: nn.Module
    """The model, in eval mode; it takes pictures of 0..1, normalised by `mean` and `std`."""
    metrics: Mapping[str, Mapping[str, float]]
    """Every metric on each split."""
    mean: tuple[float, ...]
    """Of the training pictures, by channel."""
    std: tuple[float, ...]
    """Of the training pictures, by channel."""


def train(
    data: Dataset,
    task: Task | None = None,
    policy: PolicyLike = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    watch: Watch = silent,
) -> Trained:
    """Train one model with a policy.

    Parameters
    ----------
    data
        The data set; its training samples are trained on.
    task
        Model, length of a training, metric; by default `Classification()`.
    policy
        A value, a preset ("trivialaugment"), a file, the folder of a run, or None for no augmentation.
    seed
        The same seed gives the same model.
    out
        The folder for the weights (safetensors), the policy and the metrics.
    watch
        Called with every event (`augtree.runs.events`).

    Examples
    --------
    >>> import augtree as at
    >>> data = at.data.load("digits", train=60, val=60)
    >>> task = at.tasks.Classification(model="cnn", options={"width": 2}, steps=10, batch_size=16)
    >>> sorted(at.train(data, task, "randaugment").metrics)
    ['test', 'val']

    """
    task, found = task or Classification(), policy_of(policy, "policy", data)
    check_domain("policy", found, data)
    seed = whole_number("seed", seed, 0, 2**63 - 1)
    folder = None if out is None else Path(out)
    if folder is not None:
        make_folder(folder)  # before the work is done for it
    trainer = task.prepare(data)
    watch(Planned(steps=trainer.total_steps))
    rates = task.rates(trainer.total_steps)
    state = trainer.train(trainer.fresh(seed), found, rates, seed, tick=lambda done: watch(Stepped(done)))
    judged = [split for split in ("val", "test") if len(data.indices(split))]
    metrics = {split: trainer.measures(state, data.indices(split)) for split in judged}
    result = Trained(trainer.module(state), metrics, *trainer.mean_and_std())
    if folder is not None:
        files = model_files(result.model, task.spec(), data.classes, result.mean, result.std, metrics=metrics)
        for name, content in {**files, "policy.json": to_json(found).encode()}.items():
            write_atomically(folder / name, content)
    return result
