"""Grids of trainings: every combination of rows, numbers of labels and seeds, from a command or from a file."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fire.parser

from medssl.core.errors import ConfigError
from medssl.security.gate import require_harmless_choices
from medssl.sweep.training import SweepRow, Training, train_all


@dataclass(frozen=True)
class Sweep:
    """Every combination of rows, numbers of labels and seeds, below `output`; keys go to every training.

    A seed is finished for all rows before the next one begins, so that an unfinished sweep compares what it has.
    """

    rows: Sequence[SweepRow]
    output: Path
    labelled: Sequence[int]
    seeds: Sequence[int]
    keys: tuple[tuple[str, str], ...] = ()

    def trainings(self) -> list[Training]:
        """The cells of the grid, in the order they are run."""
        cells = itertools.product(self.seeds, self.labelled, self.rows)
        return [Training.of(row, self.output, labelled, seed, self.keys) for seed, labelled, row in cells]

    def run(self, jobs: int = 1, trust: bool = False) -> list[Path]:
        """Train the grid as `train_all` does."""
        return train_all(self.trainings(), jobs, trust)


def sweep_of_bundle(
    bundle: Path,
    output: Path,
    labelled: Sequence[int],
    seeds: Sequence[int],
    overlays: Sequence[str] = (),
    variants: Sequence[str] = (),
    vary: Sequence[str] = (),
    keys: tuple[tuple[str, str], ...] = (),
) -> Sweep:
    """The grid of one bundle; each of `variants` is a row of its own, and so is each value of a `vary` "key=a,b,c".

    Keys are varied one at a time, all others as they are, as the thesis searches its coefficients.
    """
    chosen_by = _key_of_variants(bundle) if variants else ""
    rows = [SweepRow(variant, bundle, tuple(overlays), ((chosen_by, variant),)) for variant in variants]
    for text in vary:
        key, _, values = text.partition("=")
        if not key or not values:
            raise ConfigError(f"'{text}': expected a key and its values, e.g. kl_weight=0.0005,0.005,0.05.")
        rows += [SweepRow(f"{key}_{value}", bundle, tuple(overlays), ((key, value),)) for value in values.split(",")]
    return Sweep(rows or [SweepRow(bundle.name, bundle, tuple(overlays))], output, labelled, seeds, keys)


def _key_of_variants(bundle: Path) -> str:
    """The key that chooses among what a bundle can train: `method` or `variant`; ConfigError if it has neither."""
    config = bundle / "configs" / "train.json"
    keys = json.loads(config.read_text()) if config.is_file() else {}
    known = [key for key in ("method", "variant") if key in keys]
    if not known:
        raise ConfigError(
            f"{bundle}: trains one thing, it has no variants. Leave --variants out, or use another bundle."
        )
    return known[0]


def sweeps_of_file(
    file: Path, output: Path, keys: tuple[tuple[str, str], ...] = (), trust: bool = False
) -> list[Sweep]:
    """The grids in a JSON file, each below its name in `output`.

    The file has `rows` (name to `bundle`, `overlays`, `keys`), `keys` for every training, and `grids` (name to
    `labelled`, `seeds`, the names of its `rows`, `keys`); a row's keys hold against all others. `keys` are added to the
    file's own. Raises ConfigError naming the file if it is not like that, or could do harm and the user trusts it not.
    """
    try:
        content = json.loads(file.read_text())
        _require_harmless_grids(file, content, trust)
        rows = {
            name: SweepRow(name, Path(row["bundle"]), tuple(row.get("overlays", ())), _pairs(row.get("keys", {})))
            for name, row in content["rows"].items()
        }
        return [
            Sweep(
                [rows[name] for name in grid["rows"]],
                output / title,
                grid["labelled"],
                grid["seeds"],
                _pairs(content.get("keys", {})) + _pairs(grid.get("keys", {})) + keys,
            )
            for title, grid in content["grids"].items()
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{file}: not a file of grids ({type(error).__name__}: {error}). Expected JSON with rows and grids."
        ) from error


def _require_harmless_grids(file: Path, content: dict[str, Any], trust: bool) -> None:
    """ConfigError for keys that could do harm, as the command line reads them, and for overlays out of the bundle."""
    for part in (content, *content["rows"].values(), *content["grids"].values()):
        choices = {key: fire.parser.DefaultParseValue(text) for key, text in _pairs(part.get("keys", {}))}
        require_harmless_choices(file, choices, trust)
        for overlay in part.get("overlays", ()):
            if not trust and Path(overlay).name != overlay:
                raise ConfigError(
                    f"{file}: overlay '{overlay}' lies out of the bundle. Expected a name such as bench. "
                    "--trust opens it all the same: then it can run any code."
                )


def _pairs(keys: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in keys.items())
