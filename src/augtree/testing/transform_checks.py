"""`check_transform`: the contract of every transform, built in or your own.

Each check is a function that raises `Broken`; its docstring is the rule. What a class declares about itself
(`random`, `scaled`, `signed`, `mixes`, `whole`) decides which rules apply.
"""

from __future__ import annotations

import json
import pickle
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from augtree.errors import ArgumentError, AugtreeError, number, shown
from augtree.policies import Tree, codec
from augtree.testing.augmentation_checks import grows_with_magnitude, two_sided, weakest_near_identity
from augtree.testing.contract import SEED, Broken, anywhere, run_checks
from augtree.testing.samples import Samples, samples_of
from augtree.testing.worker import WorkerError, elsewhere
from augtree.transforms import Chain, OneOf, Transform, Wrapped
from augtree.transforms.failures import within
from augtree.transforms.wrap import LONGEST_SECONDS


def check_transform(transform: Transform, sample: Any, *, seconds: float = 300.0) -> list[str]:
    """Check a transform against its contract: the names of the checks, or a CheckError that lists every failure.

    Parameters
    ----------
    transform
        The transform; `augtree.wrap` makes one of a function.
    sample
        A picture (uint8 [C,H,W]), a PyG graph, or a batch of either, like those that the transform is made for. What
        it cannot show (a black picture is the same however it is turned) is looked for in built-in samples too.
    seconds
        The longest that a check may take: a transform that hangs fails it.

    Examples
    --------
    >>> import torch
    >>> from augtree.transforms import Invert
    >>> passed = check_transform(Invert(), torch.randint(256, (3, 16, 16), dtype=torch.uint8))
    >>> len(passed), passed[0]
    (20, 'runs on the sample')

    """
    if not isinstance(transform, Transform):
        raise ArgumentError("transform", "must be a transform (augtree.wrap makes one of a function)", transform)
    number("seconds", seconds, 0, LONGEST_SECONDS, open_low=True)
    samples = samples_of(sample)
    checks = {name: partial(within, seconds, partial(check, transform, samples)) for name, check in CHECKS.items()}
    subject = f"{transform.name} ({type(transform).__qualname__})"
    return run_checks(subject, checks, first=RUNS)


