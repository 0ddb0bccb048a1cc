"""`export`: a policy as the source of a module that needs no augtree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from augtree.errors import ArgumentError, one_of
from augtree.exports.albumentations import albumentations_source
from augtree.exports.files import write_new
from augtree.exports.modules import python_source, torchvision_source
from augtree.policies.presets import find
from augtree.transforms.base import Policy

TARGETS: dict[str, Callable[[Policy], str]] = {
    "python": python_source,
    "torchvision": torchvision_source,
    "albumentations": albumentations_source,
}


def export(
    policy: Policy | str | Path, to: str = "python", out: str | Path | None = None, *, overwrite: bool = False
) -> str:
    """Write a policy as a Python module that works without augtree.

    Parameters
    ----------
    policy
        A tree, a forest or a transform; a policy file, the folder of a run, or the name of a free policy.
    to
        python (torch alone; for graphs, PyG as well), torchvision (a transform for a data set), or albumentations.
    out
        A file to write the module to.
    overwrite
        Replace the file if it exists.

    Returns
    -------
    The source of the module.

    Examples
    --------
    >>> import augtree as at
    >>> from augtree.transforms import Rotate
    >>> tree = at.Tree().with_node(1, Rotate(0.6), p=0.7)
    >>> source = at.export(tree, to="python")
    >>> print(source[source.index("def augment") : source.index("    return sample")])
    def augment(sample: Sample, draws: Draws, group: str | None = None) -> Sample:
        \"\"\"One sample.\"\"\"
        draws = draws.at(1)
        if draws.uniform(64) < 0.7:
            sample = rotate(sample, 30.0 * level(draws, 0.6) * sign(draws), 128)
    <BLANKLINE>

    """
    write = TARGETS[one_of("to", to, TARGETS)]
    if not isinstance(policy, Policy | str | Path):
        raise ArgumentError("policy", "must be a policy, a file, the folder of a run or a name", policy)
    source = write(policy if isinstance(policy, Policy) else find(str(policy)))
    if out is not None:
        write_new(Path(out), source.encode, overwrite=overwrite)
    return source
