"""MkDocs' hook: pages made from what the code has: commands, keys, cards of bundles, benchmarks, changes."""

import re
from pathlib import Path
from typing import Any

from command_pages import commands_page
from key_pages import keys_page
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
LINKED_CARD = re.compile(r"\.\./\.\./(\w+)/docs/README\.md")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages that are made, before MkDocs looks at any."""
    for path, text in made_pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that loads something from another machine when it is read."""
    loaded = FETCHED.search(output)
    if loaded:
        raise PluginError(f"{page.file.src_uri}: loads {loaded[0]}. Put the file into docs/.")
    return output


def made_pages() -> dict[str, str]:
    """Path in the site's sources -> its Markdown."""
    cards = {
        f"reference/cards/{card.parents[1].name}.md": _card(card) for card in ROOT.glob("bundles/*/docs/README.md")
    }
    return {
        "reference/commands.md": commands_page(),
        "reference/keys.md": keys_page(),
        "reference/benchmarks.md": (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8"),
        "reference/changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        **cards,
    }


def _card(path: Path) -> str:
    """The card of a bundle; links to other cards lead to their pages."""
    return LINKED_CARD.sub(r"\1.md", path.read_text(encoding="utf-8"))
