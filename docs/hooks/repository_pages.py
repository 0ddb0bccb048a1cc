"""Makes the site from files that are read on a code host too.

README.md is the home page, CONTRIBUTING.md and CHANGELOG.md are pages. Links between the files of the repository
become links of the site; what they lead to outside `docs/` becomes a part of it: code as a page, a folder as a list,
other files as they are.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}
"""Files outside `docs/` that are pages of the site."""
SOURCES = {page: source for source, page in PAGES.items()}
COPIES = "repository"
"""The folder of the site with everything else that is linked to."""
LANGUAGES = {".py": "python", ".c": "c"}
HIDDEN = "---\nsearch:\n  exclude: true\n---\n\n"
LINK = re.compile(r"""(?<=\]\()[^)\s]+(?=\))|(?<=\bsrc=")[^"]+|(?<=\bsrcset=")[^"]+""")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside `docs/`, and what any page links to."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    linked = {
        target
        for file in files.documentation_pages()
        for link in links(file.content_string)
        if (target := repository_path(link, file.src_uri)) and not is_page(target)
    }
    for target in sorted(linked):
        if (ROOT / target).exists():  # of others mkdocs says that they lead nowhere
            add(files, config, target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Turn links between files of the repository into links of the site."""
    here = page.file.src_uri

    def in_site(link: re.Match[str]) -> str:
        target = repository_path(link[0], here)
        if target is None:
            return link[0]
        fragment = urlsplit(link[0]).fragment
        return relpath(site_uri(target), PurePosixPath(here).parent) + (f"#{fragment}" if fragment else "")

    return "".join(LINK.sub(in_site, text) for text in without_code(markdown))


def without_code(markdown: str) -> list[str]:
    """The text in pieces: every second one is code."""
    return CODE.split(markdown)


def links(markdown: str) -> list[str]:
    """The targets of all links in a text."""
    return [link for text in without_code(markdown)[::2] for link in LINK.findall(text)]


def repository_path(link: str, page: str) -> str | None:
    """The path of the file that a link on a page leads to, from the root of the repository; None for other links."""
    parts = urlsplit(link)
    if parts.scheme or not parts.path or page.startswith(("api/", f"{COPIES}/")):
        return None
    return normpath((PurePosixPath(SOURCES.get(page, f"docs/{page}")).parent / parts.path).as_posix())


def is_page(path: str) -> bool:
    """Whether a file of the repository is a page, or a picture of one, by itself."""
    return path.startswith("docs/") or path in PAGES


def site_uri(path: str) -> str:
    """The place of a file of the repository in the sources of the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in PAGES:
        return PAGES[path]
    if (ROOT / path).is_dir():
        return f"{COPIES}/{path}/index.md"
    return f"{COPIES}/{path}{'.md' if Path(path).suffix in LANGUAGES else ''}"


def add(files: Files, config: MkDocsConfig, path: str) -> None:
    """Add a file or a folder of the repository to the site."""
    place, uri = ROOT / path, site_uri(path)
    if uri in files.src_uris:
        return
    if place.is_dir():
        inside = sorted(f"{path}/{each.name}" for each in place.iterdir() if not each.name.startswith((".", "__")))
        for each in inside:
            add(files, config, each)
        rows = [f"- [{Path(each).name}]({relpath(site_uri(each), f'{COPIES}/{path}')})" for each in inside]
        files.append(File.generated(config, uri, content=f"{HIDDEN}# {path}\n\n" + "\n".join(rows) + "\n"))
    elif place.suffix in LANGUAGES:
        code = f"{HIDDEN}# {path}\n\n~~~~~ {LANGUAGES[place.suffix]}\n{place.read_text()}~~~~~\n"
        files.append(File.generated(config, uri, content=code))
    else:
        files.append(File.generated(config, uri, abs_src_path=str(place)))
