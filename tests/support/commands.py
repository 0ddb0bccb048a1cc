"""The command line as tests call it."""

import json

from typer.testing import CliRunner

from augtree.cli import app

FREE = ["none", "randaugment", "trivialaugment"]
QUICK = ["--model", "cnn", "--steps", 4, "--batch-size", 16]


def invoke(*arguments, env=None):
    """A command in this process; errors are raised."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=env, catch_exceptions=False)


def last(done):
    """The JSON that a command prints; its text is on the standard error output."""
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)
