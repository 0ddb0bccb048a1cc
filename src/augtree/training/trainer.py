"""Training and predicting, fast and repeatable.

Policies are applied on the device of the data, to many batches at once; on a GPU a whole training step is one
recorded graph. A training is a function of its state, policy, rates and seed and of nothing else, so any part of it
can be repeated, elsewhere or later, with the same result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from augtree import models
from augtree.data import Dataset
from augtree.errors import TaskError
from augtree.policies import Forest
from augtree.training.cuda_graph import Recording
from augtree.training.curve import LossCurve
from augtree.training.device import autocast, configure_libraries, determinism, device_of, pictures_on
from augtree.training.memory import memory_explained
from augtree.training.normalisation import normalisation
from augtree.training.optimizers import AdamW, Optimizer, ParameterVector, Sgd
from augtree.training.predicting import Predictor, predict
from augtree.training.sampling import Order, Rows, require_rows, stream
from augtree.training.state import BUFFER, Passes, State, named_tensors, seed_of, seeded
from augtree.transforms.base import Identity, Policy
from augtree.transforms.failures import applied
from augtree.transforms.graph_parts import parts_of

if TYPE_CHECKING:
    from augtree.tasks.base import Task

CHUNK_BYTES = 1 << 25
"""Bytes of pictures that are augmented in one call. Fixed, since partners of SamplePairing come from the call."""
CHUNK_EDGES = {"cpu": 1 << 16, "cuda": 1 << 22}
"""About as many edges and nodes of graphs: more is faster on a GPU and slower on a CPU, whose caches are small."""
LOSS_EVERY = 20
"""`tick` is called after each step of a training, and gets its loss once in so many: reading it waits for a GPU."""
MEASURED_GRAPHS = 1024
"""Graphs whose mean size stands for that of all."""


class ModelTrainer:
    """One model on one device, which can load any state of its kind. Tasks add the loss of a step (`step_loss`)."""

    views = 1
    """How often a sample goes through the model in a training step."""
    each_once = False
    """Whether no batch may hold a sample twice."""

    def __init__(self, task: Task, data: Dataset) -> None:
        task = task.for_data(data)
        self.task, self.data = task, data
        self.device = device_of(task.device)
        self.pictures = data.domain == "image"
        configure_libraries(
            self.device, deterministic=task.deterministic, precision=task.precision, graphs=not self.pictures
        )
        self.rows = data.indices("train")
        self.batch_size = min(task.batch_size, len(self.rows))
        self.total_steps = task.total_steps(len(self.rows))
        preprocess = data.preprocess if isinstance(task.preprocess, str) else task.preprocess
        self.preprocess = Identity() if preprocess is None else preprocess
        self.passes = Passes()
        self.halved = False
        """Whether predictions are made in halves, because memory ran out."""
        self.labels = data.labels.to(self.device)
        self.group_of = [data.group_names[group] for group in data.groups]
        with self.deterministically():
            self._to_device()
        self.recordings: dict[object, Recording] = {}

    def _to_device(self) -> None:
        if isinstance(self.data.samples, Tensor):
            self.samples = pictures_on(self.data.samples, self.device)
            self.scale, self.shift = (each.to(self.device) for each in normalisation(self.data.samples, self.rows))
        self.model = self.build_model(0).to(self.device)
        if self.device.type == "cuda" and self.pictures:
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.weights = ParameterVector(self.model)
        if self.task.optimizer == "sgd":
            self.optimizer: Optimizer = Sgd(self.weights, self.task.momentum, self.task.effective_weight_decay)
        else:
            self.optimizer = AdamW(self.weights, self.task.effective_weight_decay)
        self.forward = torch.compile(self.model) if self.task.compile else self.model

    @property
    def passes_per_step(self) -> int:
        """Samples that a step takes through the model, forwards and backwards."""
        return 2 * self.views * self.batch_size

    # ---- the model and its states

    def build_model(self, seed: int) -> nn.Module:
        """A new model with the random weights of a seed."""
        with seeded(seed):
            return models.build(self.task.model_for(self.data), self.inputs(), **self.task.options)

    def inputs(self) -> models.Inputs:
        """What the model is made for."""
        return inputs_of(self.data)

    def fresh(self, seed: int) -> State:
        """The state before any training; loaded weights (`weights=`) are the same for all seeds."""
        new, current = named_tensors(self.build_model(seed_of(seed, "init"))), named_tensors(self.model)
        if {name: tensor.shape for name, tensor in new.items()} != {name: t.shape for name, t in current.items()}:
            raise TaskError("the model function must make a module of the same form each time, got two forms")
        shared = [name for name in new if new[name] is current[name]]
        if shared:
            raise TaskError(f"the model function must make a new module each time, got the old {shared[0]}")
        with torch.no_grad():
            for name, tensor in current.items():
                tensor.copy_(new[name])
            for moment in self.optimizer.moments.values():
                moment.zero_()
        return self.snapshot(0)

    def identity(self, seed: int) -> dict[str, str]:
        """What a result depends on beside data and task: the hash of the initial weights, and the preprocessing."""
        state = hashlib.sha256()
        for name, tensor in sorted(self.fresh(seed).tensors.items()):
            content = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            state.update(name.encode() + content)
        return {"weights": state.hexdigest(), "preprocess": str(self.preprocess)}

    def snapshot(self, step: int) -> State:
        """A copy of the present tensors as the state after this many steps."""
        return State({name: tensor.clone() for name, tensor in self._tensors().items()}, step)

    def load(self, state: State) -> None:
        """Copy a state into the model and its optimizer."""
        current = self._tensors()
        if current.keys() != state.tensors.keys():
            raise TaskError(f"a state must be of this model, got {sorted(state.tensors)} for {sorted(current)}")
        for name, tensor in state.tensors.items():
            if tensor.shape != current[name].shape:
                expected, got = list(current[name].shape), list(tensor.shape)
                raise TaskError(f"a state must be of this model: {name} must have the shape {expected}, got {got}")
        with torch.no_grad():
            for name, tensor in state.tensors.items():
                current[name].copy_(tensor)

    def _tensors(self) -> dict[str, Tensor]:
        # Read anew each time, since a model may replace a buffer by a new one.
        rest = {name: t.detach() for name, t in named_tensors(self.model).items() if not t.requires_grad}
        return {
            "weights": self.weights.values,
            **self.optimizer.moments,
            **{f"{BUFFER}{name}": tensor for name, tensor in rest.items()},
        }

    def module(self, state: State) -> nn.Module:
        """The trained model, in eval mode, until the next call; it takes normalised pictures."""
        self.load(state)
        return self.model.eval()

    def mean_and_std(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """What pictures within 0..1 are normalised by; empty for graphs."""
        if not self.pictures:
            return (), ()
        std = 1 / self.scale.double().view(-1).cpu()
        mean = -self.shift.double().view(-1).cpu() * std
        return tuple((mean / 255).tolist()), tuple((std / 255).tolist())

    @contextmanager
    def deterministically(self) -> Iterator[None]:
        """The context of everything that the device computes."""
        with memory_explained(self.where), determinism(self.device, self.task.deterministic):
            yield

    def where(self) -> str:
        """The device, and what a training step has on it, as it stands in messages."""
        form = f"samples of {'x'.join(map(str, self.data.samples[0].shape))}" if self.pictures else "graphs"
        return f"{self.device} with batches of {self.batch_size} {form}"

    def precision(self) -> AbstractContextManager[object]:
        """The context in which the model runs."""
        return autocast(self.device, self.task.precision)

    # ---- training

    def fit(self, policy: Policy, seed: int, steps: int | None = None, rows: Rows | None = None) -> State:
        """A whole training from the start."""
        rows = self.rows if rows is None else rows
        steps = self.task.total_steps(len(rows)) if steps is None else steps
        return self.train(self.fresh(seed), policy, self.task.rates(steps), seed, rows)

    def train(
        self,
        state: State,
        policy: Policy,
        rates: Sequence[float],
        seed: int,
        rows: Rows | None = None,
        tick: Callable[[int, float | None], object] | None = None,
        order: Order | None = None,
    ) -> State:
        """Train on, a step for each rate; samples and draws depend on the seed and the number of the step.

        All rows are shuffled anew in each epoch, unless the caller brings an `order`.
        """
        rows = self.rows if rows is None else require_rows(rows)
        if not len(rates):
            return state
        with self.deterministically(), seeded(seed_of(seed, "model", state.step), self.device):
            self.load(state)
            self.model.train()
            scalars = self.optimizer.scalars(rates, state.step).to(self.device)
            loss_scalars = self.loss_scalars(state.step, len(rates)).to(self.device)
            losses = LossCurve(len(rates), self.device)
            for i, (inputs, labels) in enumerate(self.batches(policy, rows, order, seed, state.step, len(rates))):
                loss = self.run_step(inputs, labels, scalars[i], loss_scalars[i])
                losses.add(i, loss)
                self.passes.forward += self.views * len(labels)
                self.passes.backward += self.views * len(labels)
                if tick is not None:
                    tick(i + 1, None if (state.step + i + 1) % LOSS_EVERY else float(loss))
            return replace(self.snapshot(state.step + len(rates)), curve=losses.points(state.step, len(rates)))

    def diverged(self, state: State, place: str = "") -> TaskError:
        """The error for a state whose numbers are not finite."""
        rule = "the model must give finite numbers, but the training diverged with"
        return TaskError(f"{rule} lr={self.task.rate:g} after {state.step} steps{place}")

    def loss_scalars(self, first: int, steps: int) -> Tensor:  # noqa: ARG002
        """Inputs of the loss beside the batch that change from step to step, a row each; none unless overridden."""
        return torch.empty(steps, 0)

    def run_step(self, inputs: Any, labels: Tensor, scalars: Tensor, loss_scalars: Tensor) -> Tensor:
        """One step, and its loss; for pictures on a GPU it is recorded, so it reads its arguments and the model."""
        arguments = (inputs, labels, scalars, loss_scalars)
        if self.device.type == "cuda" and self.pictures:
            return cast(Tensor, self.replay("step", self.step, arguments))
        return self.step(*arguments)

    def step(self, inputs: Any, labels: Tensor, scalars: Tensor, loss_scalars: Tensor) -> Tensor:
        """One step in Python, and its loss."""
        self.weights.grads.zero_()
        loss = self.step_loss(inputs, labels, loss_scalars)
        loss.backward()
        with torch.no_grad():
            self.optimizer.update(self.weights, scalars)
        return loss.detach()

    def step_loss(self, inputs: Any, labels: Tensor, loss_scalars: Tensor) -> Tensor:
        """The loss of a training step."""
        raise NotImplementedError

    def replay(self, name: object, function: Callable[..., Any], inputs: Sequence[Tensor]) -> Any:
        """The value of a function of tensors: recorded as a CUDA graph once for each name, then replayed."""
        recording = self.recordings.get(name)
        if recording is None or not recording.takes(inputs):
            self.recordings.pop(name, None)
            before = self.snapshot(0)
            recording = self.recordings[name] = Recording(function, inputs)
            self.load(before)
        return recording(inputs)

    # ---- batches

    def order_of(self, rows: Rows, seed: int, size: int | None = None) -> Order:  # noqa: ARG002
        """The order of samples in batches of this size: all of them, shuffled anew in each epoch."""
        return partial(stream, rows, seed=seed)

    def batches(
        self, policy: Policy, rows: Rows, order: Order | None, seed: int, first: int, steps: int
    ) -> Iterator[tuple[Any, Tensor]]:
        """The augmented batches of some steps and their labels; augmenting many at once gives the same batches."""
        order = self.order_of(rows, seed) if order is None else order
        size = min(self.task.batch_size, len(rows))
        for start, count in chunks(first, steps, self.augmented_at_once(size)):
            batch_rows, draw_ids = order(start * size, count * size)
            inputs = self.augmented(policy, batch_rows, draw_ids, seed)
            yield from zip(self.split(inputs, size), self.labels_of(batch_rows).split(size), strict=True)

    def augmented_at_once(self, size: int) -> int:
        """How many batches of this size are augmented in one call."""
        if self.pictures:
            return max(1, CHUNK_BYTES // (self.samples[0].numel() * size))
        measured = self.data.samples[:: -(-len(self.data) // MEASURED_GRAPHS)]
        edges = sum(graph.num_edges + graph.num_nodes for graph in measured) / len(measured)
        return int(max(1, CHUNK_EDGES[self.device.type] // (edges * size)))

    def split(self, inputs: Any, size: int) -> Sequence[Any]:
        """Inputs in batches of this size."""
        return inputs.split(size) if self.pictures else parts_of(inputs, size)

    def augmented(self, policy: Policy, rows: Rows, draw_ids: Rows, seed: int) -> Any:
        """Samples after preprocessing and policy; their draws depend on `draw_ids`."""
        batch = self.apply_policy(
            self.preprocess, self.samples_on_device(rows), rows, draw_ids, seed_of(seed, "preprocess")
        )
        return self.apply_policy(policy, batch, rows, draw_ids, seed_of(seed, "policy"))

    def apply_policy(self, policy: Policy, batch: Any, rows: Rows, draw_ids: Rows, seed: int) -> Any:
        """A batch of these samples after a policy; in a forest each has the tree of its group."""
        groups: dict[str, Any] = {"groups": [self.group_of[i] for i in rows]} if isinstance(policy, Forest) else {}
        out = applied(policy, batch, seed=seed, index=draw_ids, **groups)
        if self.pictures and out.dtype != torch.uint8:
            raise TaskError(f"a policy must give uint8 pictures in training, got {out.dtype} from {policy}")
        return out

    def samples_on_device(self, rows: Rows) -> Any:
        """Samples as one batch, on the device."""
        if self.pictures:
            index = torch.from_numpy(rows).to(self.samples.device)
            return self.samples.index_select(0, index).to(self.device)
        from torch_geometric.data import Batch

        return Batch.from_data_list([self.data.samples[i] for i in rows]).to(self.device)

    def labels_of(self, rows: Rows) -> Tensor:
        """Labels of samples, on the device."""
        return self.labels[torch.from_numpy(rows).to(self.device)]

    def normalised(self, inputs: Any) -> Any:
        """Pictures as the model takes them; graphs as they are."""
        if not self.pictures:
            return inputs
        if self.device.type == "cuda":
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return torch.addcmul(self.shift, inputs.float(), self.scale)

    # ---- predicting

    def predict(
        self, state: State, rows: Rows, predictor: Predictor, policy: Policy | None = None, seed: int = 0
    ) -> Tensor:
        """The outputs of `predictor` for samples, a part at a time, with the model in eval mode.

        The samples are unchanged, or augmented by a policy without preprocessing.
        """
        rows = require_rows(rows)
        with self.deterministically():
            return predict(self, state, rows, predictor, policy, seed)


def inputs_of(data: Dataset) -> models.Inputs:
    """What a model for a data set is made for."""
    if isinstance(data.samples, Tensor):
        _, channels, height, width = data.samples.shape
        return models.Inputs("image", channels, min(height, width), data.num_classes)
    x = getattr(data.samples[0], "x", None)
    if x is not None and x.ndim != 2:
        raise TaskError(f"node features x must be [nodes, features], got shape {list(x.shape)}")
    return models.Inputs("graph", 0 if x is None else x.shape[1], 0, data.num_classes)


def chunks(first: int, steps: int, at_once: int) -> Iterator[tuple[int, int]]:
    """The first step of each chunk, and how many steps it has."""
    for start in range(first, first + steps, at_once):
        yield start, min(at_once, first + steps - start)
