"""The `augtree` command: an error that augtree raises on purpose, or the disk's, is one line and exit code 2."""

from __future__ import annotations

import errno
import io
import sys

from augtree.errors import AugtreeError, lacks_memory, need, printable, shown


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
    except OSError as error:
        print(f"augtree: {in_one_line(error)}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        print(f"augtree: out of memory: {shown(str(error), 200)[1:-1]}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def in_one_line(error: OSError) -> str:
    """An error of the operating system: where, and what can be done."""
    place = "" if error.filename is None else f" ({printable(str(error.filename))})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk{place}; free some, then try again"
    return f"the system could not do it{place}: {error.strerror or error}"


if __name__ == "__main__":
    main()
