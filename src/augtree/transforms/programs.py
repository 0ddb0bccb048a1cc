"""Policies as programs, which draw where the pictures are: a picture walks from instruction to instruction.

An instruction tests a probability, chooses one of several that follow, or adds an operation to the picture's list
(`codes`), drawing its parameters. It names the key that its draws come from by the nodes on the way there, so every
draw has the bits that `draw` gives on the CPU. A transform without a maker is drawn on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from augtree.keys import Key
from augtree.transforms import automatic, codes, crops, fused, geometry, images, kernels, simclr
from augtree.transforms.autoaugment import POLICIES
from augtree.transforms.base import Identity
from augtree.transforms.composites import CHOICE, Chain, OneOf
from augtree.transforms.operation import BIN, LEVEL, SIGN, Operation
from augtree.transforms.pictures import Shape, Work

LARGEST = 20_000
"""Instructions of a program."""
END = -1
"""Where a picture goes that is done."""
Path = tuple[int, ...]
"""The nodes from a batch's key to another one."""


class NoProgramError(Exception):
    """A transform's draws are only known to the CPU."""


@dataclass
class Program:
    """Instructions, written from the last to the first."""

    channels: int
    height: int
    width: int
    whole: list[tuple[int, ...]] = field(default_factory=list)
    """Of each instruction: kind, next, other, counter, nodes of the path, and the words of an operation."""
    reals: list[tuple[float, ...]] = field(default_factory=list)
    """Of each: a probability or count; where the level starts, how far it may fall, in how many steps; the limit."""
    steps: list[int] = field(default_factory=list)
    """How many instructions are walked through from each, at most."""
    operations: list[int] = field(default_factory=list)
    """How many of them are operations, at most."""

    @property
    def shape(self) -> Shape:
        """The shape of a batch of one."""
        return Shape(1, self.channels, self.height, self.width)

    def test(self, path: Path, counter: int, p: float, then: int, otherwise: int) -> int:
        """Go on to `then` where the uniform draw is below p."""
        return self._add(codes.TEST, path, (then, otherwise), counter, reals=(p,))

    def choose(self, path: Path, counter: int, entries: Sequence[int]) -> int:
        """Go on to one of several, each as likely."""
        first = len(self.whole)
        for entry in entries:  # side by side, so that the number drawn leads there
            self._add(codes.SKIP, (), (entry, entry))
        sides = range(first, first + len(entries))
        return self._add(codes.CHOOSE, path, tuple(sides), counter, reals=(len(entries),))

    def operation(
        self, kind: int, path: Path, then: int, words: Sequence[int] = (), reals: Sequence[float] = ()
    ) -> int:
        """Add an operation to the picture's list."""
        return self._add(kind, path, (then, then), words=words, reals=reals)

    def words(self, work: Work) -> list[list[int]]:
        """A work's operations, which have known parameters."""
        words: list[list[int]] = fused.PACKERS[work.kernel](work, torch.Size(self.shape)).tolist()
        return words

    def constant(self, work: Work, then: int) -> int:
        """Add the operation of a work on one picture."""
        (words,) = self.words(work)
        return self.operation(codes.CONSTANT, (), then, words)

    def _add(
        self,
        kind: int,
        path: Path,
        exits: Sequence[int],
        counter: int = 0,
        words: Sequence[int] = (),
        reals: Sequence[float] = (),
    ) -> int:
        if len(path) > codes.PATH or len(self.whole) >= LARGEST:
            raise NoProgramError
        nodes = (*path, *[-1] * (codes.PATH - len(path)))
        self.whole.append((kind, *exits[:2], counter, *nodes, *words, *[0] * (codes.WORDS - len(words))))
        self.reals.append((*reals, *[0.0] * (codes.REALS - len(reals))))
        ends = [i for i in exits if i != END]
        self.steps.append(int(kind != codes.SKIP) + max((self.steps[i] for i in ends), default=0))
        self.operations.append(int(kind >= codes.CONSTANT) + max((self.operations[i] for i in ends), default=0))
        return len(self.whole) - 1

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The instructions [n, 10 + WORDS] and [n, REALS]."""
        return np.array(self.whole, np.int32), np.array(self.reals, np.float64)


Maker = Callable[[Any, Program, Path, int], int]
"""maker(transform, program, path of its key, where to go afterwards) -> where to enter."""
MAKERS: dict[type, Maker] = {}
Made = TypeVar("Made", bound=Callable[..., int])


def makes(*kinds: type) -> Callable[[Made], Made]:
    """Declare the maker of these transforms; subclasses may draw otherwise, so each must be named."""

    def declare(maker: Made) -> Made:
        for kind in kinds:
            MAKERS[kind] = maker
        return maker

    return declare


def make(transform: Any, program: Program, path: Path, then: int) -> int:
    """The instructions of any transform."""
    maker = MAKERS.get(type(transform))
    if maker is None:
        raise NoProgramError
    return maker(transform, program, path, then)


# ---- one operation ---------------------------------------------------------------------------------------------

ONE_ROW = Key.of(0, [0])


def at_levels(
    operation: Operation, levels: Sequence[float], limit: float, program: Program, path: Path, then: int
) -> list[int]:
    """An operation at each of some levels that are known, on a random side where it has two."""
    if isinstance(operation, images.Color) and program.channels not in (1, 3):
        raise NoProgramError  # the CPU's draws say what is wrong
    sides = (-1.0, 1.0) if operation.signed else (1.0,)
    values = operation.values(np.repeat(levels, len(sides)), np.tile(sides, len(levels)), limit)
    work = operation.work(Key.of(0, range(len(values))), values, program.shape)
    entries = [program.operation(codes.CONSTANT, (), then, row) for row in program.words(work)]
    if not operation.signed:
        return entries
    return [program.test(path, SIGN, 0.5, *pair) for pair in zip(entries[::2], entries[1::2], strict=True)]


@makes(images.AutoContrast, images.Equalize, images.Invert)
def _plain(transform: Operation, program: Program, path: Path, then: int) -> int:
    return at_levels(transform, [1.0], transform.limit, program, path, then)[0]


ONE = 1 << 16
HALF = ONE // 2
SHEARS: dict[type[Operation], tuple[int, tuple[int, ...]]] = {
    geometry.ShearX: (codes.SHEAR_X, (ONE, 0, 0, 0, ONE, HALF)),
    geometry.ShearY: (codes.SHEAR_Y, (ONE, 0, HALF, 0, ONE, 0)),
}
SHIFTS: dict[type[Operation], int] = {geometry.TranslateX: codes.TRANSLATE_X, geometry.TranslateY: codes.TRANSLATE_Y}
FACTORS: dict[type[Operation], int] = {
    images.Contrast: codes.CONTRAST,
    images.Brightness: codes.BRIGHTNESS,
    images.Sharpness: codes.SHARPNESS,
    images.Color: codes.COLOR,
}


def _levels(transform: Operation, limit: float, size: float = 0.0) -> tuple[float, ...]:
    """Where the level starts, how far below it may fall, what it is multiplied by, and a size."""
    return transform.magnitude, min(BIN, transform.magnitude), limit, size


@makes(*SHEARS)
def _shear(transform: geometry.Geometry, program: Program, path: Path, then: int) -> int:
    kind, words = SHEARS[type(transform)]
    return program.operation(
        kind, path, then, (codes.WARP, *words, transform.fill), _levels(transform, transform.limit)
    )


@makes(*SHIFTS)
def _shift(transform: geometry.Geometry, program: Program, path: Path, then: int) -> int:
    kind = SHIFTS[type(transform)]
    words = (codes.WARP, ONE, 0, 0, 0, ONE, 0, transform.fill)
    side = program.width if kind == codes.TRANSLATE_X else program.height
    return program.operation(kind, path, then, words, _levels(transform, transform.limit, side))


@makes(geometry.Rotate)
def _rotate(transform: geometry.Rotate, program: Program, path: Path, then: int) -> int:
    words = (codes.WARP, 0, 0, 0, 0, 0, 0, transform.fill)
    return program.operation(codes.ROTATE, path, then, words, _levels(transform, transform.limit))


@makes(images.Solarize, images.Posterize)
def _tones(transform: Operation, program: Program, path: Path, then: int) -> int:
    solarizes = isinstance(transform, images.Solarize)
    kind, code = (codes.SOLARIZE_FROM, codes.SOLARIZE) if solarizes else (codes.KEEP_BITS, codes.POSTERIZE)
    return program.operation(kind, path, then, (code,), _levels(transform, transform.limit))


@makes(*FACTORS)
def _factor(transform: Operation, program: Program, path: Path, then: int) -> int:
    if isinstance(transform, images.Color) and program.channels not in (1, 3):
        raise NoProgramError
    words = (FACTORS[type(transform)],)
    return program.operation(codes.FACTOR, path, then, words, _levels(transform, transform.limit))


@makes(images.Cutout)
def _cutout(transform: images.Cutout, program: Program, path: Path, then: int) -> int:
    words = (codes.BOX, 0, 0, 0, 0, transform.fill)
    shorter = min(program.height, program.width)
    return program.operation(codes.CUT, path, then, words, _levels(transform, transform.share, shorter))


@makes(images.SamplePairing)
def _pairing(transform: Operation, program: Program, path: Path, then: int) -> int:
    return program.operation(codes.PAIR_UP, path, then, (codes.PAIR,), _levels(transform, transform.limit))


@makes(crops.PadCrop)
def _pad(transform: crops.PadCrop, program: Program, path: Path, then: int) -> int:
    words = (codes.WARP, ONE, 0, 0, 0, ONE, 0, transform.fill)
    return program.operation(codes.PAD, path, then, words, (transform.pad,))


@makes(crops.Flip, crops.VerticalFlip)
def _flip(transform: crops.Flip | crops.VerticalFlip, program: Program, path: Path, then: int) -> int:
    kernel = kernels.mirror if isinstance(transform, crops.Flip) else kernels.upend
    return program.test(path, 0, transform.p, program.constant(Work(kernel, ONE_ROW.rows), then), then)


@makes(crops.QuarterTurn)
def _quarter_turn(transform: crops.QuarterTurn, program: Program, path: Path, then: int) -> int:  # noqa: ARG001
    return program.choose(path, 0, [then, *turns(program, then)])


@makes(simclr.Rotation)
def _rotation(transform: simclr.Rotation, program: Program, path: Path, then: int) -> int:  # noqa: ARG001
    turned = turns(program, then)
    return turned[0] if len(turned) == 1 else program.choose(path, 0, turned)


def turns(program: Program, then: int) -> list[int]:
    """A square's turns by one to three quarters; those of other pictures are by two."""
    if program.height != program.width:
        return [program.constant(Work(kernels.half_turn, ONE_ROW.rows), then)]
    works = [Work(kernels.quarter_turn, ONE_ROW.rows, (np.array([quarters]),)) for quarters in (1, 2, 3)]
    return [program.constant(work, then) for work in works]


