"""The `augtree` command: an error that augtree raises on purpose is one line and exit code 2."""

from __future__ import annotations

import sys

from augtree.errors import AugtreeError, need


def main() -> None:
    """Run the command line."""
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
