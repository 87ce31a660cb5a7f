"""The same cases by several predictors, compared with the first of them: a row for each, and a summary of all."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from medssl.inference.evaluation import Evaluation
from medssl.inference.predictor import Prediction, Predictor
from medssl.metrics import dice

SCORES = ("dice", "pavpu", "dice_difference", "pavpu_difference", "entropy_correlation", "seconds")
ComparedCase = dict[str, Any]


def case_rows(kind: str, sides: dict[str, Predictor], case: dict[str, Any], folder: str) -> Iterator[ComparedCase]:
    """The case's row of each of `sides`, compared with the first; `kind` says what they are, and names their column.

    Dice is the mean over the structures; the correlation is that of the voxels' entropies. folder: of the evaluation.
    """
    first: tuple[Prediction, ComparedCase] | None = None
    for name, predictor in sides.items():
        prediction, row = _scored(predictor, case, folder)
        first = first or (prediction, row)
        row |= {f"{score}_difference": row[score] - first[1][score] for score in ("dice", "pavpu")}
        row["entropy_correlation"] = correlation(prediction.entropy, first[0].entropy)
        yield {"case": case["id"], kind: name, **row}
    print(f"{kind}s: {case['id']}", flush=True)


def correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson's correlation of two maps over their voxels; 1 where they are the same, constant maps too."""
    if np.array_equal(first, second):
        return 1.0
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


def mean_scores(kind: str, rows: Sequence[ComparedCase], side: str) -> dict[str, float]:
    """Each of SCORES as its mean over the cases of one side."""
    return {score: float(np.mean([row[score] for row in rows if row[kind] == side])) for score in SCORES}


def summary_table(kind: str, rows: Sequence[ComparedCase]) -> Table:
    """A line for each side: mean Dice and PAvPU, difference of the means (largest of a case), correlation (least)."""
    table = Table(title="differences from the first line, of the same cases", box=box.SIMPLE)
    scores = ("Dice", "differs (most)", "PAvPU", "differs (most)", "entropy, r (least)", "s")
    table.add_column(kind, min_width=10)
    for title in ("cases", *scores):
        table.add_column(title, overflow="fold")
    for side in dict.fromkeys(row[kind] for row in rows):
        own = [row for row in rows if row[kind] == side]
        mean, cells = mean_scores(kind, rows, side), [side, str(len(own))]
        for score in ("dice", "pavpu"):
            most = max(abs(row[f"{score}_difference"]) for row in own)
            cells += [f"{mean[score]:.4f}", f"{mean[f'{score}_difference']:+.4f} ({most:.4f})"]
        least = min(row["entropy_correlation"] for row in own)
        table.add_row(*cells, f"{mean['entropy_correlation']:.4f} ({least:.4f})", f"{mean['seconds']:.1f}")
    return table


def _scored(predictor: Predictor, case: dict[str, Any], folder: str) -> tuple[Prediction, ComparedCase]:
    [(prediction, seconds)] = predictor.running(case, (predictor.inferer.samples,))
    evaluation = Evaluation(predictor, [case], folder)
    label = evaluation.scoring.label_of(case, prediction)
    overlaps = [dice(prediction.segmentation == index, label == index) for index in predictor.structures]
    pavpu = evaluation.scoring.uncertainty_scores(prediction, label)["pavpu"]
    return prediction, {"dice": float(np.mean(overlaps)), "pavpu": pavpu, "seconds": seconds}
