"""Tables on disk: one way to write a CSV file, and one to read it; another for tables that a user wrote."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medssl.core.errors import DataError
from medssl.core.files import write_atomically


def write_rows(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], line_end: str = "\r\n") -> None:
    """Write the rows as CSV, all of them or none; numbers get six decimals."""

    def write(partial: Path) -> None:
        with partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator=line_end)
            writer.writeheader()
            for row in rows:
                writer.writerow({k: f"{v:.6f}" if isinstance(v, float) else v for k, v in row.items()})

    write_atomically(path, write)


def read_rows(path: Path, needed: Sequence[str], way_out: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of a CSV file as text, each with the file and line it stands in; none where there is no file.

    Raises DataError, which ends with `way_out`, where one of the `needed` columns is missing.
    """
    if not path.is_file():
        return
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [column for column in needed if column not in (reader.fieldnames or ())]
        if missing:
            raise DataError(
                f"{path}, line 1: column {', '.join(missing)} missing, found {reader.fieldnames}. {way_out}"
            )
        for row in reader:
            yield row, f"{path}, line {reader.line_num}"


def read_cells(path: Path) -> list[list[str]]:
    """The lines of a CSV file as cells without blanks around them, the heading among them; empty lines are left out.

    For tables by hand or from a spreadsheet, whose columns are known by their place: a byte order mark is no part of
    the first cell.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [[cell.strip() for cell in line] for line in csv.reader(file) if any(line)]
