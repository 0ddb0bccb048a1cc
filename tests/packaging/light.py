"""Run by the interpreter of a fresh environment with the wheel, torch and numpy alone: a policy is applied."""

from importlib.metadata import distributions, version
from pathlib import Path

import torch

import augtree as at

if __name__ == "__main__":
    installed = {found.metadata["Name"].lower() for found in distributions()}
    assert not installed & {"pillow", "scikit-learn", "scipy", "typer", "torch-geometric"}, installed
    assert "site-packages" in at.__file__, at.__file__
    assert at.__version__ == version("augtree")
    assert Path(at.__file__).with_name("py.typed").exists()
    policy = at.load(Path(__file__).parents[2] / "examples" / "policy.json")
    pictures = torch.arange(64, dtype=torch.uint8).view(1, 1, 8, 8).repeat(64, 1, 1, 1)
    augmented = policy(pictures, seed=0)
    changed = (augmented != pictures).flatten(1).any(1).sum().item()
    assert augmented.shape == pictures.shape
    assert 32 < changed < 64, changed
    print(f"augtree {at.__version__}: {changed} of 64 pictures changed, with torch and numpy alone")
