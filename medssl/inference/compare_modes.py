"""Is a mode of inference the same as `reference`? RUN/modes.csv: the test cases by each, and what chance alone does."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from medssl.data.cases import read_split
from medssl.engine.distributed import local_device
from medssl.engine.run_folder import read_facts
from medssl.errors import ConfigError
from medssl.inference.evaluation import Evaluation, evaluation_folder, write_rows
from medssl.inference.predictor import Prediction, Predictor, load_predictor
from medssl.metrics import dice
from medssl.run_files import MODES

COLUMNS = ("case", "mode", "dice", "pavpu", "dice_difference", "pavpu_difference", "entropy_correlation", "seconds")
AGAIN = "reference, other seed"
Row = dict[str, Any]


def write_mode_comparison(
    run: str | Path, samples: int | None = None, stride: Sequence[int] | None = None, limit: int | None = None
) -> tuple[Path, list[Row]]:
    """Write modes.csv into the folder of a finished run, and return its path and rows.

    A row for each test case and each of `reference`, `reference` with another seed (how much chance does) and `fast`:
    its mean Dice over the structures and PAvPU, how far both are from the first one's, and the correlation of the
    voxels' entropies with the first one's. `reference` is computed by `exact`: the same numbers in half of the time.
    limit: only the first cases. Raises ConfigError without test cases.
    """
    cases = read_split(Path(run) / "split.json").role("test")[:limit]
    if not cases:
        raise ConfigError(f"{run}: no test cases to predict. Train with --test above 0, and give --cases above 0.")
    settings = {"samples": samples, "stride": stride, "device": str(local_device())}
    settings["paper_crop"] = read_facts(run)["paper_crop"]
    reference, fast = (load_predictor(run, mode=mode, **settings) for mode in ("exact", "fast"))
    again = load_predictor(run, mode="exact", seed=reference.seed + 1, **settings)
    sides = {"reference": reference, AGAIN: again, "fast": fast}
    rows = [row for case in cases for row in case_rows(sides, case, evaluation_folder(run))]
    path = Path(run) / MODES
    write_rows(path, COLUMNS, rows)
    return path, rows


def case_rows(sides: dict[str, Predictor], case: dict[str, Any], folder: str) -> Iterator[Row]:
    """The case's row of each of `sides`, compared with the first of them."""
    first: tuple[Prediction, Row] | None = None
    for name, predictor in sides.items():
        prediction, row = _scored(predictor, case, folder)
        first = first or (prediction, row)
        row |= {f"{score}_difference": row[score] - first[1][score] for score in ("dice", "pavpu")}
        row["entropy_correlation"] = correlation(prediction.entropy, first[0].entropy)
        yield {"case": case["id"], "mode": name, **row}
    print(f"modes: {case['id']}", flush=True)


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation of two maps over their voxels; 1 where they are the same, constant maps too."""
    if np.array_equal(first, second):
        return 1.0
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def summary_table(rows: Sequence[Row]) -> Table:
    """A line for each mode: mean Dice and PAvPU, difference of the means (largest of a case), correlation (least)."""
    table = Table(title=f"{len({row['case'] for row in rows})} cases; differences from the first line")
    for title in ("mode", "Dice", "difference (most)", "PAvPU", "difference (most)", "entropy, r (least)", "seconds"):
        table.add_column(title)
    for mode in dict.fromkeys(row["mode"] for row in rows):
        column = {name: np.array([row[name] for row in rows if row["mode"] == mode]) for name in COLUMNS[2:]}
        cells = [mode]
        for score in ("dice", "pavpu"):
            apart = column[f"{score}_difference"]
            cells += [f"{column[score].mean():.4f}", f"{apart.mean():+.4f} ({np.abs(apart).max():.4f})"]
        together = column["entropy_correlation"]
        table.add_row(*cells, f"{together.mean():.4f} ({together.min():.4f})", f"{column['seconds'].mean():.1f}")
    return table


def _scored(predictor: Predictor, case: dict[str, Any], folder: str) -> tuple[Prediction, Row]:
    [(prediction, seconds)] = predictor.running(case, (predictor.inferer.samples,))
    evaluation = Evaluation(predictor, [case], folder)
    label = evaluation.scoring.label_of(case, prediction)
    overlaps = [dice(prediction.segmentation == index, label == index) for index in predictor.structures]
    pavpu = evaluation.scoring.uncertainty_scores(prediction, label)["pavpu"]
    return prediction, {"dice": float(np.mean(overlaps)), "pavpu": pavpu, "seconds": seconds}
