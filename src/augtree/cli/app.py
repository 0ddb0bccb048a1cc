"""The command itself, and what all its subcommands share."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from augtree.version import __version__

COMMANDS = {
    "search": "Search for an augmentation policy while training a model with it.",
    "resume": "Resume a run that was stopped; the result is the same as without the interruption.",
    "runs": "List the runs in a folder: what they are, whether they are done, what they have cost.",
    "compare": "Train with each policy and compare the results; for a run, also against controls of the same cost.",
    "train": "Train one model with a policy and keep it.",
    "forest": "Search a policy for each group and train one model on all groups with learned weights.",
    "evaluate": "Train encoders without labels, with each policy, and judge their features by the protocol of a"
    " paper.",
    "apply": "Write a sheet of pictures and their augmented versions: the first thing to do with a policy.",
    "data": "Which data sets there are, what is in one, and how one is built.",
    "demo": "Run the example: policies for three groups of digits, a model and a comparison.",
}
"""The commands, in the order of the help page, with the first lines of their own pages."""


class LazyCommands(TyperGroup):
    """Imports the module of a command when it is called: the help page and the version need none."""

    listing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A command; for the list of commands, its first line alone."""
        if cmd_name not in COMMANDS:
            return None
        if self.listing:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name])
        import_module(f"augtree.cli.{cmd_name}")
        return typer.main.get_group(app).commands[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page, without importing the commands."""
        self.listing = True
        super().format_help(ctx, formatter)


app = typer.Typer(
    name="augtree",
    cls=LazyCommands,
    help="Learn data augmentation: search policies, compare them, apply them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

INTERRUPTED = 130
"""The exit status after Ctrl-C."""

Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line of JSON, for scripts.")]
Out = Annotated[Path | None, typer.Option(help="The run's folder (default: a new one in runs/).")]


def print_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        say(f"augtree {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn data augmentation: search policies, compare them, apply them."""


def say(text: str) -> None:
    """Print a line of text."""
    print(text)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """Print the result as JSON, where that is wanted."""
    if as_json:
        print(json.dumps(result))


@contextmanager
def stoppable(folder: Path, command: str = "") -> Iterator[None]:
    """On Ctrl-C, print the command that resumes the run."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nStopped; nothing is lost. Resume with: {command or f'augtree resume {folder}'}")
        raise typer.Exit(INTERRUPTED) from None


def new_folder(kind: str) -> Path:
    """A folder for a run that does not exist yet."""
    name = f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, count = Path("runs") / name, 1
    while folder.exists():
        count += 1
        folder = Path("runs") / f"{name}-{count}"
    return folder
