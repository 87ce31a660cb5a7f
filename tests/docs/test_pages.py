"""The pages of the site: their commands exist, and what the hook makes of the code is whole."""

import re

import pytest
from docs.parsed import wrong_in
from docs.readme import ROOT, block_commands, inline_commands
from docs.test_keys import generator

OF_THE_SITE = sorted((ROOT / "docs").rglob("*.md"))
CARDS = sorted(ROOT.glob("bundles/*/docs/README.md"))
PAGES = [*OF_THE_SITE, *CARDS, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
CHECKED = re.compile(r"medssl |python -m monai\.bundle run training ")
SHORTENED = re.compile(r"[…$]|\.\.\.|\b[A-Z]{2,}\b|\bCOMMAND\b")  # a command with a word to fill in, or a variable


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_the_page_have_options_keys_and_files_that_exist(page):
    text = page.read_text(encoding="utf-8")
    commands = [line for line in (*block_commands(text), *inline_commands(text)) if CHECKED.match(line)]
    wrong = {line: wrong_in(line, ROOT) for line in commands if not SHORTENED.search(line)}
    assert not {line: finding for line, finding in wrong.items() if finding}


def test_page_of_keys_has_a_row_for_each_key_of_each_bundle():
    from medssl.core.key_facts import key_facts

    page = generator("key_pages").keys_page()
    for fact in key_facts():
        assert f"| `{fact.name}` | {fact.meaning}" in page


def test_page_of_commands_has_the_help_and_the_example_of_each_command():
    from medssl.cli.tasks import EXAMPLES

    page = generator("command_pages").commands_page()
    for words, example in EXAMPLES.items():
        assert f"### medssl {words}\n" in page and example in page
        assert f"Usage: medssl {words} " in page


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in OF_THE_SITE]
    assert not [page for page in pages if page not in navigation and not page.startswith("generate/")]
