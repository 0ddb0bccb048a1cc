"""Starting from weights in a safetensors file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torch import Tensor

from augtree.errors import ArgumentError, need, shown
from augtree.models.base import Model

State = dict[str, Tensor]
STEM, CLASSIFIER = "conv1.", "fc."
COUNTER = ".num_batches_tracked"


def load_weights(model: Model, path: str | Path) -> None:
    """Fill the model from a file of its state dict, and say in `weights_note` what was not.

    A first convolution or a classifier of another shape stays random (other channels, another stem, other classes),
    and so does a classifier in whose place the file has none, or that of another task. Anything else must fit.
    """
    here, there = model.state_dict(), read(path)
    left = misfits(here, there)
    problems = {
        "missing": [k for k in here.keys() - there.keys() if not k.endswith(COUNTER) and not k.startswith(left)],
        "unknown": [k for k in there.keys() - here.keys() if not k.startswith(CLASSIFIER)],
        "of another shape or type": [k for k in differing(here, there) if not k.startswith(left)],
    }
    found = [f"{len(keys)} {what} ({listed(keys)})" for what, keys in problems.items() if keys]
    if found:
        raise ArgumentError("weights", f"must hold this model's tensors: {', '.join(found)}", str(path))
    model.load_state_dict({k: v for k, v in there.items() if not k.startswith(left)}, strict=False)
    parts = " and ".join(part[:-1] for part in left)
    model.weights_note = f"{Path(path).name}: all but {parts}, left at random" if left else f"{Path(path).name}: all"


def read(path: str | Path) -> State:
    """The tensors of a file."""
    library = need("safetensors.torch", "cli")
    try:
        tensors: State = library.load_file(Path(path))
    except (OSError, TypeError, ValueError, need("safetensors", "cli").SafetensorError) as error:
        raise ArgumentError("weights", f"must be a safetensors file ({error})", path) from error
    return tensors


def misfits(here: State, there: State) -> tuple[str, ...]:
    """Those of the first convolution and the classifier that stay as they are."""
    parts = {key.partition(".")[0] + "." for key in differing(here, there)}
    if any(key.startswith(CLASSIFIER) for key in here.keys() ^ there.keys()):
        parts.add(CLASSIFIER)
    return tuple(part for part in (STEM, CLASSIFIER) if part in parts)


def differing(here: State, there: State) -> list[str]:
    """The tensors that both have, in two forms."""
    return [key for key in here.keys() & there.keys() if form(here[key]) != form(there[key])]


def form(tensor: Tensor) -> tuple[object, ...]:
    """A tensor's shape, and whether it holds floats."""
    return tuple(tensor.shape), tensor.is_floating_point()


def listed(keys: Iterable[str]) -> str:
    """The first few of the names."""
    names = [shown(key)[1:-1] for key in sorted(keys)]
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
