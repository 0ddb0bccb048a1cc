"""Spaces: the lists of candidates that a search chooses from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast, overload

from torch import Tensor

from augtree.errors import ArgumentError, nearest
from augtree.transforms import automatic, crops
from augtree.transforms.base import Identity, Transform
from augtree.transforms.composites import Chain
from augtree.transforms.geometry import Geometry
from augtree.transforms.graphs import FOUR, GraphCL, MaskNodes
from augtree.transforms.images import OPERATIONS, Cutout, Plain
from augtree.transforms.operation import FILL
from augtree.transforms.simclr import ColorDistortion, GaussianBlur, GaussianNoise, Rotation, Sobel
from augtree.transforms.wrap import Wrapped

__all__ = ["Space", "auto", "graphs", "images", "simclr"]

IMAGE_MAGNITUDES = (0.2, 0.4, 0.6, 0.8, 1.0)
GRAPH_MAGNITUDES = (0.1, 0.2, 0.3, 0.4, 0.5)


class Space(Sequence[Transform]):
    """A list of candidates, Identity first, no two alike.

    What is added to a space with `+` is a candidate, and one of `own` where the space makes combinations.

    Parameters
    ----------
    candidates
        The transforms to choose from; Identity is added.
    basics
        Transforms that may come before any candidate (flips, turns, crops), each on or off.
    own
        Candidates that may also come on top of any other; None: the space makes no such combinations.

    Examples
    --------
    >>> space = images()
    >>> len(space), str(space["Rotate", 0.6]), str(space[0])
    (81, 'Rotate(0.6)', 'Identity')

    """

    def __init__(
        self,
        candidates: Iterable[Transform],
        *,
        basics: Iterable[Transform] = (),
        own: Iterable[Transform] | None = None,
    ) -> None:
        self._candidates = (Identity(), *(c for c in candidates if not isinstance(c, Identity)))
        self.basics = tuple(basics)
        self.combines = own is not None
        self.own: tuple[Transform, ...] = tuple(own or ())
        seen: list[Transform] = []
        for candidate in (*self._candidates, *self.basics):
            if not isinstance(candidate, Transform):
                raise ArgumentError("candidate", "must be a transform (see augtree.wrap)", candidate)
            if candidate.whole:
                raise ArgumentError("candidate", "must not change shape or type in a tree", str(candidate))
            if candidate in seen:
                raise ArgumentError("candidate", "must not be in the space twice", str(candidate))
            if any(c.name == candidate.name and not same_function(c, candidate) for c in seen):
                raise ArgumentError("candidate", "must not share its name with another function", candidate.name)
            seen.append(candidate)
        domains = {c.domain for c in seen} - {"any"}
        if len(domains) > 1:
            raise ArgumentError("candidate", "must work on what the others work on", sorted(domains))

    @overload
    def __getitem__(self, which: int | str | tuple[str, float]) -> Transform: ...
    @overload
    def __getitem__(self, which: slice) -> list[Transform]: ...
    def __getitem__(self, which: int | str | tuple[str, float] | slice) -> Transform | list[Transform]:
        """By position, by name ("Fog", "RandAugment(m=14)"), or by name and magnitude ("Rotate", 0.6)."""
        if isinstance(which, slice):
            return list(self._candidates[which])
        if not isinstance(which, str | tuple):
            return self._candidates[which]
        name, magnitude = which if isinstance(which, tuple) else (which, None)
        found = [c for c in self._candidates if str(c) == name] if magnitude is None else []
        found = found or [c for c in self._candidates if c.name == name and same(c.magnitude, magnitude)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ArgumentError("a candidate", f"must be named so that it is one of {found} and no other", which)
        named = [str(c) for c in self._candidates if c.name == name]
        if named:
            raise ArgumentError("a candidate", f"must be one of {', '.join(named)} (or made by hand)", which)
        names = sorted(set(self.names))
        raise ArgumentError("a candidate", f"must be one of {', '.join(names)}{nearest(str(name), names)}", which)

    def __len__(self) -> int:
        return len(self._candidates)

    def __iter__(self) -> Iterator[Transform]:
        return iter(self._candidates)

    def __contains__(self, candidate: object) -> bool:
        return candidate in self._candidates

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self._candidates, self.basics, self.own, self.combines

    def __add__(self, more: Iterable[Transform]) -> Space:
        added = list(more)
        own = [*self.own, *added] if self.combines else None
        return Space([*self, *added], basics=self.basics, own=own)

    def __repr__(self) -> str:
        text = f"Space of {len(self)} candidates: {', '.join(dict.fromkeys(self.names))}"
        return text + (f"; over {', '.join(map(str, self.basics))}" if self.basics else "")

    @property
    def distinct(self) -> tuple[Transform, ...]:
        """The candidates without those that differ from another in a magnitude that has no effect."""
        kept = {candidate.name if isinstance(candidate, Plain) else candidate: candidate for candidate in
                reversed(self._candidates)}  # fmt: skip
        return tuple(reversed(kept.values()))

    @property
    def names(self) -> list[str]:
        """The candidates' names."""
        return [candidate.name for candidate in self._candidates]


def same_function(one: Transform, other: Transform) -> bool:
    """Whether two transforms of one name are the same thing, perhaps at two magnitudes."""
    if isinstance(one, Wrapped) and isinstance(other, Wrapped):
        return one.function == other.function and one.takes == other.takes
    return type(one) is type(other)


def same(one: float | None, other: float | None) -> bool:
    """Whether two magnitudes are the same to within rounding."""
    return one == other if one is None or other is None else abs(one - other) < 1e-9


