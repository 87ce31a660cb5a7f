"""The same cases by several predictors, compared with the first of them: a row for each, and a summary of all."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from medssl.core.progress import tracked
from medssl.inference.evaluation import Evaluation
from medssl.inference.predictor import Prediction, Predictor
from medssl.metrics import dice
from medssl.metrics.catalogue import CASE_SECONDS, DICE, PAVPU, SECONDS, metric_names

COMPARED = metric_names((DICE, PAVPU))
SCORES = (*COMPARED, *(f"{score}_difference" for score in COMPARED), "entropy_correlation", CASE_SECONDS.name)
ComparedCase = dict[str, Any]


def case_rows(kind: str, sides: dict[str, Predictor], case: dict[str, Any], folder: str) -> list[ComparedCase]:
    """The case's row of each of `sides`, compared with the first; `kind` says what they are, and names their column.

    Dice is the mean over the structures; the correlation is that of the voxels' entropies. folder: of the evaluation.
    """
    first: tuple[Prediction, ComparedCase] | None = None
    rows = []
    for name, predictor in tracked(sides.items(), f"{kind}s", f"{kind}s"):
        prediction, row = _scored(predictor, case, folder)
        first = first or (prediction, row)
        row |= {f"{score}_difference": row[score] - first[1][score] for score in COMPARED}
        row["entropy_correlation"] = correlation(prediction.entropy, first[0].entropy)
        rows.append({"case": case["id"], kind: name, **row})
    print(f"{kind}s: {case['id']}", flush=True)
    return rows


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
    scores = (DICE.label, "differs (most)", PAVPU.label, "differs (most)", "entropy, r (least)", SECONDS.name)
    table.add_column(kind, min_width=10)
    for title in ("cases", *scores):
        table.add_column(title, overflow="fold")
    for side in dict.fromkeys(row[kind] for row in rows):
        own = [row for row in rows if row[kind] == side]
        mean, cells = mean_scores(kind, rows, side), [side, str(len(own))]
        for score in COMPARED:
            most = max(abs(row[f"{score}_difference"]) for row in own)
            cells += [f"{mean[score]:.4f}", f"{mean[f'{score}_difference']:+.4f} ({most:.4f})"]
        least = min(row["entropy_correlation"] for row in own)
        table.add_row(*cells, f"{mean['entropy_correlation']:.4f} ({least:.4f})", f"{mean[CASE_SECONDS.name]:.1f}")
    return table


def _scored(predictor: Predictor, case: dict[str, Any], folder: str) -> tuple[Prediction, ComparedCase]:
    [(prediction, seconds)] = predictor.running(case, (max(1, predictor.inferer.samples),))  # 0 samples is one pass
    evaluation = Evaluation(predictor, [case], folder)
    label = evaluation.scoring.label_of(case, prediction)
    overlaps = [dice(prediction.segmentation == index, label == index) for index in predictor.structures]
    pavpu = evaluation.scoring.uncertainty_scores(case, prediction, label)[PAVPU.name]
    scores = {DICE.name: float(np.mean(overlaps)), PAVPU.name: pavpu, CASE_SECONDS.name: seconds}
    return prediction, scores
