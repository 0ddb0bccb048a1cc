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
    """Load a file of the model's state dict; `weights_note` then names the layers that were not loaded.

    The first convolution and the classifier stay random where their shape differs (other channels, another stem,
    other classes), and so does a classifier that the file lacks or has for another task. Everything else must fit.
    """
    own, loaded = model.state_dict(), read(path)
    random = misfits(own, loaded)
    problems = {
        "missing": [k for k in own.keys() - loaded.keys() if not k.endswith(COUNTER) and not k.startswith(random)],
        "unknown": [k for k in loaded.keys() - own.keys() if not k.startswith(CLASSIFIER)],
        "of another shape or type": [k for k in differing(own, loaded) if not k.startswith(random)],
    }
    complaints = [f"{len(keys)} {what} ({first_names(keys)})" for what, keys in problems.items() if keys]
    if complaints:
        raise ArgumentError("weights", f"must hold this model's tensors: {', '.join(complaints)}", str(path))
    model.load_state_dict({k: v for k, v in loaded.items() if not k.startswith(random)}, strict=False)
    names = " and ".join(part[:-1] for part in random)
    model.weights_note = f"{Path(path).name}: all" + (f" but {names}, left at random" if random else "")


def read(path: str | Path) -> State:
    """The tensors of a file."""
    library = need("safetensors.torch", "train")
    try:
        tensors: State = library.load_file(Path(path))
    except (OSError, TypeError, ValueError, need("safetensors", "train").SafetensorError) as error:
        raise ArgumentError("weights", f"must be a safetensors file ({error})", path) from error
    return tensors


def misfits(own: State, loaded: State) -> tuple[str, ...]:
    """The prefixes of the first convolution and the classifier, as far as they do not fit."""
    parts = {key.partition(".")[0] + "." for key in differing(own, loaded)}
    if any(key.startswith(CLASSIFIER) for key in own.keys() ^ loaded.keys()):
        parts.add(CLASSIFIER)
    return tuple(part for part in (STEM, CLASSIFIER) if part in parts)


def differing(own: State, loaded: State) -> list[str]:
    """The names of the tensors that both have, in different forms."""
    return [key for key in own.keys() & loaded.keys() if form(own[key]) != form(loaded[key])]


def form(tensor: Tensor) -> tuple[object, ...]:
    """A tensor's shape, and whether it is of floats."""
    return tuple(tensor.shape), tensor.is_floating_point()


def first_names(keys: Iterable[str]) -> str:
    """The first three names, in order."""
    names = [shown(key)[1:-1] for key in sorted(keys)]
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