RANDAUGMENT_LEVELS = (9, 14, 19)
"""RandAugment's own default, and two stronger ones: which is best depends on the data."""


def images(*, composites: bool = False, fill: int = FILL) -> Space:
    """AutoAugment's 16 operations at 5 magnitudes, and Identity.

    Parameters
    ----------
    composites
        Add TrivialAugment, and RandAugment at three magnitudes.
    fill
        What geometric operations leave in uncovered pixels and Cutout covers with: 0 suits pictures on black.

    Examples
    --------
    >>> len(images()), str(images(composites=True)[-1])
    (81, 'RandAugment(m=19)')

    """
    out: list[Transform] = []
    for kind in OPERATIONS:
        filled = issubclass(kind, Geometry | Cutout)
        out += [kind(m, fill=fill) if filled else kind(m) for m in IMAGE_MAGNITUDES]  # type: ignore[call-arg]
    return Space(out + (composite_candidates(fill) if composites else []))


CUTOUT = 0.5
"""The side of the square that Cutout covers on top of a style, as a share of the picture's (DeVries, Taylor 2017)."""


def auto(data: Any) -> Space:
    """The default space of a search: basics (flips, turns, crop) times styles for pictures, GraphCL's for graphs.

    Parameters
    ----------
    data
        The data set, for the size, channels and fill of its pictures, and for whether its graphs have features.

    Examples
    --------
    >>> from augtree.data import load
    >>> print(auto(load("digits")).basics)
    (Flip(p=0.5), VerticalFlip(p=0.5), QuarterTurn(), PadCrop(pad=1, fill=0))

    """
    if data.domain == "graph":
        featured = any(getattr(graph, "x", None) is not None for graph in data.samples)
        kinds = [kind for kind in FOUR if featured or kind is not MaskNodes]
        mixed = [GraphCL(0.2)] if featured else []
        return Space([*(kind(m) for kind in kinds for m in GRAPH_MAGNITUDES), *mixed], own=())
    _, channels, height, width = cast(Tensor, data.samples).shape
    return Space(styles(data.fill, channels), basics=basics(height, width, data.fill), own=())


def basics(height: int, width: int, fill: int = FILL) -> list[Transform]:
    """Flips, turns and crops with padding of an eighth of the shorter side; black, unless another fill is given."""
    pad = max(1, min(height, width) // 8)
    crop = crops.PadCrop(pad, fill=0 if fill == FILL else fill)
    return [crops.Flip(), crops.VerticalFlip(), crops.QuarterTurn(), crop]


def styles(fill: int = FILL, channels: int = 3) -> list[Transform]:
    """RandAugment, TrivialAugment, their halves, AutoAugment's policy for CIFAR-10, Cutout on top of RandAugment."""
    cutout = Cutout(1.0, fill=fill, share=CUTOUT)
    geometry: list[Transform] = [automatic.RandGeometry(m=m, fill=fill) for m in (9, 14)]
    geometry += [automatic.TrivialGeometry(fill=fill)]
    if channels not in (1, 3):  # the operations on colours know grey and RGB alone
        return [*geometry, cutout]
    out: list[Transform] = [automatic.RandAugment(m=m, fill=fill) for m in (5, 9, 14)]
    out += [automatic.TrivialAugment(fill=fill), *geometry]
    out += [automatic.RandTones(m=m, fill=fill) for m in (9, 14)]
    out += [automatic.TrivialTones(fill=fill), automatic.AutoAugment("cifar10", fill=fill)]
    return [*out, Chain([automatic.RandAugment(fill=fill), cutout])]


def composite_candidates(fill: int) -> list[Transform]:
    """The free policies, as candidates."""
    strengths = [automatic.RandAugment(m=m, fill=fill) for m in RANDAUGMENT_LEVELS]
    return [automatic.TrivialAugment(fill=fill), *strengths]


def graphs(*, composites: bool = False) -> Space:
    """GraphCL's 4 transformations at 5 magnitudes, and Identity.

    Parameters
    ----------
    composites
        Add GraphCL itself, which draws one of the four for each graph, at 5 magnitudes.

    Examples
    --------
    >>> len(graphs()), len(graphs(composites=True))
    (21, 26)

    """
    kinds = (*FOUR, *((GraphCL,) if composites else ()))
    return Space([kind(m) for kind in kinds for m in GRAPH_MAGNITUDES])


def simclr(*, composites: bool = False, fill: int = FILL) -> Space:
    """The seven transformations of contrastive learning, and Identity.

    Parameters
    ----------
    composites
        Add SimCLR's chain, TrivialAugment, and RandAugment at three magnitudes.
    fill
        What the composites leave in uncovered pixels.

    Examples
    --------
    >>> print(*simclr().names)
    Identity RandomCrop Cutout Rotation ColorDistortion Sobel GaussianNoise GaussianBlur

    """
    seven: list[Transform] = [
        crops.RandomCrop(),
        Cutout(1.0, share=0.5),
        Rotation(),
        ColorDistortion(),
        Sobel(),
        GaussianNoise(),
        GaussianBlur(),
    ]
    return Space(seven + ([simclr_chain(), *composite_candidates(fill)] if composites else []))


def simclr_chain(colours: bool = True) -> Chain:
    """SimCLR's crop, colours (jitter for 4 of 5, grey for 1 of 5) and blur for every other (Chen et al. 2020)."""
    middle = [ColorDistortion()] if colours else []
    return Chain([crops.RandomCrop(), *middle, (GaussianBlur(), 0.5)])
