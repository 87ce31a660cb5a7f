"""Tables on disk: one way to write a CSV file."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medssl.core.files import write_atomically


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows as CSV, all of them or none; numbers get six decimals."""

    def write(partial: Path) -> None:
        with partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            for row in rows:
                writer.writerow({k: f"{v:.6f}" if isinstance(v, float) else v for k, v in row.items()})

    write_atomically(path, write)
