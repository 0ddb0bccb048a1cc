"""The models that can be asked for by name, and any other that a function makes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from torch import nn

from augtree.errors import ArgumentError, nearest, whole_number
from augtree.models.base import Inputs, Model
from augtree.models.cnn import Cnn
from augtree.models.gin import Gin
from augtree.models.pretrained import load_weights
from augtree.models.resgcn import ResGcn
from augtree.models.resnet import resnet18, resnet50
from augtree.models.wide_resnet import WideResNet, check_form

__all__ = ["Inputs", "Model", "build"]

MOST = 2**16


class Maker(NamedTuple):
    """How a named model is made; its keyword arguments are its options."""

    domain: str
    smallest: int
    make: Callable[..., Model]


MAKERS = {
    "cnn": Maker("image", 1, Cnn),
    "resnet18": Maker("image", 8, resnet18),
    "resnet50": Maker("image", 8, resnet50),
    "gin": Maker("graph", 0, Gin),
    "resgcn": Maker("graph", 0, ResGcn),
}
"""All but the wide residual networks, whose names have numbers in them."""


def build(model: str | Callable[[], nn.Module], inputs: Inputs, **options: Any) -> nn.Module:
    """A new model: a built-in by its name, or what a function returns.

    Names: wrn-D-K, resnet18, resnet50, cnn, gin, resgcn. All of them take weights=FILE, a safetensors state dict, and
    say in `weights_note` what was left at random. Random weights depend on torch's global seed alone.

    >>> build("wrn-16-4", Inputs("image", 3, 32, 10)).fc
    Linear(in_features=256, out_features=10, bias=True)
    """
    if isinstance(model, str):
        return built_in(model, inputs, options)
    rule = "must be a name, or a function without arguments that makes a new nn.Module"
    if isinstance(model, nn.Module) or not callable(model):
        raise ArgumentError("model", rule, type(model))
    if options:
        raise ArgumentError("model", f"must be a name where there are options ({', '.join(options)})", model)
    made = model()
    if not isinstance(made, nn.Module):
        raise ArgumentError("model", f"{rule}; this one made", made)
    return made


def built_in(name: str, inputs: Inputs, options: Mapping[str, Any]) -> Model:
    """A model by its name."""
    maker = find(name)
    check(name, maker, inputs)
    known = [p.name for p in inspect.signature(maker.make).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known.append("weights")
    for option, value in options.items():
        if option not in known:
            rule = f"must be an option of {name}, which has {', '.join(known)}{nearest(option, known)}"
            raise ArgumentError(option, rule, value)
    model = maker.make(inputs, **{option: value for option, value in options.items() if option != "weights"})
    if options.get("weights") is not None:
        load_weights(model, options["weights"])
    return model


def find(name: str) -> Maker:
    """How the model of this name is made."""
    if match := re.fullmatch(r"wrn-([0-9]{1,6})-([0-9]{1,6})", name):
        depth, width = map(int, match.groups())
        check_form(depth, width)
        return Maker("image", 8, lambda inputs: WideResNet(inputs, depth, width))
    if name in MAKERS:
        return MAKERS[name]
    guess = nearest(name, ["wrn-16-4", "wrn-28-10", *MAKERS])
    raise ArgumentError("model", f"must be one of wrn-D-K (such as wrn-16-4), {', '.join(MAKERS)}{guess}", name)


def check(name: str, maker: Maker, inputs: Inputs) -> None:
    """That the model is for such inputs."""
    if inputs.domain != maker.domain:
        raise ArgumentError("inputs/domain", f"must be {maker.domain!r} for {name}", inputs.domain)
    image = maker.domain == "image"
    whole_number("inputs/channels", inputs.channels, 1 if image else 0, MOST)
    if image and whole_number("inputs/size", inputs.size, 1, MOST) < maker.smallest:
        raise ArgumentError("inputs/size", f"must be at least {maker.smallest} pixels for {name}", inputs.size)
    whole_number("inputs/outputs", inputs.outputs, 1, MOST)
