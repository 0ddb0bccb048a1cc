"""Any function on one sample as a transform."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from augtree.errors import ArgumentError, InputError, TransformError, lacks_memory, need, number, one_of, shown
from augtree.keys import Key
from augtree.transforms.base import Transform, check_magnitude
from augtree.transforms.failures import TimeLimitError, within
from augtree.transforms.pictures import Plan, Shape, Work

Takes = Literal["chw", "hwc", "pil", "albumentations", "graph"]
SECONDS = 60.0
"""The longest that a call on one sample may take by default."""
LONGEST_SECONDS = 1e6


def wrap(
    function: Callable[..., Any],
    *,
    name: str,
    takes: Takes = "chw",
    magnitude: float | None = None,
    seconds: float = SECONDS,
) -> Wrapped:
    """Make a transform of a function on one sample.

    Where the function draws from Python's, numpy's or torch's global generators, the draws are repeatable: the
    generators are seeded from the sample's key, and put back afterwards.

    Parameters
    ----------
    function
        Called with one sample. For worker processes it must be one that pickle can name (no lambda).
    name
        What the transform is called in files and spaces: a word, not that of a built-in transform.
    takes
        What the function gets and returns: a uint8 tensor [C,H,W] ("chw"), a uint8 array [H,W,C] ("hwc"), a Pillow
        image ("pil"), an Albumentations transform's `image=` ("albumentations"), or a PyG Data ("graph").
    magnitude
        If given, in (0, 1], the function is called as function(sample, magnitude).
    seconds
        The longest that a call may take: one that hangs is a TransformError after this time. Off the main thread, a
        call that timed out goes on in its abandoned thread and can change later random draws.

    Examples
    --------
    >>> dim = wrap(lambda picture, m: (picture * (1 - m)).to(picture.dtype), name="Dim", magnitude=0.5)
    >>> dim(torch.full((1, 2, 2), 200, dtype=torch.uint8)).tolist()
    [[[100, 100], [100, 100]]]

    """
    return Wrapped(function, name, takes, magnitude, seconds)


@dataclass(frozen=True, repr=False)
class Wrapped(Transform):
    """A user's function as a transform; made by `wrap`."""

    function: Callable[..., Any] = field()
    """The function on one sample."""
    label: str = field()
    """Its name in files and spaces."""
    takes: Takes = "chw"
    """The form of a sample, see `wrap`."""
    magnitude: float | None = None
    """What the function is called with beside the sample, if anything."""
    seconds: float = field(default=SECONDS, compare=False)
    """The longest that a call may take; it is no part of what the transform does."""
    random: ClassVar[bool | None] = None  # unknown

    def __post_init__(self) -> None:
        from augtree.transforms import BUILT_IN

        if not isinstance(self.label, str) or not self.label.isidentifier():
            raise ArgumentError("name", "must be a word such as Fog", self.label)
        if self.name in {*BUILT_IN, "Tree", "Forest"}:
            raise ArgumentError("name", "must not be that of a built-in transform", self.name)
        if not callable(self.function):
            raise ArgumentError("function", "must be callable", self.function)
        one_of("takes", self.takes, get_args(Takes))
        number("seconds", self.seconds, 0, LONGEST_SECONDS, open_low=True)
        if self.magnitude is not None:
            check_magnitude(self.magnitude)
            if self.takes == "albumentations":
                raise ArgumentError("magnitude", "must not be given: Albumentations has its own", self.magnitude)

    @property
    def name(self) -> str:
        """The name it was given."""
        return self.label

    @property
    def domain(self) -> Literal["image", "graph"]:  # type: ignore[override]
        """Pictures, unless the function takes graphs."""
        return "graph" if self.takes == "graph" else "image"

    def arguments(self) -> dict[str, Any]:
        """What a file can hold: not the function, which `load(path, transforms=[...])` brings."""
        return {"takes": self.takes} | ({} if self.magnitude is None else {"magnitude": self.magnitude})

    def __hash__(self) -> int:
        return hash((self.label, self.takes, self.magnitude))  # a function may have no hash

    def __repr__(self) -> str:
        return f"wrap({shown_function(self.function)}, name={self.name!r}, takes={self.takes!r}" + (
            ")" if self.magnitude is None else f", magnitude={self.magnitude})"
        )

    def __str__(self) -> str:
        return self.name if self.magnitude is None else f"{self.name}({self.magnitude:g})"

    def draw(self, key: Key, shape: Shape) -> Plan:
        """A seed for each picture."""
        if self.takes == "graph":
            raise InputError(f"{self.name} works on graphs, got pictures")
        if self.takes == "pil" and shape.channels not in (1, 3):
            raise InputError(f"{self.name} takes Pillow images, so it needs 1 or 3 channels, got {shape.channels}")
        return [[Work(self.each, key.rows, (np.array(key.seeds(), np.int64),))]]

    def each(self, pictures: Tensor, seeds: Tensor) -> Tensor:
        """The function on one picture after the other."""
        out = torch.empty_like(pictures)
        for i, seed in enumerate(seeds.tolist()):
            sample = to_form(pictures[i].clone(), self.takes)
            out[i] = self.from_form(self.call(sample, seed), sample).to(pictures.device)
        return out

    def act(self, graphs: Any, key: Key) -> Any:
        """The function on one graph after the other."""
        if self.takes != "graph":
            raise InputError(f"{self.name} works on pictures, got graphs")
        data = need("torch_geometric.data", "graph")
        parts = graphs.to_data_list()
        for row, seed in zip(key.rows.tolist(), key.seeds(), strict=True):
            done = self.call(parts[row].clone(), seed)
            if not isinstance(done, data.Data):
                raise TransformError(f"{self.name} must return a PyG Data, got {type(done).__name__}")
            given, got = (sorted({*graph.keys()} - {"num_nodes"}) for graph in (parts[row], done))
            if given != got:
                raise TransformError(f"{self.name} must return a graph with the fields {given} as it got, got {got}")
            problem = graph_problem(parts[row], done)
            if problem:
                raise TransformError(f"{self.name} must return {problem}")
            parts[row] = done
        if any("num_nodes" in part for part in parts):  # which a batch needs of all its graphs or of none
            for part in parts:
                part.num_nodes = part.num_nodes
        followed = [key for key in graphs.keys() if f"{key}_batch" in graphs]  # noqa: SIM118 - a Batch iterates over pairs
        return data.Batch.from_data_list(parts, follow_batch=followed)

    def call(self, sample: Any, seed: int) -> Any:
        """The function on one sample, seeded and with a time limit; errors other than a lack of memory become one."""
        with seeded(seed, getattr(sample, "is_cuda", False)):
            try:
                return within(self.seconds, lambda: self.called(sample, seed))
            except TimeLimitError as error:
                limit = f"must return within {self.seconds:g} seconds (wrap(..., seconds=...)), but did not"
                raise TransformError(f"{self.name} ({shown_function(self.function)}) {limit}") from error
            except Exception as error:
                if lacks_memory(error):
                    raise
                raise TransformError(
                    f"{self.name} ({shown_function(self.function)}) raised {type(error).__name__}: {error}"
                ) from error

    def called(self, sample: Any, seed: int) -> Any:
        """The function on one sample, in its own form."""
        if self.takes == "albumentations":
            return albumented(self.function, sample, seed)
        return self.function(sample) if self.magnitude is None else self.function(sample, self.magnitude)

    def from_form(self, result: Any, sample: Any) -> Tensor:
        """What the function returned, which must be like what it got, as a tensor [C,H,W]."""
        if self.takes == "albumentations":
            if not isinstance(result, Mapping) or "image" not in result:
                raise TransformError(f"{self.name} must return a dict with an image, got {type(result).__name__}")
            result = result["image"]
        kind: Any = Tensor if self.takes == "chw" else np.ndarray
        if self.takes == "pil" and hasattr(result, "getbands"):
            given = f"{sample.mode} of {sample.size[0]} x {sample.size[1]}"
            got = f"{result.mode} of {result.size[0]} x {result.size[1]}"
        elif self.takes != "pil" and isinstance(result, kind):
            given, got = (
                f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}" for value in (sample, result)
            )
        else:
            names = {"chw": "a tensor", "pil": "a Pillow image"}
            raise TransformError(
                f"{self.name} must return {names.get(self.takes, 'an array')} as it got, got {type(result).__name__}"
            )
        if given != got:
            raise TransformError(f"{self.name} must return {given} as it got, got {got}")
        if isinstance(result, Tensor):
            return result
        array = np.asarray(result)
        return torch.from_numpy((array[None] if array.ndim == 2 else array.transpose(2, 0, 1)).copy())


