"""Imports go one way, as docs/architecture.md has it, also inside functions and for type hints; none go in a circle."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("medssl", "natural_image_ext")
ROW = re.compile(r"^\| (?P<names>`[^|]+`) \| [^|]+ \| (?P<rule>[^|]+) \|$", re.MULTILINE)
DOTTED = re.compile(rf"\b(?:{'|'.join(PACKAGES)})(?:\.\w+)+")
DYNAMIC = {"import_module", "__import__", "find_spec"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def layer_of(module: str) -> str:
    """`data` of medssl.data.split; `medssl` of medssl itself; natural_image_ext is one layer."""
    package, *rest = module.split(".")
    return rest[0] if package == "medssl" and rest else package


def allowed_imports(text: str) -> dict[str, set[str]]:
    """Layer -> layers it may import, itself among them, as the table says."""
    rows = [(re.findall(r"`(\w+)`", row["names"]), row["rule"].strip()) for row in ROW.finditer(text)]
    allowed: dict[str, set[str]] = {}
    for number, (names, rule) in enumerate(rows):
        end = {"nothing": 0, "all above": number}.get(rule)
        if end is None:
            last = re.fullmatch(r"up to `(\w+)`", rule)[1]
            end = 1 + next(index for index, row in enumerate(rows) if last in row[0])
        above = {name for row in rows[:end] for name in row[0]}
        allowed |= {name: above | {name} for name in names}
    return allowed


def existing(dotted: str) -> str | None:
    """The module that a dotted name is, or is in; None for a name of other packages."""
    parts = dotted.split(".")
    candidates = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((name for name in candidates if name in MODULES), None)


def import_names(tree: ast.AST, module: str) -> Iterator[str]:
    """Dotted names in all import statements and in import_module("..."), wherever they are."""
    is_package = module in MODULES and MODULES[module].name == "__init__.py"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in DYNAMIC:
                yield str(node.args[0].value)


def written_names(tree: ast.AST) -> Iterator[str]:
    """Dotted names in texts that MONAI or importlib would follow: a whole text, its start (f-strings), or `$...`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if text.startswith("$"):
                yield from DOTTED.findall(text)
            elif DOTTED.fullmatch(text.partition(":")[0].rstrip(".")):
                yield text.partition(":")[0].rstrip(".")


def imports_of(source: str, module: str, texts: bool = False) -> set[str]:
    """Modules of our packages that a source imports; with `texts` also those it names for others to import."""
    tree = ast.parse(source)
    names = [*import_names(tree, module), *(written_names(tree) if texts else ())]
    return {found for name in names if (found := existing(name)) is not None} - {module}


LISTS = {"medssl.security.listed_names"}  # what a bundle may name, in texts that are compared and never followed


@pytest.fixture(scope="module")
def allowed() -> dict[str, set[str]]:
    return allowed_imports((ROOT / "docs" / "architecture.md").read_text())


def test_table_has_every_layer_there_is_and_no_other(allowed):
    assert set(allowed) == {layer_of(module) for module in MODULES}


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_only_layers_that_lie_above_its_own(allowed, module):
    wrong = {
        imported
        for imported in imports_of(MODULES[module].read_text(), module, texts=module not in LISTS)
        if layer_of(imported) not in allowed[layer_of(module)]
    }
    assert not wrong, f"{module} ({layer_of(module)}) imports {', '.join(sorted(wrong))}; see docs/architecture.md"


def test_no_modules_import_each_other_in_a_circle():
    graph = {module: imports_of(path.read_text(), module) for module, path in MODULES.items()}
    assert circles(graph) == []


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that reach each other, sorted."""
    reached = {module: _reachable(graph, module) for module in graph}
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in graph
        if module in reached[module]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen, waiting = set[str](), [*graph[start]]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph[module]
    return seen


@pytest.mark.parametrize(
    "source",
    [
        "from medssl.data.split import Split",
        "from medssl.data import split",
        "import medssl.data.split as split",
        "from ..data.split import Split",
        "def f():\n    from medssl.data import split",
        "if TYPE_CHECKING:\n    from medssl.data.split import Split",
        "importlib.import_module('medssl.data.split')",
        "find_spec('medssl.data.split')",
    ],
)
def test_checker_sees_every_form_of_import(source):
    assert imports_of(source, "medssl.core.errors") == {"medssl.data.split"}


@pytest.mark.parametrize(
    "source",
    [
        "{'_target_': 'medssl.data.split.Split'}",
        "'medssl.data.split:Split'",
        "'$import medssl.data.split as split'",
        "'$@x + medssl.data.split.f(1)'",
        "f'medssl.data.split.{name}'",
    ],
)
def test_checker_sees_names_in_texts(source):
    assert imports_of(source, "medssl.core.errors", texts=True) == {"medssl.data.split"}
    assert imports_of(source, "medssl.core.errors") == set()


def test_checker_leaves_other_packages_and_plain_sentences_alone():
    source = "import monai.data\nfrom collections import abc\nraise E('not a subclass of medssl.methods.Method.')"
    assert imports_of(source, "medssl.core.errors", texts=True) == set()


def test_checker_finds_a_circle_of_three():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}
    assert circles(graph) == [["a", "b", "c"]]


def test_rules_of_the_table_are_understood():
    table = "| `a` | x | nothing |\n| `b`, `c` | x | all above |\n| `d` | x | all above |\n| `e` | x | up to `b` |\n"
    assert allowed_imports(table) == {
        **{"a": {"a"}, "b": {"a", "b"}, "c": {"a", "c"}},
        **{"d": {"a", "b", "c", "d"}, "e": {"a", "b", "c", "e"}},
    }
