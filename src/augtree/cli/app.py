"""The command itself, and what all its subcommands share."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from augtree.errors import ArgumentError, printable
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
    "report": "Write a page that explains a run: verdict, evidence, policies with pictures, curves, cost.",
    "export": "Write a policy as code, or a finished model as a file, that works without augtree.",
    "data": "Which data sets there are, what is in one, and how one is built.",
    "demo": "Run the example: policies for three groups of digits, a model and a comparison.",
}
"""The commands, in the order of the help page, with the first lines of their own pages."""


RUNS = ("search", "resume", "compare", "train", "forest", "evaluate", "demo")
"""The commands that go on without a reader of their output; the others end."""
COMMAND = ContextVar("command", default="")
"""The command that was called."""


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
        COMMAND.set(cmd_name)
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

INTERRUPTED, CLOSED, TERMINATED = 130, 141, 143
"""The exit status after Ctrl-C, of a command whose output is closed, and after SIGTERM."""
AS_JSON = ContextVar("as_json", default=False)
"""Whether the standard output is for JSON alone."""

Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]


def prose_aside(as_json: bool) -> bool:
    """With --json, all text goes to the standard error output."""
    AS_JSON.set(as_json)
    return as_json


Json = Annotated[
    bool,
    typer.Option(
        "--json",
        callback=prose_aside,
        is_eager=True,
        help="Print the result as JSON, a line, for scripts; all text goes to the standard error output.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="The run's folder (default: a new one in runs/).")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out if it exists.")]


def print_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        print(f"augtree {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn data augmentation: search policies, compare them, apply them."""


def say(text: str) -> None:
    """Print a line of text; with --json, on the standard error output."""
    put(printable(text, keep="\n"), sys.stderr if AS_JSON.get() else sys.stdout)


def put(line: str, stream: TextIO) -> None:
    """Write a line; where the stream is closed (`| head`), a run goes on without it, and another command ends."""
    try:
        print(line, file=stream, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if COMMAND.get() not in RUNS:
            raise typer.Exit(CLOSED) from None
        if stream is not sys.stderr:
            put("augtree: the output is closed; the run goes on without it (augtree runs lists it)", sys.stderr)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """Print the result as JSON, where that is wanted."""
    if as_json:
        put(json.dumps(result), sys.stdout)


class TerminatedError(KeyboardInterrupt):
    """The process was asked to end, by SIGTERM."""


@contextmanager
def stoppable(folder: Path, command: str = "") -> Iterator[None]:
    """On Ctrl-C or SIGTERM, say what is kept and print the command that goes on with the run."""
    try:
        with sigterm_as_error():
            yield
    except KeyboardInterrupt as error:
        say("\n" + stopped(folder, command or f"augtree resume {folder}"))
        raise typer.Exit(TERMINATED if isinstance(error, TerminatedError) else INTERRUPTED) from None


@contextmanager
def sigterm_as_error() -> Iterator[None]:
    """Raise a TerminatedError on SIGTERM; workers, which do not get the signal, end at once."""
    import multiprocessing

    def end(*_: object) -> NoReturn:
        for worker in multiprocessing.active_children():
            worker.terminate()
        raise TerminatedError

    if threading.current_thread() is not threading.main_thread():  # which alone may set a handler
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if before is not None:  # one that was not set from Python cannot be put back
            signal.signal(signal.SIGTERM, before)


def stopped(folder: Path, command: str) -> str:
    """What of a stopped run is kept, and how to go on."""
    from augtree.runs.listing import list_runs
    from augtree.tables import counted

    runs = list(list_runs(folder))
    if not runs:
        return "Stopped before the run began, nothing is kept: begin again with the same command."
    done = counted(sum(run.units for run in runs), "finished part")
    return f"Stopped. Kept in {folder}: {done} of the work; only the part under way is lost. Go on with: {command}"


def check_new_file(out: Path, overwrite: bool) -> None:
    """Raise for a file that exists and is not to be replaced."""
    if out.exists() and not overwrite:
        raise ArgumentError("--out", "must be a new file (--overwrite replaces an existing one)", str(out))


def new_folder(kind: str) -> Path:
    """A folder for a run that does not exist yet."""
    name = f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, count = Path("runs") / name, 1
    while folder.exists():
        count += 1
        folder = Path("runs") / f"{name}-{count}"
    return folder