def to_form(picture: Tensor, takes: str) -> Any:
    """A picture as a function takes it."""
    if takes == "chw":
        return picture
    array = np.ascontiguousarray(picture.cpu().numpy().transpose(1, 2, 0))
    if takes != "pil":
        return array
    return need("PIL.Image", "train").fromarray(array[..., 0] if array.shape[2] == 1 else array)


def graph_problem(given: Any, got: Any) -> str:
    """The rule that a returned graph breaks, beside the one it was made of, and how; empty where it breaks none."""
    for key, value in got:
        before = given.get(key, None)  # num_nodes may be new
        if not isinstance(before, Tensor):
            continue
        if not isinstance(value, Tensor):
            return f"{key} as a tensor, got {type(value).__name__}"
        kinds = [f"{str(each.dtype).removeprefix('torch.')} of {each.ndim} dimensions" for each in (before, value)]
        if kinds[0] != kinds[1]:
            return f"{key} as {kinds[0]}, got {kinds[1]}"
        if key != "edge_index" and before.shape[1:] != value.shape[1:]:
            return f"{key} with entries of shape {list(before.shape[1:])}, got {list(value.shape[1:])}"
        if value.is_floating_point() and not bool(value.isfinite().all()) and bool(before.isfinite().all()):
            return f"{key} with finite values, got {int((~value.isfinite()).sum())} that are not"
    edges = got.get("edge_index", None)
    if edges is None or not edges.numel() or 0 <= int(edges.min()) <= int(edges.max()) < (got.num_nodes or 0):
        return ""
    return f"edges between nodes 0 to {(got.num_nodes or 0) - 1}, got {int(edges.min())} to {int(edges.max())}"


def albumented(transform: Any, array: Any, seed: int) -> Any:
    """An Albumentations transform, which keeps generators of its own, on one picture."""
    if hasattr(transform, "set_random_seed"):
        transform.set_random_seed(seed)
    return transform(image=array)


@contextmanager
def seeded(seed: int, cuda: bool) -> Iterator[None]:
    """Seed the global generators, and put them back afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=None if cuda else []):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        # Not torch.manual_seed alone, which would seed the GPUs' generators too, whose states are then not kept.
        (torch.manual_seed if cuda else torch.default_generator.manual_seed)(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def shown_function(function: Any) -> str:
    """A function's name, the same in every process."""
    name = getattr(function, "__qualname__", None)
    return shown(f"{function.__module__}.{name}" if name else type(function).__qualname__).strip("'")
