"""What a transform is: a frozen value that draws, then acts; on pictures, on graphs, or on both.

Randomness lives in the drawing alone. A transform on pictures implements `draw`, one on graphs `act`, and one
that is made of others implements `stages`, which serves both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast

import torch
from torch import Tensor, nn

from augtree.errors import ArgumentError, InputError, number
from augtree.keys import Key, fresh_seed
from augtree.transforms.pictures import Pictures, Plan, Shape, checked, merged

if TYPE_CHECKING:
    from torch_geometric.data import Data

Batch = TypeVar("Batch", bound="Tensor | Data")
Stage = list[tuple["Transform", Key]]
"""Transforms that act side by side, each on its own samples."""


class Policy:
    """Something that augments a batch when called. Frozen and picklable."""

    def stages(self, key: Key) -> Iterable[Stage]:
        """The transforms to apply, in order, each with the samples it is for."""
        raise NotImplementedError

    def route(self, key: Key) -> list[tuple[Transform, ...]]:
        """The transforms that each sample meets on its way."""
        met: dict[int, tuple[Transform, ...]] = dict.fromkeys(key.rows.tolist(), ())
        for stage in self.stages(key):
            for transform, part in stage:
                for row, steps in zip(part.rows.tolist(), transform.route(part), strict=True):
                    met[row] += steps
        return list(met.values())

    def draw(self, key: Key, shape: Shape) -> Plan:
        """What will happen to each picture."""
        plan: Plan = []
        for stage in self.stages(key):
            plan += merged(transform.draw(part, shape) for transform, part in stage if len(part))
        return plan

    def act(self, graphs: Data, key: Key) -> Data:
        """The batch of graphs with those that the key names transformed."""
        for stage in self.stages(key):
            for transform, part in stage:
                if len(part):
                    graphs = transform.act(graphs, part)
        return graphs

    def __call__(
        self,
        batch: Batch,
        *,
        seed: int | None = None,
        index: int | Sequence[int] | Tensor | None = None,
        step: int = 0,
    ) -> Batch:
        """Augment pictures (uint8, or float within [0,1]) or PyG graphs, one or a batch.

        With a seed the result is repeatable, whatever the batch is split into: `index` says where the samples
        stand in their data set (one number: the first sample's), `step` which pass over it this is. Without a
        seed one is taken from torch's CPU generator.
        """
        seed = fresh_seed() if seed is None else seed
        if not isinstance(batch, Tensor):
            return cast(Batch, _on_graphs(self, batch, seed, index, step))
        pictures = checked(batch)
        single = pictures.ndim == 3
        pictures = pictures[None] if single else pictures
        key = Key.of(seed, indices(index, len(pictures), single), step=step)
        out = apply_to_pictures(self, pictures, key)
        return cast(Batch, out[0] if single else out)

    def module(self) -> PolicyModule:
        """The policy as an nn.Module: it augments while training and does nothing in eval mode."""
        return PolicyModule(self)


class Transform(Policy):
    """A random function on a batch, with a name and perhaps a magnitude.

    The class attributes are promises; `augtree.testing.check_transform` holds a transform to them.
    """

    domain: ClassVar[Literal["image", "graph", "any"]] = "image"
    random: ClassVar[bool] = True
    """Different keys give different results."""
    scaled: ClassVar[bool] = False
    """The effect is small at the weakest magnitude and grows with it."""
    signed: ClassVar[bool] = False
    """The parameter is drawn on both sides of "no effect"."""
    mixes: ClassVar[bool] = False
    """A sample's result depends on the other samples of the batch."""
    whole: ClassVar[bool] = False
    """The shape or the type changes, so it must act on every sample: it cannot stand in a tree."""

    magnitude: float | None = None

    @property
    def name(self) -> str:
        """What the transform is called in files and spaces."""
        return type(self).__name__

    def stages(self, key: Key) -> Iterable[Stage]:  # noqa: ARG002
        """A transform on pictures implements `draw` instead, one on graphs `act`: the other is no input for it."""
        kinds = ("pictures", "graphs") if self.domain == "image" else ("graphs", "pictures")
        raise InputError(f"{self.name} works on {kinds[0]}, got {kinds[1]}")

    def route(self, key: Key) -> list[tuple[Transform, ...]]:
        """Itself; one that is made of others shows them instead."""
        return [(self,)] * len(key)

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
        known = [field.name for field in dataclasses.fields(cast(Any, cls))]
        for given in arguments:
            if given not in known:
                raise ArgumentError(given, f"is no argument of {cls.__name__} ({', '.join(known) or 'none'})", "it")
        try:
            return cls(**arguments)
        except TypeError as error:
            raise ArgumentError("", f"must be the arguments of {cls.__name__} ({error})", arguments) from error

    def __str__(self) -> str:
        """`Rotate(0.6)`; without a magnitude, what is not the default: `RandAugment(m=14)`. `repr` has everything."""
        if self.magnitude is not None:
            return f"{self.name}({self.magnitude:g})"
        fields = ((field, getattr(self, field.name)) for field in dataclasses.fields(cast(Any, self)))
        parts = [
            f"{field.name}={value}" for field, value in fields if field.name != "fill" and value != field.default
        ]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


@dataclasses.dataclass(frozen=True)
class Identity(Transform):
    """Leaves the data alone; in a tree it ends the path."""

    domain = "any"
    random = False
    route = Policy.route

    def stages(self, key: Key) -> Iterator[Stage]:  # noqa: ARG002
        """Nothing to do."""
        return iter(())


class PolicyModule(nn.Module):
    """A policy that switches off in eval mode."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, batch: Batch) -> Batch:
        """Augment the batch while training."""
        return self.policy(batch) if self.training else batch

    def extra_repr(self) -> str:
        """The policy in the module's printout."""
        return str(self.policy)


def apply_to_pictures(policy: Policy, pictures: Tensor, key: Key) -> Tensor:
    """Draw, then do, for pictures that have been checked."""
    with torch.no_grad():
        return Pictures(pictures).do(policy.draw(key, Shape(*pictures.shape)))


def _on_graphs(policy: Policy, batch: Any, seed: int, index: Any, step: int) -> Any:
    from augtree.transforms import graph_batch

    if not graph_batch.is_graph(batch):
        kind = f"{type(batch).__module__}.{type(batch).__qualname__}"
        raise InputError(
            f"a policy takes a tensor of pictures or a PyG Data or Batch, got {kind}"
            + (": turn it into a tensor first (torchvision: PILToTensor())" if kind.startswith("PIL.") else "")
        )
    graphs, single = graph_batch.as_batch(batch)
    key = Key.of(seed, indices(index, graphs.num_graphs, single), step=step)
    with torch.no_grad():
        out = policy.act(graphs, key)
    return out.get_example(0) if single else out


def batch_size(batch: Any) -> int:
    """How many samples a batch holds; 1 for a picture or a graph alone."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.ndim == 4 else 1
    return int(getattr(batch, "num_graphs", 1))


def indices(index: int | Sequence[int] | Tensor | None, count: int, single: bool) -> Sequence[int] | Tensor:
    """The index of each sample."""
    if index is None:
        return range(count)
    if isinstance(index, int) and not isinstance(index, bool):
        return range(index, index + count)
    values = torch.as_tensor(index)
    if values.is_floating_point() or values.dtype == torch.bool:
        raise ArgumentError("index", "must be whole numbers", index)
    if values.numel() != count:
        rule = "must be one number" if single else f"must be one number, or one for each of the {count} samples"
        raise ArgumentError("index", rule, index)
    return values.reshape(-1).cpu()


def check_magnitude(magnitude: Any, most: float = 1.0) -> None:
    """Raise unless it is a number in (0, most]."""
    number("magnitude", magnitude, 0, most, open_low=True)
