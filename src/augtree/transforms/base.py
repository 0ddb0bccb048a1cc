"""What a transform is: a frozen value that draws, then acts; on pictures, on graphs, or on both.

Randomness lives in the drawing alone. A transform on pictures implements `draw`, one on graphs `act`, and one
that is made of others implements `stages`, which serves both.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from augtree.errors import ArgumentError, InputError, escaped, number
from augtree.keys import Key, as_int, fresh_seed
from augtree.transforms import fused
from augtree.transforms.pictures import Pictures, Plan, Shape, check_pictures, merged

if TYPE_CHECKING:
    from torch_geometric.data import Data

Batch = TypeVar("Batch", bound="Tensor | Data")
Stage = list[tuple["Transform", Key]]
"""Transforms that act side by side, each on its own samples."""


Call = TypeVar("Call", bound="Callable[..., Any]")


def not_compiled(function: Call) -> Call:
    """Keep torch.compile out of a function: hashing and routing are not for it.

    Like torch.compiler.disable, but without its second of importing while nothing is compiled.
    """
    disabled: list[Any] = []

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*arguments, **named)
        if not disabled:
            disabled.append(torch.compiler.disable(function))
        return disabled[0](*arguments, **named)

    return cast(Call, call)


class Policy:
    """Augments a batch when called; frozen and picklable. Trees, forests and transforms are policies."""

    def stages(self, key: Key) -> Iterable[Stage]:
        """The transforms to apply, in order, each with the samples it is for."""
        raise NotImplementedError(
            f"{type(self).__name__} must implement draw (pictures), act (graphs) or stages (both)"
        )

    def route(self, key: Key) -> list[tuple[Transform, ...]]:
        """The transforms that each sample passes through; for a tree, one of its `paths()`."""
        return self._gathered(key, lambda transform, part: [(transform,)] * len(part))

    def describe(self, key: Key) -> list[tuple[str, ...]]:
        """The operations that each sample gets, in words, down to the last one."""
        return self._gathered(key, lambda transform, part: transform.describe(part))

    def _gathered(self, key: Key, what: Callable[[Transform, Key], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        found: dict[int, tuple[Any, ...]] = dict.fromkeys(key.rows.tolist(), ())
        for stage in self.stages(key):
            for transform, part in stage:
                for row, steps in zip(part.rows.tolist(), what(transform, part), strict=True):
                    found[row] += steps
        return list(found.values())

    def draw(self, key: Key, shape: Shape) -> Plan:
        """What will happen to each picture."""
        plan: Plan = []
        for stage in self.stages(key):
            plan += merged(transform.draw(part, shape) for transform, part in stage if len(part) or transform.whole)
            shape = stage[0][0].shape_after(shape) if stage else shape
        return plan

    def shape_after(self, shape: Shape) -> Shape:
        """The shape of the pictures afterwards."""
        return shape

    def act(self, graphs: Data, key: Key) -> Data:
        """The batch of graphs with those that the key names transformed."""
        for stage in self.stages(key):
            for transform, part in stage:
                if len(part):
                    graphs = transform.act(graphs, part)
        return graphs

    @not_compiled
    def __call__(
        self,
        batch: Batch,
        *,
        seed: int | Tensor | None = None,
        index: int | Sequence[int] | NDArray[np.int64] | Tensor | None = None,
        step: int = 0,
    ) -> Batch:
        """Augment pictures or PyG graphs, one or a batch.

        Parameters
        ----------
        batch
            Pictures [B,C,H,W] or [C,H,W], uint8 or float within [0, 1]; or a PyG Batch or Data.
        seed
            Makes the result repeatable, whatever the batch is split into; by default one from torch's CPU generator.
            A whole number, or a tensor of one.
        index
            The places of the samples in their data set; one number is that of the first sample.
        step
            The number of the pass over the data set.

        """
        if seed is None:
            if index is not None or step != 0:
                raise ArgumentError("seed", "must be given where index or step are", seed)
            seed = fresh_seed()
        if not isinstance(batch, Tensor):
            return cast(Batch, _on_graphs(self, batch, as_int("seed", seed), index, step))
        pictures = check_pictures(batch)
        single = pictures.ndim == 3
        pictures = pictures[None] if single else pictures
        out = drawn_there(self, pictures, seed, index, step, single)
        if out is None:
            key = Key.of(as_int("seed", seed), indices(index, len(pictures), single), step=step)
            out = apply_to_pictures(self, pictures, key)
        return cast(Batch, out[0] if single else out)

    def module(self) -> PolicyModule:
        """The policy as an nn.Module: it augments while training and does nothing in eval mode."""
        return PolicyModule(self)


class Transform(Policy):
    """A random function on a batch, with a name and perhaps a magnitude: the base class of your own transforms.

    The class attributes are declarations, which `augtree.testing.check_transform` checks.

    >>> from augtree.transforms import Rotate
    >>> pictures = torch.randint(256, (4, 3, 8, 8), dtype=torch.uint8)
    >>> Rotate(0.6)(pictures, seed=0).equal(Rotate(0.6)(pictures, seed=0))
    True
    """

    domain: ClassVar[Literal["image", "graph", "any"]] = "image"
    random: ClassVar[bool | None] = True
    """Whether different keys give different results; None where that is not known."""
    scaled: ClassVar[bool] = False
    """Whether the effect is small at the weakest magnitude and grows with it."""
    signed: ClassVar[bool] = False
    """Whether the parameter is drawn on both sides of "no effect"."""
    mixes: ClassVar[bool] = False
    """Whether a sample's result depends on the other samples of the batch."""
    whole: ClassVar[bool] = False
    """Whether shape or type changes, so that it must act on every sample and cannot stand in a tree."""
    final: ClassVar[bool] = False
    """Whether the type changes, so that nothing can come after."""

    magnitude: float | None = None

    @property
    def name(self) -> str:
        """What the transform is called in files and spaces."""
        return type(self).__name__

    def draw(self, key: Key, shape: Shape) -> Plan:
        """What will happen to each picture."""
        if self.domain == "graph":
            raise InputError(f"{self.name} works on graphs, got pictures")
        return super().draw(key, shape)

    def act(self, graphs: Data, key: Key) -> Data:
        """The batch of graphs with those that the key names transformed."""
        if self.domain == "image":
            raise InputError(f"{self.name} works on pictures, got graphs")
        return super().act(graphs, key)

    def route(self, key: Key) -> list[tuple[Transform, ...]]:
        """Itself."""
        return [(self,)] * len(key)

    def describe(self, key: Key) -> list[tuple[str, ...]]:
        """Its name; for one that is made of others, the names of those drawn."""
        return [(str(self),)] * len(key)

    def at(self, magnitude: float) -> Self:
        """The same transform at another magnitude."""
        if self.magnitude is None:
            raise ArgumentError("magnitude", f"is not an argument of {self.name}", magnitude)
        return cast(Self, dataclasses.replace(cast(Any, self), magnitude=magnitude))

    def arguments(self) -> dict[str, Any]:
        """The constructor's arguments, for files: numbers, strings, lists, and transforms."""
        fields = dataclasses.fields(cast(Any, self))
        return {field.name: getattr(self, field.name) for field in fields}

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any]) -> Self:
        """The transform that has these arguments."""
        fields = dataclasses.fields(cast(Any, cls))
        for given in arguments:
            if given not in [field.name for field in fields]:
                known = ", ".join(field.name for field in fields) or "none"
                raise ArgumentError(escaped(given), f"is no argument of {cls.__name__}, which has {known}")
        for field in fields:
            needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if needed and field.name not in arguments:
                raise ArgumentError(field.name, f"is missing: {cls.__name__} needs it")
        return cls(**arguments)

    def __str__(self) -> str:
        """`Rotate(0.6)`; without a magnitude, what is not the default: `RandAugment(m=14)`. `repr` has everything."""
        if self.magnitude is not None:
            return f"{self.name}({self.magnitude:g})"
        fields = ((field, getattr(self, field.name)) for field in dataclasses.fields(cast(Any, self)))
        parts = [
            f"{field.name}={value}" for field, value in fields if field.name != "fill" and value != field.default
        ]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


