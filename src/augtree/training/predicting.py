"""The outputs of a model for many samples, a part at a time.

Where a part does not fit into memory, all parts are computed in two halves, from then on. That computes the same but
for rounding: libraries may add up in another order for another number of samples. So it is a fact of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from augtree.errors import lacks_memory
from augtree.training.sampling import Rows
from augtree.training.state import State, seed_of, seeded
from augtree.transforms.base import Policy

if TYPE_CHECKING:
    from augtree.training.trainer import ModelTrainer

Predictor = Callable[[Any, int], Tensor]
"""From a normalised batch and its length to a row for each sample."""
PREDICTED_AT_ONCE = {"cpu": 256, "cuda": 2048}
LARGE_PICTURE = 3 * 64 * 64


def predict(
    trainer: ModelTrainer, state: State, rows: Rows, predictor: Predictor, policy: Policy | None, seed: int
) -> Tensor:
    """The outputs for samples; if memory runs out, once more in halves."""
    before = trainer.passes.forward
    if not trainer.halved:
        try:
            return predict_parts(trainer, state, rows, predictor, policy, seed)
        except Exception as error:
            if not lacks_memory(error):
                raise
        trainer.halved, trainer.passes.forward = True, before
        if trainer.device.type == "cuda":
            torch.cuda.empty_cache()
    return predict_parts(trainer, state, rows, predictor, policy, seed)


def predict_parts(
    trainer: ModelTrainer, state: State, rows: Rows, predictor: Predictor, policy: Policy | None, seed: int
) -> Tensor:
    """The outputs for samples; a policy augments whole parts, since partners of SamplePairing come from the part."""
    size = at_once(trainer)
    out = []
    with seeded(seed_of("judge"), trainer.device), torch.no_grad():
        trainer.load(state)
        trainer.model.eval()
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            batch = trainer.samples_on_device(part)
            if policy is not None:
                batch = trainer.apply_policy(policy, batch, part, part, seed)
            half = -(-len(part) // 2)
            pieces = trainer.split(batch, half) if trainer.halved else [batch]
            counts = [half, len(part) - half] if trainer.halved else [len(part)]
            for piece, count in zip(pieces, counts, strict=False):  # one sample has no second half
                with trainer.precision():
                    predicted = predictor(trainer.normalised(piece), count)
                out.append(predicted.float())
                trainer.passes.forward += count
    return torch.cat(out)


def at_once(trainer: ModelTrainer) -> int:
    """How many samples are predicted at once."""
    size = PREDICTED_AT_ONCE[trainer.device.type]
    if trainer.pictures and trainer.samples[0].numel() > LARGE_PICTURE:
        return max(16, size * LARGE_PICTURE // trainer.samples[0].numel())
    return size
