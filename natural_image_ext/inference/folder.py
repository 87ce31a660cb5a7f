"""What predictions of a folder have in common: one table, and failures that stop nothing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from medssl.core.csv_files import write_rows
from medssl.core.errors import MedsslError
from medssl.core.files import write_text_atomically


@dataclass
class FolderPredictions:
    """predictions.csv in `output_dir`, and failures.json for what cannot be read."""

    output_dir: str | Path
    failures: dict[str, str] = field(default_factory=dict, kw_only=True)
    noun: ClassVar[str] = "pictures"
    verb: ClassVar[str] = "predicted"

    def write_table(self, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
        """Write both files and say how it went."""
        folder = Path(self.output_dir)
        write_rows(folder / "predictions.csv", columns, rows)
        if self.failures or (folder / "failures.json").exists():
            write_text_atomically(folder / "failures.json", json.dumps(self.failures, indent=1))
        print(f"{len(rows)} {self.verb}, {len(self.failures)} failed; results in {folder}", flush=True)

    def raise_failures(self) -> None:
        """MedsslError that names what failed, if anything did."""
        if self.failures:
            raise MedsslError(f"{len(self.failures)} {self.noun} failed:\n" + "\n".join(self.failures.values()))
