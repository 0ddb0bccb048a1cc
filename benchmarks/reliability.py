"""Faults, counted: what becomes of a run that is killed, whose files are damaged or whose disk fails.

    python benchmarks/reliability.py damage --offsets 200 --bits 1000   # a minute
    python benchmarks/reliability.py disk                               # ten minutes; needs a C compiler
    python benchmarks/reliability.py kills --help                       # and so on for each command

Everything runs on the CPU, with one thread, on tiny runs. Figures are kept in results/reliability-COMMAND.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module

import torch

COMMANDS = ("damage", "disk", "fuzz", "kills", "memory", "pieces", "ray-kills")
"""Each is a module beside this one, `reliability_COMMAND`, with `add_options` and `main`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    command = parser.parse_args(sys.argv[1:2]).command
    module = import_module(f"reliability_{command.replace('-', '_')}")
    options = argparse.ArgumentParser(prog=f"reliability.py {command}", description=module.__doc__)
    module.add_options(options)
    torch.set_num_threads(1)
    found = module.main(options.parse_args(sys.argv[2:]))
    print(json.dumps(found, indent=1))
    if not found.get("holds", True):
        raise SystemExit(f"{command}: a guarantee does not hold, see above")


if __name__ == "__main__":
    main()
