"""The built-in networks by name, and models that a function makes.

>>> from augtree import models
>>> models.build("cnn", models.Inputs("image", channels=1, size=8, outputs=10)).fc
Linear(in_features=64, out_features=10, bias=True)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import nn
from torch.nn.parameter import is_lazy

from augtree.errors import ArgumentError, TaskError, nearest, whole_number
from augtree.models.base import Inputs, Model
from augtree.models.cnn import Cnn
from augtree.models.gin import Gin
from augtree.models.pretrained import load_weights
from augtree.models.resgcn import ResGcn
from augtree.models.resnet import resnet18, resnet50
from augtree.models.wide_resnet import WideResNet, check_form

__all__ = ["Inputs", "Model", "build"]

LARGEST = 2**16
"""The most channels, pixels along a side, or outputs."""
RULE = "must be a name, or a function without arguments that makes a new nn.Module"


class Network(NamedTuple):
    """A built-in network: what it is for, and its constructor, whose keyword arguments are its options."""

    domain: str
    smallest: int
    """The fewest pixels along the shorter side."""
    make: Callable[..., Model]


NETWORKS = {
    "cnn": Network("image", 1, Cnn),
    "resnet18": Network("image", 8, resnet18),
    "resnet50": Network("image", 8, resnet50),
    "gin": Network("graph", 0, Gin),
    "resgcn": Network("graph", 0, ResGcn),
}
"""All but the wide residual networks, whose names contain numbers."""


def build(model: str | Callable[[], nn.Module], inputs: Inputs, **options: Any) -> nn.Module:
    """Make a new model: a built-in network by name, or what a function returns.

    Random weights depend on torch's global seed alone.

    Parameters
    ----------
    model
        wrn-D-K (such as wrn-16-4, with D = 6n + 4), resnet18, resnet50 or cnn for pictures, gin or resgcn for
        graphs; or a function without arguments that makes a new module each time.
    inputs
        What the model is made for; a function may ignore it.
    options
        Arguments of the named network: `width` of cnn, `stem` of the resnets, `layers`, `hidden` and `pooling` of
        gin and resgcn. All of them take `weights`, a safetensors file of a state dict to start from; the model's
        `weights_note` says which layers did not fit and stay random.

    Returns
    -------
    The model, in training mode and on the CPU.

    Examples
    --------
    >>> build("wrn-16-4", Inputs("image", channels=3, size=32, outputs=10)).fc
    Linear(in_features=256, out_features=10, bias=True)
    >>> build("gin", Inputs("graph", channels=0, size=0, outputs=2), layers=2, hidden=16).fc
    Linear(in_features=32, out_features=2, bias=True)

    """
    if isinstance(model, str):
        return built_in(model, inputs, options)
    check_model(model)
    check_options(model, options)
    module = model()
    if not isinstance(module, nn.Module):
        raise ArgumentError("model", f"{RULE}; this one made", module)
    check_initialised(module)
    return module


def check_initialised(module: nn.Module) -> None:
    """Raise for lazy layers, which have no weights before their first batch."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    lazy = [name for name, tensor in tensors if is_lazy(tensor)]
    if lazy:
        raise TaskError(
            f"the model function must make a module whose weights exist, but {', '.join(lazy[:3])} have no shape yet:"
            " give the layers their sizes (Linear for LazyLinear), or call the module once on a batch in the function"
        )


def built_in(name: str, inputs: Inputs, options: Mapping[str, Any]) -> Model:
    """A built-in network by name."""
    network = find(name)
    check_inputs(name, network, inputs)
    check_options(name, options)
    model = network.make(inputs, **{option: value for option, value in options.items() if option != "weights"})
    if options.get("weights") is not None:
        load_weights(model, options["weights"])
    return model


def find(name: str) -> Network:
    """The built-in network of this name."""
    if match := re.fullmatch(r"wrn-([0-9]{1,6})-([0-9]{1,6})", name):
        depth, width = map(int, match.groups())
        check_form(depth, width)
        return Network("image", 8, lambda inputs: WideResNet(inputs, depth, width))
    if name in NETWORKS:
        return NETWORKS[name]
    guess = nearest(name, ["wrn-16-4", "wrn-28-10", *NETWORKS])
    raise ArgumentError("model", f"must be one of wrn-D-K (such as wrn-16-4), {', '.join(NETWORKS)}{guess}", name)


def check_model(model: str | Callable[[], nn.Module]) -> None:
    """Raise for an unknown name, and for a module in place of a function that makes one."""
    if isinstance(model, str):
        find(model)
    elif isinstance(model, nn.Module) or not callable(model):
        raise ArgumentError("model", RULE, type(model))


def check_options(model: str | Callable[[], nn.Module], options: Mapping[str, Any]) -> None:
    """Raise for options that the model does not have."""
    if not isinstance(model, str):
        if options:
            raise ArgumentError("model", f"must be a name where there are options ({', '.join(options)})", model)
        return
    parameters = inspect.signature(find(model).make).parameters.values()
    known = [*(p.name for p in parameters if p.kind is p.KEYWORD_ONLY), "weights"]
    for option, value in options.items():
        if option not in known:
            rule = f"must be an option of {model}, which has {', '.join(known)}{nearest(option, known)}"
            raise ArgumentError(option, rule, value)


def check_inputs(name: str, network: Network, inputs: Inputs) -> None:
    """Raise for inputs that the network is not for."""
    if inputs.domain != network.domain:
        raise ArgumentError("inputs/domain", f"must be {network.domain!r} for {name}", inputs.domain)
    image = network.domain == "image"
    whole_number("inputs/channels", inputs.channels, 1 if image else 0, LARGEST)
    if image and whole_number("inputs/size", inputs.size, 1, LARGEST) < network.smallest:
        raise ArgumentError("inputs/size", f"must be at least {network.smallest} pixels for {name}", inputs.size)
    whole_number("inputs/outputs", inputs.outputs, 1, LARGEST)