def common_domain(parts: Iterable[Transform]) -> str:
    """What something made of these parts works on."""
    return next((domain for domain in (part.domain for part in parts) if domain != "any"), "any")


@dataclasses.dataclass(frozen=True)
class Identity(Transform):
    """Leave the data as it is; in a tree it ends the path."""

    domain = "any"
    random = False
    route = Policy.route
    describe = Policy.describe

    def stages(self, key: Key) -> Iterator[Stage]:  # noqa: ARG002
        """Nothing to do."""
        return iter(())


class PolicyModule(nn.Module):
    """A policy that switches off in eval mode."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, batch: Batch, **where: Any) -> Batch:
        """Augment the batch while training; seed, index, step and a forest's groups are passed on."""
        return self.policy(batch, **where) if self.training else batch

    def extra_repr(self) -> str:
        """The policy in the module's printout."""
        return str(self.policy)


def apply_to_pictures(policy: Policy, pictures: Tensor, key: Key) -> Tensor:
    """Draw, then do, for pictures that have been checked."""
    with torch.no_grad():
        return Pictures(pictures).do(policy.draw(key, Shape(*pictures.shape)))


def drawn_there(
    policy: Policy, pictures: Tensor, seed: int | Tensor, index: Any, step: int, single: bool
) -> Tensor | None:
    """The pictures transformed by kernels that also draw; None where the CPU must draw."""
    if not len(pictures) or not fused.serves(pictures.device):
        return None
    from augtree.transforms import device_draws

    with torch.no_grad():
        return device_draws.apply(policy, pictures, seed, index, step, single)


