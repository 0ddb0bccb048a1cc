"""Training and judging, fast and repeatable.

The data is on the device; a policy is applied there, to many batches at once; on a GPU a whole training step is one
recorded graph. A training is a function of its state, policy, steps, rates and seed: nothing else is remembered, so
any part of it can be done again, elsewhere or later, with the same result.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from augtree import models
from augtree.data import Dataset
from augtree.errors import ArgumentError, AugtreeError, TaskError
from augtree.keys import Key
from augtree.policies import Forest
from augtree.training.calibration import temperature
from augtree.training.cuda_graph import Recording
from augtree.training.metrics import METRICS
from augtree.training.optimizers import AdamW, Optimizer, Sgd, Weights
from augtree.transforms import Identity
from augtree.transforms.base import Policy
from augtree.transforms.graph_parts import parts_of

if TYPE_CHECKING:
    from augtree.tasks.base import Task

Rows = NDArray[np.int64]
Order = Callable[[int, int], tuple[Rows, Rows]]
"""From a place in an endless row of samples and a count: which they are, and what their draws depend on."""
Says = Callable[[Any, int], Tensor]
"""From a normalised batch and its length to a row for each sample."""
CHUNK_BYTES = 1 << 25
"""So many bytes of pictures are augmented in one call. Fixed, since partners of SamplePairing come from the call."""
CHUNK_EDGES = {"cpu": 1 << 16, "cuda": 1 << 22}
"""So many edges and nodes of graphs, about: more is faster on a GPU and slower on a CPU, whose caches are small."""
JUDGED_AT_ONCE = {"cpu": 256, "cuda": 2048}
CPU = torch.device("cpu")
COUNTED_AT_ONCE = 1024
FEW_NUMBERS = 1 << 20
LARGE_PICTURE = 3 * 64 * 64
SHARE_OF_DEVICE = 0.5
"""Pictures take at most this share of the free memory of a GPU."""


def seed_of(*parts: object) -> int:
    """A seed for a place that is named by these parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class State:
    """Where a training stands: its tensors (weights, moments, buffers) and how many steps it has made."""

    tensors: dict[str, Tensor]
    step: int = 0


@dataclass
class Passes:
    """Samples that went through a model, forwards and backwards."""

    forward: int = 0
    backward: int = 0

    @property
    def total(self) -> int:
        """Both."""
        return self.forward + self.backward


