"""The `augtree` command: an error that augtree raises on purpose is one line and exit code 2."""

from __future__ import annotations

import io
import sys

from augtree.errors import AugtreeError, need


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no such letter gets a question mark
    try:
        need("typer", "cli")
        from augtree.cli import app

        app()
    except AugtreeError as error:
        print(f"augtree: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