# ---- of several ------------------------------------------------------------------------------------------------


@makes(Identity)
def _identity(transform: Identity, program: Program, path: Path, then: int) -> int:  # noqa: ARG001
    return then


@makes(Chain)
def _chain(transform: Chain, program: Program, path: Path, then: int) -> int:
    for i, (step, p) in reversed(list(enumerate(transform.pairs))):
        then = program.test((*path, i), 0, p, make(step, program, (*path, i, 1), then), then)
    return then


@makes(OneOf)
def _one_of(transform: OneOf, program: Program, path: Path, then: int) -> int:
    entries = [make(choice, program, (*path, 0), then) for choice, _ in transform.pairs]
    return by_edges(program, path, CHOICE, np.cumsum(transform.shares), entries)


def by_edges(program: Program, path: Path, counter: int, edges: NDArray[np.float64], entries: Sequence[int]) -> int:
    """Go on to the first entry whose edge lies above the draw; the last has what is left."""
    entry = entries[-1]
    for edge, other in reversed(list(zip(edges[:-1].tolist(), entries[:-1], strict=True))):
        entry = program.test(path, counter, edge, other, entry)
    return entry


def chosen(
    choice: automatic.Choice, place: int, levels: Sequence[float], program: Program, path: Path, then: int
) -> list[int]:
    """One of the operations of a choice, at each of some levels."""
    kind = choice.kinds[place]
    if kind is Identity:
        return [then] * len(levels)
    if not issubclass(kind, Operation) or kind in (images.Cutout, images.SamplePairing):
        raise NoProgramError
    operation = kind(1.0, fill=choice.fill) if issubclass(kind, geometry.Geometry) else kind(1.0)
    return at_levels(operation, levels, choice.limit(kind, program.shape), program, path, then)


