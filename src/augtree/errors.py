"""Everything augtree raises on purpose. Each message names the rule, the value and the place.

AugtreeError
├── ArgumentError      an argument breaks its rule; `field` says which
├── InputError         a batch that a policy cannot take
├── TransformError     a transform failed on a sample, or returned something it must not
├── PolicyFileError    a policy file is broken; `pointer` is the place as a JSON pointer
├── DataError          a data set's files are missing or broken
├── TaskError          a model or a task that does not go with its data
├── RunError           a run's folder is in use or broken
│   └── OtherRunError  a folder holds another run than the requested one
├── OutOfMemoryError   a training does not fit into the memory of its device
├── CheckError         a contract check failed; `failures` lists every one
└── MissingExtraError  an optional package is not installed
"""

from __future__ import annotations

import difflib
import importlib
import numbers
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = [
    "ArgumentError",
    "AugtreeError",
    "CheckError",
    "DataError",
    "InputError",
    "MissingExtraError",
    "OtherRunError",
    "OutOfMemoryError",
    "PolicyFileError",
    "RunError",
    "TaskError",
    "TransformError",
]


LONGEST_MESSAGE = 8000
"""Longer messages, of files with enormous names in them, are cut."""


def shown(value: object, most: int = 60) -> str:
    """A value as it stands in a message: one line, short, without control characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def printable(text: str, keep: str = "") -> str:
    r"""Text with escapes for what breaks a line or moves a cursor; letters of all scripts stay as they are.

    >>> printable("café\ncat\x1b[2J")
    'café\\ncat\\x1b[2J'
    """
    if text.isprintable():
        return text
    kept = (c in keep or c.isprintable() or unicodedata.category(c) == "Zs" for c in text)
    return "".join(c if is_kept else repr(c)[1:-1] for c, is_kept in zip(text, kept, strict=True))


def nearest(name: str, known: Iterable[str]) -> str:
    """A guess at what was meant, for the end of a message."""
    found = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {printable(found[0])}?)" if found else ""


def escaped(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def message(text: str, keep: str = "\n") -> str:
    """The text of an error, printable and of a bounded length."""
    text = printable(text, keep)
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}... ({len(text)} characters)"


class AugtreeError(Exception):
    """The root of the errors that augtree raises on purpose."""

    def __str__(self) -> str:
        return message(super().__str__())


class ArgumentError(AugtreeError, ValueError):
    """An argument breaks its rule; `field` is its place, as a JSON pointer without the first stroke."""

    def __init__(self, field: str, rule: str, *value: object) -> None:
        super().__init__(field, rule, *value)
        self.field = field
        self.problem = f"{rule}, got {shown(value[0])}" if value else rule

    def __str__(self) -> str:
        return message(f"{self.field} {self.problem}".strip(), keep="")


class InputError(AugtreeError, ValueError):
    """A batch that a policy cannot take."""


class TransformError(AugtreeError, RuntimeError):
    """A transform failed on a sample, or returned something it must not."""


class PolicyFileError(AugtreeError, ValueError):
    """A policy file is broken; nothing of it was used. The pointer of the whole file is ""."""

    def __init__(self, path: str | Path, pointer: str, problem: str) -> None:
        super().__init__(path, pointer, problem)
        self.path, self.pointer, self.problem = Path(path), pointer, problem

    def __str__(self) -> str:
        text = f"{self.path}: {self.problem}" + (f" at {shown(self.pointer, 200)[1:-1]}" if self.pointer else "")
        return message(text)


class DataError(AugtreeError, ValueError):
    """A data set's files are missing or broken."""


class TaskError(AugtreeError, RuntimeError):
    """A model or a task does not go with its data."""


class RunError(AugtreeError, RuntimeError):
    """A run's folder is in use, broken, or belongs to another run."""


class OtherRunError(RunError):
    """A folder holds another run than the requested one."""


class OutOfMemoryError(AugtreeError, MemoryError):
    """A training does not fit into the memory of its device."""


class DeviceError(AugtreeError, RuntimeError):
    """A GPU has failed: nothing more can be computed on it in this process."""


MEMORY_TEXTS = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
"""What torch's errors say that have no class of their own: of the CPU's memory, and of libraries on a GPU."""


def lacks_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on the CPU or on a GPU; torch need not be imported for that."""
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, RuntimeError) or isinstance(error, AugtreeError):
        return False
    # The end of a CUDA graph hides what was raised while it was recorded.
    kinds = [kind.__name__ for each in (error, error.__context__) for kind in type(each).__mro__]
    return "OutOfMemoryError" in kinds or any(text in str(error) for text in MEMORY_TEXTS)


def device_failed(error: BaseException) -> bool:
    """Whether an error is of a GPU, after which every further call in this process fails, too."""
    if not isinstance(error, RuntimeError) or isinstance(error, AugtreeError) or lacks_memory(error):
        return False
    return "AcceleratorError" in [kind.__name__ for kind in type(error).__mro__] or "CUDA error" in str(error)


class CheckError(AugtreeError, AssertionError):
    """A contract check failed."""

    def __init__(self, subject: str, failures: Mapping[str, str]) -> None:
        super().__init__(subject, dict(failures))
        self.subject, self.failures = subject, dict(failures)

    def __str__(self) -> str:
        lines = [f"  {name}: {why}" for name, why in self.failures.items()]
        count = f"{len(lines)} check{'s' if len(lines) > 1 else ''}"
        return printable("\n".join([f"{self.subject} fails {count}:", *lines]), keep="\n")


class MissingExtraError(AugtreeError, ImportError):
    """An optional package is not installed."""


def need(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs {module.partition('.')[0]}, which could not be imported ({error}): "
            f'pip install "augtree[{extra}]"'
        ) from error


def number(field: str, value: Any, low: float, high: float, *, open_low: bool = False) -> float:
    """`value` as a float within its range, or an ArgumentError."""
    rule = f"must be a number in {'(' if open_low else '['}{low:g}, {high:g}]"
    given: Any = value  # compared before the conversion, since it may be too large for a float; NaN is in no range
    kind = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not kind or not (low < given <= high if open_low else low <= given <= high):
        raise ArgumentError(field, rule, value)
    return float(given)


def whole_number(field: str, value: Any, low: int, high: int) -> int:
    """`value` as an int within its range, or an ArgumentError."""
    given: Any = value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not low <= given <= high:
        raise ArgumentError(field, f"must be a whole number from {low} to {high}", value)
    return int(given)


def true_or_false(field: str, value: Any) -> bool:
    """`value` if it is True or False, or an ArgumentError."""
    if not isinstance(value, bool):
        raise ArgumentError(field, "must be True or False", value)
    return value


def one_of(field: str, name: Any, known: Iterable[str]) -> str:
    """`name` if it is known, or an ArgumentError."""
    names = list(known)
    if not isinstance(name, str) or name not in names:
        raise ArgumentError(field, f"must be one of {', '.join(names)}{nearest(str(name), names)}", name)
    return name
