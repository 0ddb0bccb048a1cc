"""Check what is in the wheel and the sdist in `dist`: all that git has of them, and nothing else."""

import subprocess
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "docs", "benchmarks", "examples")
FILES = {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"}
FILES |= {"constraints.txt", "mkdocs.yml"}


def tracked(*places: str) -> set[str]:
    """The files of the repository."""
    names = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return set(names.splitlines())


def same(what: str, found: set[str], expected: set[str]) -> None:
    """Stop where two sets of files differ."""
    if found != expected:
        raise SystemExit(f"{what} lacks {sorted(expected - found)} and has besides {sorted(found - expected)}")


if __name__ == "__main__":
    (wheel,), (sdist,) = (ROOT / "dist").glob("*.whl"), (ROOT / "dist").glob("*.tar.gz")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    same("the wheel", names, {name.removeprefix("src/") for name in tracked("src")})
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    made = {"PKG-INFO", ".gitignore", "pyproject.toml"}
    same("the sdist", names - made, tracked(*FOLDERS) | FILES)
    print(f"{wheel.name} and {sdist.name} hold what they should")
