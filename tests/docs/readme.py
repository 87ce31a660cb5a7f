"""The commands of a Markdown file: those of its blocks of code, and those within its sentences and tables."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:medssl|make|pip|python|source|torchrun) [^`\n]+)`")


def block_commands(text: str) -> list[str]:
    """The commands of blocks of code without a language, a line each, without comments."""
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    bare = [re.sub(r"(^|\s+)#.*$", "", line) for line in lines]
    return [re.sub(r"\s+", " ", line).strip() for line in bare if line.strip()]


def inline_commands(text: str) -> list[str]:
    """The commands between single backticks."""
    return INLINE.findall(BLOCK.sub("", text))
