"""Running the checks of a contract, and collecting what fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from augtree.errors import CheckError, shown
from augtree.testing.samples import Samples

SEED = 20240601


class Broken(Exception):  # noqa: N818
    """A rule that does not hold, and how that shows."""


def run_checks(subject: str, checks: Mapping[str, Callable[..., None]], *arguments: Any, first: str) -> list[str]:
    """The checks' names, or a CheckError that lists every failure; the rest is not run if the `first` fails."""
    failures: dict[str, str] = {}
    for name, check in checks.items():
        try:
            check(*arguments)
        except Broken as broken:
            failures[name] = str(broken)
        except Exception as error:  # whatever the subject may raise is a finding
            failures[name] = f"raised {type(error).__name__}: {shown(str(error), 300)}"
        if name == first and failures:
            break
    if failures:
        raise CheckError(subject, failures)
    return list(checks)


def anywhere(samples: Samples, check: Callable[[Samples], None]) -> None:
    """Look for something in the sample and, where it does not show, in our own; raise if neither shows it."""
    try:
        check(samples)
    except Broken as broken:
        try:
            check(samples.stock())
        except Exception:
            raise broken from None
