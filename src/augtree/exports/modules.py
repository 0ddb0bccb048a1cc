"""Policies as source files of their own: for torch alone, and for torchvision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from augtree.errors import ArgumentError, printable
from augtree.exports.bundle import Bundle
from augtree.exports.steps import Steps, in_docstring, is_own, parts_of
from augtree.policies import Forest, Tree
from augtree.transforms import Chain, Normalize, Policy, ResizedCrop, SamplePairing
from augtree.transforms.base import common_domain
from augtree.version import __version__

PARTS = "augtree.exports.parts."


@dataclass(frozen=True)
class Form:
    """A kind of module: what it begins with, and where its operations are."""

    target: str
    needs: str
    modules: tuple[str, ...]
    sample: str
    """The type of a sample, in code."""
    usage: tuple[str, ...]


DRAWS = (f"{PARTS}draws",)
PICTURES = Form(
    "python",
    "torch alone",
    (f"{PARTS}batches", f"{PARTS}tensors", *DRAWS),
    "Tensor",
    (
        "policy = Policy()",
        "pictures = policy(pictures)          # uint8, or float within [0, 1]: [N,C,H,W], or [C,H,W]",
        "pictures = policy(pictures, seed=3)  # what augtree's policy gives with seed=3, to the byte",
    ),
)
GRAPHS = Form(
    "python",
    "torch and torch_geometric",
    (f"{PARTS}graphs", *DRAWS),
    "Any",
    (
        "policy = Policy()",
        "graphs = policy(graphs)          # a PyG Data or Batch",
        "graphs = policy(graphs, seed=3)  # what augtree's policy gives with seed=3",
    ),
)
TORCHVISION = Form(
    "torchvision",
    "torchvision, for the transform of a data set",
    (f"{PARTS}images", f"{PARTS}pillow", *DRAWS),
    "Any",
    (
        "transform = v2.Compose([Policy(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])",
        "data = torchvision.datasets.CIFAR10(folder, transform=transform)",
    ),
)
OF_GROUPS = "policy(..., groups) takes the name of each sample's group; without it, a tree is drawn by its weight."


def python_source(policy: Policy) -> str:
    """The policy as a module that needs torch alone."""
    form = {"graph": GRAPHS, "image": PICTURES}.get(common_domain(parts_of(policy)))
    return empty_source(policy) if form is None else module_source(policy, form)


def torchvision_source(policy: Policy) -> str:
    """The policy as a transform of torchvision v2 for one picture."""
    steps = list(parts_of(policy))
    refuse("torchvision", (step for step in steps if isinstance(step, SamplePairing) or step.domain == "graph"))
    return module_source(policy, TORCHVISION)


def empty_source(policy: Policy) -> str:
    """The module of a policy that does nothing."""
    bundle = Bundle((f"{PARTS}nothing",))
    bundle.add(["Policy"])
    head = [header(policy, PICTURES), "from __future__ import annotations\n", *bundle.import_lines()]
    return "\n\n\n".join(["\n".join(head), *bundle.functions.values()]) + "\n"


def refuse(target: str, steps: Iterable[object]) -> None:
    """Raise where there are transforms that a target has not."""
    names = list(dict.fromkeys(map(str, steps)))
    if names:
        raise ArgumentError(
            "policy", f"must be made of transforms that {target} has, but it has no {', '.join(names)}"
        )


def module_source(policy: Policy, form: Form) -> str:
    """A module: what it is, imports, constants, the class, the policy, operations and draws."""
    steps = list(parts_of(policy))
    own = [step for step in steps if is_own(step)]
    if own:
        names = ", ".join(dict.fromkeys(map(str, own)))
        raise ArgumentError("policy", f"must be made of augtree's own transforms to be exported, but has {names}")
    if any(isinstance(step, SamplePairing) for step in steps) and any(isinstance(s, ResizedCrop) for s in steps):
        raise ArgumentError("policy", "must not have both SamplePairing and ResizedCrop to be exported")
    writer = Steps()
    writer.define(
        "augment", "sample: Sample, draws: Draws, group: str | None = None", "One sample", writer.body(policy)
    )
    written = ["\n".join(lines) for lines in reversed(writer.functions.values())]
    if form is not GRAPHS:
        written.append(finish(policy))
    bundle = Bundle(form.modules, frozenset({"augment", "finish", "CHANNELS", "Sample", *writer.functions}))
    bundle.add(["Policy"])
    classes = [bundle.functions.pop("Policy")]
    for code in written:
        bundle.add_code(code)
    bundle.add(["Any"] if form.sample == "Any" else [])
    constants = [f"Sample = {form.sample}", *bundle.constants.values()]
    if form is PICTURES:
        coloured = any("adjust_color(" in code or "color_distortion(" in code for code in written)
        constants.insert(0, f"CHANNELS: tuple[int, ...] = {(1, 3) if coloured else ()}")
    head = [header(policy, form), "from __future__ import annotations\n", *bundle.import_lines(), "", *constants]
    return "\n\n\n".join(["\n".join(head), *classes, *written, *bundle.functions.values()]) + "\n"


def header(policy: Policy, form: Form) -> str:
    """The docstring of a module."""
    text = policy.to_text() if isinstance(policy, Tree | Forest) else str(policy)
    lines = [f'"""An augmentation policy, exported by augtree {printable(__version__)}; it needs {form.needs}.', ""]
    lines += [f"    {line}".rstrip() for line in in_docstring(text).splitlines()]
    lines += ["", *(f"    {line}" for line in form.usage)]
    return "\n".join([*lines, *(["", OF_GROUPS] if isinstance(policy, Forest) else []), '"""', ""])


def finish(policy: Policy) -> str:
    """The function that the augmented picture goes through last."""
    last = normalization(policy)
    done = "sample" if last is None else f"normalized(sample, {last.mean!r}, {last.std!r})"
    return (
        f'def finish(sample: Sample) -> Sample:\n    """The last step, once for each picture."""\n    return {done}'
    )


def normalization(policy: Policy) -> Normalize | None:
    """The Normalize that ends a policy."""
    if isinstance(policy, Normalize):
        return policy
    if isinstance(policy, Chain):
        found = (normalization(step) for step, p in policy.pairs if p)
        return next((each for each in found if each is not None), None)
    return None