def _on_graphs(policy: Policy, batch: Any, seed: int, index: Any, step: int) -> Any:
    from augtree.transforms import graph_batch

    if not graph_batch.is_graph(batch):
        kind = f"{type(batch).__module__}.{type(batch).__qualname__}"
        remedies = {"PIL": "torchvision's PILToTensor()", "numpy": "torch.from_numpy(a).permute(2, 0, 1)"}
        remedy = remedies.get(kind.partition(".")[0])
        raise InputError(
            f"a policy takes a tensor of pictures or a PyG Data or Batch, got {kind.removeprefix('builtins.')}"
            + (f": make it a tensor first, {remedy}" if remedy else "")
        )
    graphs, single = graph_batch.as_batch(batch)
    key = Key.of(seed, indices(index, graphs.num_graphs, single), step=step)
    with torch.no_grad():
        out = policy.act(graphs, key)
    out = copy.copy(out) if out is batch else out
    return graph_batch.alone(out, batch) if single else out


def batch_size(batch: Any) -> int:
    """How many samples a batch holds; 1 for a picture or a graph alone."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim == 4 else 1
    return int(getattr(batch, "num_graphs", 1))


def indices(index: Any, count: int, single: bool) -> NDArray[np.int64]:
    """The index of each sample; one number is that of the first."""
    if index is None:
        index = 0
    values = np.asarray(index.cpu() if isinstance(index, Tensor) else index)
    if values.dtype.kind not in "iu" and values.size:
        raise ArgumentError("index", "must be whole numbers of 64 bits", index)
    if values.ndim == 0:
        return int(values) + np.arange(count, dtype=np.int64)
    if values.size != count:
        rule = "must be one number" if single else f"must be one number, or one for each of the {count} samples"
        raise ArgumentError("index", rule, index)
    return values.reshape(-1).astype(np.int64)


def check_magnitude(magnitude: Any) -> float:
    """A magnitude in (0, 1], or an error."""
    return number("magnitude", magnitude, 0, 1, open_low=True)