def rebuilt(transform: Transform) -> Transform:
    """The transform written to a file and read again."""
    mine = {given.name: given if isinstance(given, Wrapped) else type(given) for given in parts_of(transform)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "transform.json"
        codec.save(transform, path)
        own = [given for name, given in mine.items() if name not in codec.KNOWN]
        return codec.load(path, transforms=own)  # type: ignore[no-any-return]


def parts_of(transform: Transform) -> Iterator[Transform]:
    """The transform and all that it is made of."""
    yield transform
    if isinstance(transform, Tree):
        inner: list[Any] = [node.transform for node in transform.nodes.values()]
    elif isinstance(transform, Chain | OneOf):
        inner = [step for step, _ in transform.pairs]
    else:
        inner = [value for value in transform.arguments().values() if isinstance(value, Transform)]
    for part in inner:
        yield from parts_of(part)


# ---- as a value ------------------------------------------------------------------------------------------------


def file_form(transform: Transform, samples: Samples) -> None:  # noqa: ARG001
    """It can be written to a policy file and made from it again."""
    try:
        again = rebuilt(transform)
    except (AugtreeError, TypeError, ValueError) as error:
        raise Broken(f"cannot be made from its file form: {shown(str(error), 200)}") from error
    if type(again) is not type(transform):
        raise Broken(f"came back from its file form as {type(again).__module__}.{type(again).__qualname__}")


def arguments(transform: Transform, samples: Samples) -> None:
    """Every argument survives the file."""
    written = json.dumps(codec.encoded(transform))
    again = rebuilt(transform)
    if again != transform or not samples.equal(*(each(samples.batch, seed=SEED) for each in (transform, again))):
        raise Broken(f"{transform!r} was written as {shown(written, 120)} and came back as {again!r}")


def stable_repr(transform: Transform, samples: Samples) -> None:  # noqa: ARG001
    """Equal transforms print the same, in every process."""
    one, other = repr(transform), repr(rebuilt(transform))
    if one != other:
        raise Broken(f"prints as {shown(one)} and, equal, as {shown(other)}")


def unique_name(transform: Transform, samples: Samples) -> None:  # noqa: ARG001
    """Its name is its own, and can stand in a file."""
    if not isinstance(transform.name, str) or not transform.name.isidentifier():
        raise Broken(f"the name must be a word, got {shown(transform.name)}")
    known = codec.KNOWN.get(transform.name)
    if known is not None and known is not type(transform):
        raise Broken(f"{transform.name} is the name of a built-in transform")


# ---- as a function ---------------------------------------------------------------------------------------------


def runs(transform: Transform, samples: Samples) -> None:
    """It can be applied to the sample."""
    for form, batch in samples.forms().items():
        try:
            transform(batch, seed=SEED)
        except Exception as error:
            raise Broken(f"{form}: raised {type(error).__name__}: {shown(str(error), 300)}") from error


def input_untouched(transform: Transform, samples: Samples) -> None:
    """What goes in stays as it is."""
    pairs = zip(samples.forms().items(), samples.forms().values(), strict=True)
    for (form, batch), before in pairs:
        transform(batch, seed=SEED)
        if not samples.equal(before, batch):
            raise Broken(f"{form} was changed")


def same_key(transform: Transform, samples: Samples) -> None:
    """The same key gives the same bytes."""
    if not samples.equal(*(transform(samples.batch, seed=SEED) for _ in range(2))):
        raise Broken(f"two calls with seed {SEED} differ (does it have a generator of its own?)")


def other_keys(transform: Transform, samples: Samples) -> None:
    """Other seeds, steps and indices give other results, if it is declared random, and only then."""

    def check(samples: Samples) -> None:
        keys = {
            "seeds": [{"seed": SEED + i} for i in range(16)],
            "steps": [{"seed": SEED, "step": i} for i in range(16)],
            "indices": [{"seed": SEED, "index": 100 * i} for i in range(16)],
        }
        for what, given in keys.items():
            results = [transform(samples.batch, **key) for key in given]
            differ = any(not samples.equal(results[0], other) for other in results[1:])
            if transform.random is True and not differ:
                raise Broken(f"declared random, but 16 {what} give one result")
            if transform.random is False and differ:
                raise Broken(f"declared not random, but {what} give different results")

    anywhere(samples, check)


def global_random_state(transform: Transform, samples: Samples) -> None:
    """A call with a seed leaves Python's, numpy's and torch's generators alone."""
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        random.seed(SEED + 1)  # a state that no transform could have left behind
        np.random.seed(SEED + 2)  # noqa: NPY002
        torch.default_generator.manual_seed(SEED + 3)
        before = generator_states()
        transform(samples.batch, seed=SEED)
        moved = [whose for whose, state in generator_states().items() if state != before[whose]]
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002
        torch.set_rng_state(kept[2])
    if moved:
        raise Broken(f"{' and '.join(moved)} global generator was moved")


def generator_states() -> dict[str, bytes]:
    """The states of the three global generators."""
    return {
        "Python's": pickle.dumps(random.getstate()),
        "numpy's": pickle.dumps(np.random.get_state()),  # noqa: NPY002
        "torch's": torch.get_rng_state().numpy().tobytes(),
    }


def worker_process(transform: Transform, samples: Samples) -> None:
    """It can be sent to another process, and prints and does the same there."""
    try:
        there, printed = elsewhere(_in_worker, transform, samples.batch)
    except WorkerError as error:
        raise Broken(shown(str(error), 300)[1:-1]) from error
    if not samples.equal(transform(samples.batch, seed=SEED), there):
        raise Broken("another process gives another result")
    if printed != repr(transform):
        raise Broken(f"another process prints it as {shown(printed)}, not as {shown(repr(transform))}")


def _in_worker(transform: Transform, batch: Any) -> tuple[Any, str]:
    return transform(batch, seed=SEED), repr(transform)


def type_kept(transform: Transform, samples: Samples) -> None:
    """Type, dtype and device stay, unless it is declared to change them (`whole`)."""
    if not transform.whole:
        for form, batch in samples.forms().items():
            problem = samples.type_change(batch, transform(batch, seed=SEED))
            if problem:
                raise Broken(f"{form}: {problem}")


def shape_rule(transform: Transform, samples: Samples) -> None:
    """The shape stays, unless it is declared to change it; the number of samples always does."""
    for form, batch in samples.forms().items():
        problem = samples.shape_change(batch, transform(batch, seed=SEED), transform.whole)
        if problem:
            raise Broken(f"{form}: {problem}")


def label_kept(transform: Transform, samples: Samples) -> None:
    """Labels and other fields that belong to a whole sample stay."""
    for i in range(4):
        problem = samples.label_change(transform(samples.batch, seed=SEED + i))
        if problem:
            raise Broken(problem)


def valid_output(transform: Transform, samples: Samples) -> None:
    """Numbers are finite, edges join nodes that exist, of the same graph, and every field has its entries."""
    for i in range(4):
        for form, batch in samples.forms().items():
            problem = samples.invalid(transform(batch, seed=SEED + i))
            if problem:
                raise Broken(f"{form}: {problem}")


def degenerate_inputs(transform: Transform, samples: Samples) -> None:
    """The smallest and emptiest samples work too."""
    for what, batch in samples.degenerate().items():
        try:
            out = transform(batch, seed=SEED)
        except Exception as error:
            raise Broken(f"{what}: raised {type(error).__name__}: {shown(str(error), 200)}") from error
        problem = samples.invalid(out) or samples.shape_change(batch, out, transform.whole)
        if problem:
            raise Broken(f"{what}: {problem}")


def no_leak(transform: Transform, samples: Samples) -> None:
    """A sample's result does not depend on the others in its batch, unless it is declared to mix them."""
    if transform.mixes:
        return
    alone = transform(samples.batch, seed=SEED)
    beside = transform(samples.with_others_changed(), seed=SEED)
    if not samples.equal(samples.first(alone), samples.first(beside)):
        raise Broken("the first sample's result changes when the others do")


def any_split(transform: Transform, samples: Samples) -> None:
    """The same bytes whatever the batch is split into, unless it is declared to mix samples."""
    if transform.mixes:
        return
    whole = transform(samples.batch, seed=SEED)
    for start, part in samples.parts():
        done = transform(part, seed=SEED, index=start)
        if not samples.equal(done, samples.cut(whole, start, samples.count(part))):
            raise Broken(f"samples from {start} on differ when they are a batch of their own")


RUNS = "runs on the sample"
CHECKS: dict[str, Callable[[Transform, Samples], None]] = {
    RUNS: runs,
    "constructible from its file form": file_form,
    "arguments round-trip": arguments,
    "stable repr": stable_repr,
    "unique name": unique_name,
    "input untouched": input_untouched,
    "same key, same bytes": same_key,
    "other keys differ": other_keys,
    "global random state untouched": global_random_state,
    "equal in a worker process": worker_process,
    "type, dtype and device kept": type_kept,
    "shape rule": shape_rule,
    "label kept": label_kept,
    "finite and index-valid output": valid_output,
    "degenerate inputs": degenerate_inputs,
    "no cross-sample leak": no_leak,
    "any split, same bytes": any_split,
    "weakest magnitude near identity": weakest_near_identity,
    "effect grows with magnitude": grows_with_magnitude,
    "two-sided where declared": two_sided,
}