class Trainer:
    """One model on one device, which takes any state."""

    views = 1
    """How often a sample goes through the model in a training step."""
    each_once = False
    """Whether no batch may hold a sample twice."""

    def __init__(self, task: Task, data: Dataset) -> None:
        self.task, self.data = task, data
        self.device = device_of(task.device)
        if task.deterministic and self.device.type == "cuda":
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS is refused
        if data.domain == "graph" and task.precision == "bfloat16" and self.device.type == "cpu":
            for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
                os.environ.setdefault(name, "16")  # else kernels for every size of graphs are kept: gigabytes
        self.rows = data.indices("train")
        self.batch_size = min(task.batch_size, len(self.rows))
        self.total_steps = task.total_steps(len(self.rows))
        wanted = data.preprocess if isinstance(task.preprocess, str) else task.preprocess
        self.preprocess = Identity() if wanted is None else wanted
        self.passes = Passes()
        self.pictures = data.domain == "image"
        self.labels = data.labels.to(self.device)
        self.group_of = [data.group_names[group] for group in data.groups]
        with self.deterministically():
            self._make_model()
        self.recordings: dict[object, Recording] = {}

    @property
    def passes_a_step(self) -> int:
        """Samples that a step takes through the model, forwards and backwards."""
        return 2 * self.views * self.batch_size

    def _make_model(self) -> None:
        if isinstance(self.data.samples, Tensor):
            self.samples = where_it_fits(self.data.samples, self.device)
            self.scale, self.shift = normalisation(self.data.samples, self.rows)
            self.scale, self.shift = self.scale.to(self.device), self.shift.to(self.device)
        self.model = self._made(0).to(self.device)
        if self.device.type == "cuda" and self.pictures:
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.weights = Weights(self.model)
        if self.task.optimizer == "sgd":
            self.optimizer: Optimizer = Sgd(self.weights, self.task.momentum, self.task.decay_of_weights)
        else:
            self.optimizer = AdamW(self.weights, self.task.decay_of_weights)
        self.forward = torch.compile(self.model) if self.task.compile else self.model

    def _made(self, seed: int) -> nn.Module:
        with seeded(seed):
            return models.build(self.task.model_for(self.data), self.inputs(), **self.task.options)

    def inputs(self) -> models.Inputs:
        """What the model is made for."""
        outputs = self.data.num_classes
        if isinstance(self.data.samples, Tensor):
            _, channels, height, width = self.data.samples.shape
            return models.Inputs("image", channels, min(height, width), outputs)
        first = self.data.samples[0]
        features = 0
        if getattr(first, "x", None) is not None:
            if first.x.ndim != 2:
                raise TaskError(f"node features x must be [nodes, features], got shape {list(first.x.shape)}")
            features = first.x.shape[1]
        return models.Inputs("graph", features, 0, outputs)

    def identity(self, seed: int) -> dict[str, str]:
        """What a result rests on beside data and task: the weights it begins with, and the preprocessing."""
        state = hashlib.sha256()
        for name, tensor in sorted(self.fresh(seed).tensors.items()):
            state.update(
                name.encode() + tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            )
        return {"weights": state.hexdigest(), "preprocess": str(self.preprocess)}

    # ---- states

    def fresh(self, seed: int) -> State:
        """The state before any training; loaded weights (`weights=`) are the same for all seeds."""
        new, mine = named_tensors(self._made(seed_of(seed, "init"))), named_tensors(self.model)
        if {name: tensor.shape for name, tensor in new.items()} != {name: t.shape for name, t in mine.items()}:
            raise TaskError("the model function must make a module of the same form each time, got two forms")
        shared = [name for name in new if new[name] is mine[name]]
        if shared:
            raise TaskError(f"the model function must make a new module each time, got the old {shared[0]}")
        with torch.no_grad():
            for name, tensor in mine.items():
                tensor.copy_(new[name])
            for moment in self.optimizer.moments.values():
                moment.zero_()
        return self._state(0)

    def _tensors(self) -> dict[str, Tensor]:
        """All that makes a state. Read anew each time, since a model may put a new buffer in an old one's place."""
        rest = {name: t.detach() for name, t in named_tensors(self.model).items() if not t.requires_grad}
        return {
            "weights": self.weights.values,
            **self.optimizer.moments,
            **{f"buffer.{name}": tensor for name, tensor in rest.items()},
        }

    def _state(self, step: int) -> State:
        return State({name: tensor.clone() for name, tensor in self._tensors().items()}, step)

    def _take(self, state: State) -> None:
        mine = self._tensors()
        if mine.keys() != state.tensors.keys():
            raise TaskError(f"a state must be of this model, got {sorted(state.tensors)} for {sorted(mine)}")
        for name, tensor in state.tensors.items():
            if tensor.shape != mine[name].shape:
                wanted, got = list(mine[name].shape), list(tensor.shape)
                raise TaskError(f"a state must be of this model: {name} must have the shape {wanted}, got {got}")
        with torch.no_grad():
            for name, tensor in state.tensors.items():
                mine[name].copy_(tensor)

    def module(self, state: State) -> nn.Module:
        """The trained model, in eval mode, until the next call; it takes normalised pictures."""
        self._take(state)
        return self.model.eval()

    def mean_and_std(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """What pictures within 0..1 are normalised by; empty for graphs."""
        if not self.pictures:
            return (), ()
        std = 1 / self.scale.double().view(-1).cpu()
        mean = -self.shift.double().view(-1).cpu() * std
        return tuple((mean / 255).tolist()), tuple((std / 255).tolist())

    # ---- training

    def train(
        self,
        state: State,
        policy: Policy,
        rates: Sequence[float],
        seed: int,
        rows: Rows | None = None,
        tick: Any = None,
        order: Order | None = None,
    ) -> State:
        """Train on, a step for each rate; samples and draws depend on the seed and the number of the step.

        All rows are shuffled anew in each epoch, unless they come in an `order` of one's own.
        """
        rows = self.rows if rows is None else some(rows)
        order = self.order_of(rows, seed) if order is None else order
        if not len(rates):
            return state
        with self.deterministically(), seeded(seed_of(seed, "model", state.step), self.device):
            self._take(state)
            self.model.train()
            scalars = self.optimizer.scalars(rates, state.step).to(self.device)
            done = 0
            size = min(self.task.batch_size, len(rows))
            for inputs, labels in self._batches(policy, order, size, state.step, len(rates), seed):
                self._step(inputs, labels, scalars[done])
                done += 1
                self.passes.forward += self.views * len(labels)
                self.passes.backward += self.views * len(labels)
                if tick is not None:
                    tick(done)
            return self._state(state.step + done)

    def order_of(self, rows: Rows, seed: int, size: int | None = None) -> Order:  # noqa: ARG002
        """The order that samples come in, in batches of this size: all of them, shuffled anew in each epoch."""
        return partial(stream, rows, seed=seed)

    def fit(self, policy: Policy, seed: int, steps: int | None = None, rows: Rows | None = None) -> State:
        """A whole training from the start."""
        rows = self.rows if rows is None else rows
        steps = self.task.total_steps(len(rows)) if steps is None else steps
        return self.train(self.fresh(seed), policy, self.task.rates(steps), seed, rows)

    def _batches(
        self, policy: Policy, order: Order, size: int, first: int, steps: int, seed: int
    ) -> Iterator[tuple[Any, Tensor]]:
        """The batches of some steps, augmented; many at once, which gives the same."""
        together = self.together(size)
        for start in range(first, first + steps, together):
            count = min(together, first + steps - start)
            which, where = order(start * size, count * size)
            inputs = self.augmented(policy, which, where, seed)
            labels = self.labels[torch.from_numpy(which).to(self.device)]
            yield from zip(self.parts(inputs, size), labels.split(size), strict=True)

    def together(self, size: int) -> int:
        """How many batches of so many samples are augmented in one call."""
        if self.pictures:
            return max(1, CHUNK_BYTES // (self.samples[0].numel() * size))
        some = self.data.samples[:: -(-len(self.data) // COUNTED_AT_ONCE)]
        edges = sum(graph.num_edges + graph.num_nodes for graph in some) / len(some)
        return int(max(1, CHUNK_EDGES[self.device.type] // (edges * size)))

    def parts(self, inputs: Any, size: int) -> Sequence[Any]:
        """Inputs of so many samples each."""
        return inputs.split(size) if self.pictures else parts_of(inputs, size)

    def augmented(self, policy: Policy, which: Rows, where: Rows, seed: int) -> Any:
        """Samples after preprocessing and policy; `where` is what their draws depend on."""
        batch = self._applied(self.preprocess, self.batch(which), which, where, seed_of(seed, "preprocess"))
        return self._applied(policy, batch, which, where, seed_of(seed, "policy"))

    def _applied(self, policy: Policy, batch: Any, which: Rows, where: Rows, seed: int) -> Any:
        groups: dict[str, Any] = {"groups": [self.group_of[i] for i in which]} if isinstance(policy, Forest) else {}
        out = policy(batch, seed=seed, index=where, **groups)
        if self.pictures and out.dtype != torch.uint8:
            raise TaskError(f"a policy must give uint8 pictures in training, got {out.dtype} from {policy}")
        return out

    def batch(self, which: Rows) -> Any:
        """Some samples, on the device."""
        if self.pictures:
            rows = torch.from_numpy(which).to(self.samples.device)
            return self.samples.index_select(0, rows).to(self.device)
        from torch_geometric.data import Batch

        return Batch.from_data_list([self.data.samples[i] for i in which]).to(self.device)

    def _step(self, inputs: Any, labels: Tensor, scalars: Tensor) -> None:
        if self.device.type == "cuda" and self.pictures:
            self.recorded("step", self._eager_step, (inputs, labels, scalars))
        else:
            self._eager_step(inputs, labels, scalars)

    def recorded(self, name: object, function: Callable[..., Any], inputs: Sequence[Tensor]) -> Any:
        """What a function gives that may change the model: recorded once for each name, then run from there."""
        known = self.recordings.get(name)
        if known is None or not known.takes(inputs):
            self.recordings.pop(name, None)
            before = self._state(0)
            known = self.recordings[name] = Recording(function, inputs)
            self._take(before)
        return known(inputs)

    def _eager_step(self, inputs: Any, labels: Tensor, scalars: Tensor) -> None:
        self.weights.grads.zero_()
        self.step_losses(inputs, labels).mean().backward()
        with torch.no_grad():
            self.optimizer.update(self.weights, scalars)

    def step_losses(self, inputs: Any, labels: Tensor) -> Tensor:
        """What a training step lowers: the loss of each sample of a batch."""
        with self.precision():
            outputs = self.outputs(inputs, len(labels), self.forward)
        return self.output_losses(outputs.float(), labels)

    def outputs(self, inputs: Any, count: int, forward: Callable[[Any], Any]) -> Tensor:
        """What the training loss is computed from: here the logits of a batch of so many samples."""
        logits = forward(self.normalised(inputs))
        self.check_logits(logits, count)
        return logits  # type: ignore[no-any-return]

    def output_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The training loss of each row of `outputs`; a sample's rows stand together."""
        return self.losses_of(outputs, labels, getattr(self.task, "label_smoothing", 0.0))

    def inner_inputs(self, policy: Policy, which: Rows, where: Rows, seed: int) -> Any:
        """Training samples as the loss that the weights of groups weigh sees them."""
        return self.augmented(policy, which, where, seed)

    def inner_outputs(
        self, inputs: Any, labels: Tensor, forward: Callable[[Any], Any] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What that loss is computed from, its share of each row, and what a row's curvature counts.

        Each sample has as many rows, which stand together; the loss is the mean of all. `forward` stands in for the
        model.
        """
        with self.precision():
            outputs = self.outputs(inputs, len(labels), forward or self.model).float()
        return outputs, self.output_losses(outputs, labels), torch.ones_like(outputs[:, :1])

    def outer_inputs(self, policy: Policy, which: Rows, seed: int) -> Any:  # noqa: ARG002
        """Validation samples as the weights of groups are judged by them: as they are."""
        return self.batch(which)

    @property
    def independent_outputs(self) -> bool:
        """Whether each column of the outputs is a yes or no of its own, and not one of several classes."""
        return self.data.multilabel

    def normalised(self, inputs: Any) -> Any:
        """Pictures as the model takes them; graphs as they are."""
        if not self.pictures:
            return inputs
        if self.device.type == "cuda":
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return torch.addcmul(self.shift, inputs.float(), self.scale)

    def losses_of(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        """The loss of each sample."""
        if not self.data.multilabel:
            return F.cross_entropy(logits, labels, reduction="none", label_smoothing=smoothing)
        targets = labels.to(logits.dtype) * (1 - smoothing) + smoothing / 2
        return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(1)

    def check_logits(self, logits: Any, count: int) -> None:
        """Raise for a model of another task."""
        wanted = (count, self.data.num_classes)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted:
            got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise TaskError(f"the model must give [samples, classes], here {list(wanted)}, got {got}")

    # ---- judging

    def logits(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> Tensor:
        """What the model says of some samples, as they are or as a policy makes them (then without preprocessing)."""

        def said(batch: Any, count: int) -> Tensor:
            found = self.forward(batch)
            self.check_logits(found, count)
            return found  # type: ignore[no-any-return]

        return self.judged(state, rows, said, policy, seed)

    def judged(self, state: State, rows: Rows, says: Says, policy: Policy | None = None, seed: int = 0) -> Tensor:
        """What a function finds in some samples, a part at a time, with the model in eval mode."""
        at_once, rows = JUDGED_AT_ONCE[self.device.type], some(rows)
        if self.pictures and self.samples[0].numel() > LARGE_PICTURE:
            at_once = max(16, at_once * LARGE_PICTURE // self.samples[0].numel())
        with self.deterministically(), seeded(seed_of("judge"), self.device), torch.no_grad():
            self._take(state)
            self.model.eval()
            out = []
            for start in range(0, len(rows), at_once):
                part = rows[start : start + at_once]
                batch = self.batch(part)
                if policy is not None:
                    batch = self._applied(policy, batch, part, part, seed)
                with self.precision():
                    found = says(self.normalised(batch), len(part))
                out.append(found.float())
                self.passes.forward += len(part)
        return torch.cat(out)

    def losses(self, state: State, rows: Rows, policy: Policy | None = None, seed: int = 0) -> NDArray[np.float64]:
        """The loss of each of some samples."""
        found = self.logits(state, rows, policy, seed)
        labels = self.labels[torch.from_numpy(rows).to(self.device)]
        return self.losses_of(found, labels).double().cpu().numpy()

    def calibrated_losses(self, state: State, rows: Rows) -> NDArray[np.float64]:
        """The loss of each of some samples at the temperature that is best for them."""
        logits = self.logits(state, rows).cpu()
        if logits.numel() <= FEW_NUMBERS:
            logits = logits.double()
        labels = self.data.labels[torch.from_numpy(rows)]
        best = temperature(lambda t: self.losses_of(logits / t, labels))
        return self.losses_of(logits / best, labels).double().numpy()

    def measures(self, state: State, rows: Rows) -> dict[str, float]:
        """Every metric that these samples allow."""
        logits = self.logits(state, rows).double().cpu().numpy()
        if not np.isfinite(logits).all():
            raise TaskError(
                f"the model must give finite numbers, but the training diverged with lr={self.task.rate:g}"
            )
        labels = self.data.labels.numpy()[rows]
        out = {}
        for name, metric in METRICS.items():
            try:
                out[name] = metric.compute(logits, labels)
            except ArgumentError:  # no class has both labels: there is no AUROC
                if name == self.task.metric:
                    raise
        return out

    # ---- the machine

    @contextmanager
    def deterministically(self) -> Iterator[None]:
        """On a GPU, only operations that repeat to the bit, where that was asked for; else the fastest."""
        if self.device.type == "cpu":
            yield
            return
        if not self.task.deterministic:
            with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
                yield
            return
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True)
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, AugtreeError) or "deterministic" not in str(error):
                raise
            raise TaskError(f"deterministic=True allows only operations that repeat to the bit: {error}") from error
        finally:
            torch.use_deterministic_algorithms(before)

    def precision(self) -> Any:
        """In which models are run."""
        half = self.device.type == "cuda" if self.task.precision == "auto" else self.task.precision == "bfloat16"
        return torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext()


@contextmanager
def seeded(seed: int, device: torch.device = CPU) -> Iterator[None]:
    """Let torch's random numbers depend on a seed alone; afterwards its generators are as they were."""
    gpus: list[Any] = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus):
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        yield


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a model."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def some(rows: Rows) -> Rows:
    """The rows, of which there must be one at least."""
    if not len(rows):
        raise ArgumentError("rows", "must not be empty")
    return rows


def stream(rows: Rows, start: int, count: int, seed: int) -> tuple[Rows, Rows]:
    """Part of an endless row of samples, shuffled anew each epoch: which they are, and what their draws depend on.

    The second is different for each epoch and sample, and does not depend on which other samples there are.
    """
    size = len(rows)
    which, where = [], []
    for epoch in range(start // size, (start + count - 1) // size + 1):
        order = shuffled(rows.tobytes(), seed, epoch)
        low, high = max(start - epoch * size, 0), min(start + count - epoch * size, size)
        which.append(order[low:high])
        where.append(order[low:high] + (epoch << 32))
    return np.concatenate(which), np.concatenate(where)


@lru_cache(maxsize=4)
def shuffled(rows: bytes, seed: int, epoch: int) -> Rows:
    """Samples in the order of an epoch; kept, since large pictures come a batch at a time."""
    given = np.frombuffer(rows, np.int64)
    return given[np.argsort(Key.of(seed, given, role="order", step=epoch).uniform(), kind="stable")]


def where_it_fits(pictures: Tensor, device: torch.device) -> Tensor:
    """All pictures on the device, or on the CPU where they would fill too much of it: then batches are moved."""
    if device.type == "cuda" and pictures.nbytes > SHARE_OF_DEVICE * torch.cuda.mem_get_info(device)[0]:
        return pictures
    return pictures.to(device)


def normalisation(pictures: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """Scale and shift that give the bytes of some pictures mean 0 and deviation 1 in each channel."""
    channels = pictures.shape[1]
    histogram = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(rows), COUNTED_AT_ONCE):
        some = pictures[torch.from_numpy(rows[start : start + COUNTED_AT_ONCE])]
        for c in range(channels):
            histogram[c] += torch.bincount(some[:, c].reshape(-1), minlength=256)
    share = histogram.double() / histogram.sum(1, keepdim=True)
    values = torch.arange(256, dtype=torch.float64)
    mean = share @ values
    deviation = ((share * (values - mean[:, None]) ** 2).sum(1)).sqrt().clamp_min(1.0)
    scale = (1 / deviation).float().view(1, -1, 1, 1)
    return scale, (-mean / deviation).float().view(1, -1, 1, 1)


def device_of(name: str) -> torch.device:
    """A device by name; "auto" is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ArgumentError("device", "must be auto, cpu or cuda", name) from None
    if device.type not in ("cpu", "cuda") or (device.type == "cuda" and not torch.cuda.is_available()):
        raise ArgumentError("device", "must be auto, cpu, or cuda where there is one", name)
    return device
