"""Hooks of mkdocs: pages that do not lie in docs/, and links out of it.

The site has pages of the repository's root, of notebooks, and, from the command itself, of each
command.
Links to other files of the repository lead to its address.
"""

import html
import json
import posixpath
import re
import subprocess
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

# The pages of the site that are other files of the repository.
PAGES = {
    "index.md": "README.md",
    "guides.md": "docs/README.md",
    "policies/changelog.md": "CHANGELOG.md",
    "policies/contributing.md": "CONTRIBUTING.md",
    "policies/security.md": ".github/SECURITY.md",
    "policies/conduct.md": ".github/CODE_OF_CONDUCT.md",
}
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
PAGES |= {f"tutorials/{p.stem}.md": f"docs/tutorials/{p.name}" for p in NOTEBOOKS}
COMMANDS: dict[str, str] = {}
BUTTON = re.compile(r"^\*\*\[(.*\))\*\*$", re.MULTILINE)  # a line that is a link in bold
# In searches, pages that record, and those that list all there is, come behind guides.
RECORDS = (
    "decisions/",
    "policies/",
    "compatibility.md",
    "measurements.md",
    "benchmarks.md",
    "fuzzing.md",
)
LISTS = ("reference/", "guides.md", "order.md", "exact-resume-in-frameworks.md")
SECTIONS: list[tuple[str, list[str]]] = []  # of the navigation, each with its pages
SUMMARIES: dict[str, str] = {}  # these three of each page, for llms.txt
TITLES: dict[str, str] = {}
ADDRESSES: dict[str, str] = {}
# What tools/api.py wrote for the code host; here mkdocstrings writes it.
GENERATED = re.compile(r"<!-- (::: .*?)\s*-->\n.*?<!-- /::: -->", re.DOTALL)
LINK = re.compile(r"(\]\()([^()\s]+)(\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Makes the pages of the command. Lists the pages of folders that the navigation names."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["go", "run", "./tools/site/reference", folder], cwd=ROOT, check=True)
        for path in Path(folder).iterdir():
            COMMANDS["reference/command/" + path.name] = path.read_text()
    for section in config.nav or []:
        for items in section.values():
            for item in items:
                if isinstance(item, dict):
                    for title, folder in item.items():
                        names = [folder + p.name for p in (ROOT / "docs" / folder).glob("*.md")]
                        names += [name for name in COMMANDS if name.startswith(folder)]
                        names.sort(key=lambda name: ("README" not in name, name))
                        item[title] = names or folder
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not in docs/."""
    home = files.get_file_from_path("README.md")
    if home is not None:
        files.remove(home)
    for name, path in PAGES.items():
        source = ROOT / path
        text = notebook_page(source) if source.suffix == ".ipynb" else source.read_text()
        files.append(File.generated(config, name, content=text))
    for name, text in COMMANDS.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page: they hold in the repository, and must hold on the site."""
    name = page.file.src_uri
    markdown = GENERATED.sub(r"\1", markdown)
    source = PAGES.get(name, "docs/" + name)
    here = {path: uri for uri, path in PAGES.items()}

    def rewrite(match: re.Match[str]) -> str:
        path, mark, anchor = match[2].partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        on_site = target in here or target.startswith("docs/")
        uri = here.get(target) or target.removeprefix("docs/")
        file = files.get_file_from_path(uri) if on_site else None
        if file is None or file.inclusion.is_excluded():
            if not (ROOT / target).exists():
                return match[0]  # mkdocs reports it
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            base = f"{config.extra['repository']}/{kind}/main/{target}"
            return f"{match[1]}{base}{mark}{anchor}{match[3]}"
        link = posixpath.relpath(uri, posixpath.dirname(name) or ".")
        return f"{match[1]}{link}{mark}{anchor}{match[3]}"

    SUMMARIES[name], TITLES[name], ADDRESSES[name] = summary(markdown), page.title or "", page.url
    page.meta["title"] = page.title  # the theme calls the first page by the site's name
    if name.startswith(RECORDS + LISTS):
        page.meta["search"] = {"boost": 0.01 if name.startswith(RECORDS) else 0.1}
    markdown = BUTTON.sub(r"[\1{ .md-button .md-button--primary }", markdown)
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(rewrite, part) for part in parts)


def summary(markdown: str) -> str:
    """Returns the first sentence of a page's first paragraph, without its marks."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", markdown, flags=re.DOTALL | re.MULTILINE)
    plain = (p for p in text.split("\n\n") if re.match(r"\s*[\w`*\[]", p))
    line = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", " ".join(next(plain, "").split()))
    return re.split(r"(?<=[.!?])\s", line.replace("**", ""))[0].rstrip(":")


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Notes the pages of the navigation, in its order."""
    SECTIONS.clear()
    for item in nav.items:
        pages = [page for page in nav.pages if item in (page, *page.ancestors)]
        SECTIONS.append((item.title or "", [page.file.src_uri for page in pages]))
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Writes llms.txt: each page of the navigation with its title, address and first sentence."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for title, names in SECTIONS:
        lines += ["", f"## {title}", ""]
        for name in names:
            about = f": {SUMMARIES[name]}" if SUMMARIES[name] else ""
            lines.append(f"- [{TITLES[name]}]({config.site_url or ''}{ADDRESSES[name]}){about}")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n")


def notebook_page(path: Path) -> str:
    """Returns a notebook as Markdown, with the outputs that it holds."""
    out = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        out.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            text = "".join(output.get("text") or data.get("text/plain", "")).strip("\n")
            if "image/png" in data:
                alt = html.escape(output["metadata"]["image/png"]["alt"])
                picture = "".join(data["image/png"]).strip()
                out.append(f'<p><img alt="{alt}" src="data:image/png;base64,{picture}"></p>')
            elif "text/html" in data:
                out.append("".join(data["text/html"]))
            elif text:
                out.append(f"```text\n{text}\n```")
    out.append(f'To run this page yourself, download <a href="../{path.name}">the notebook</a>.')
    return "\n\n".join(out) + "\n"
