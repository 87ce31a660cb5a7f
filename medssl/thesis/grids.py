"""The trainings of a table as a file of grids, as `medssl sweep` reads it.

    python -m medssl.thesis.grids benchmarks/thesis

writes those of all tables and figures whose methods are there, at full size, as they lie in the repository.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from medssl.core.files import write_text_atomically
from medssl.thesis.contents import read_thesis
from medssl.thesis.plan import Plan, make_plan

REPOSITORY_DATA = Path("data")


def grid_content(plan: Plan, bundle_of: Callable[[str], Path], overlays: tuple[str, ...] = ()) -> dict[str, Any]:
    """The file's content: a row for each method, a grid for each data set with its number of labels.

    bundle_of: name -> folder of a bundle.
    """
    rows: dict[str, Any] = {}
    grids: dict[str, Any] = {}
    for cell in plan.cells:
        if cell.method is None or cell.place is None or not cell.is_registered:
            continue
        bundle = str(bundle_of(cell.method.bundle))
        rows[cell.method.name] = {"bundle": bundle, "overlays": list(overlays), "keys": cell.method.keys}
        place = cell.place
        keys = {"dataset_name": place.dataset.known_as, "dataset_dir": str(plan.data / place.dataset.folder)}
        new = {"labelled": [place.labelled], "seeds": list(plan.seeds), "rows": [], "keys": {**keys, **place.keys}}
        grid = grids.setdefault(place.title, new)
        if cell.method.name not in grid["rows"]:
            grid["rows"].append(cell.method.name)
    return {"rows": rows, "grids": grids}


def grid_text(content: dict[str, Any]) -> str:
    """The content as JSON, a row or a grid a line."""
    parts = []
    for title, members in content.items():
        lines = [f"        {json.dumps(name)}: {json.dumps(value)}" for name, value in members.items()]
        parts.append(f'    "{title}": {{\n' + ",\n".join(lines) + "\n    }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def repository_grids() -> dict[str, str]:
    """File name -> text of every grid that lies in benchmarks/thesis: full size, data in data/, bundles in bundles/."""
    thesis = read_thesis()
    texts = {}
    for number, entry in thesis.entries.items():
        plan = make_plan(thesis, entry, REPOSITORY_DATA, without_data=True)
        content = grid_content(plan, lambda name: Path("bundles") / name)
        if content["rows"]:
            texts[f"{number}.json"] = grid_text(content)
    return texts


def write_repository_grids(folder: Path) -> list[Path]:
    """Write the grids of all entries into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, text in repository_grids().items():
        write_text_atomically(folder / name, text)
        files.append(folder / name)
    return files


if __name__ == "__main__":
    for file in write_repository_grids(Path(sys.argv[1])):
        print(file)