@makes(automatic.RandAugment, automatic.RandGeometry, automatic.RandTones)
def _rand(transform: automatic.RandAugment, program: Program, path: Path, then: int) -> int:
    choice = automatic.Choice(transform.name, transform.palette, transform.fill, wide=False)
    for i in reversed(range(transform.n)):
        here, levels = (*path, i), [transform.m / 30]
        entries = [chosen(choice, place, levels, program, here, then)[0] for place in range(len(choice.kinds))]
        then = program.choose(here, CHOICE, entries)
    return then


@makes(automatic.TrivialAugment, automatic.TrivialGeometry, automatic.TrivialTones)
def _trivial(transform: automatic.TrivialAugment, program: Program, path: Path, then: int) -> int:
    choice = automatic.Choice(transform.name, transform.palette, transform.fill, wide=True)
    entries = []
    for place in range(len(choice.kinds)):
        levels = chosen(choice, place, [level / 30 for level in range(31)], program, path, then)
        entries.append(program.choose(path, LEVEL, levels))
    return program.choose(path, CHOICE, entries)


@makes(automatic.AutoAugment)
def _auto(transform: automatic.AutoAugment, program: Program, path: Path, then: int) -> int:
    table = POLICIES[transform.policy]
    names = sorted({name for row in table for name, _, _ in row})
    choice = automatic.Choice(transform.name, [automatic.KINDS[name] for name in names], transform.fill, wide=False)
    entries = []
    for row in table:
        entry = then
        for place in (1, 0):
            name, chance, level = row[place]
            here = (*path, place)
            (done,) = chosen(choice, names.index(name), [(level or 0) / 9], program, here, entry)
            entry = program.test(here, CHOICE, chance, done, entry)
        entries.append(entry)
    return program.choose(path, CHOICE, entries)
