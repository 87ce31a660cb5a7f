"""What a trained network says of the cases that wait for a reviewer, and how good it really is there."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medssl.core.files import write_text_atomically
from medssl.data.split import read_split, require_scans
from medssl.inference.evaluation import Evaluation
from medssl.inference.outputs import describe
from medssl.inference.predictor import load_predictor
from medssl.metrics import dice
from medssl.review.strategies import order

POOL = "pool.json"
ORACLE = "oracle"


def score_pool(run: Path, trust: bool = False) -> list[dict[str, Any]]:
    """Records (`describe`) of the run's unlabelled cases with the true mean `dice` of each; kept in pool.json."""
    file = run / POOL
    if file.is_file():
        return json.loads(file.read_text())
    predictor = load_predictor(run, trust=trust)
    cases = read_split(run / "split.json").role("unlabelled")
    require_scans(run / "split.json", cases)
    truth = Evaluation(predictor, cases, run).scoring
    records = []
    for case in cases:
        prediction = predictor(case)
        label, segmentation = truth.label_of(case, prediction), prediction.segmentation
        overlaps = [dice(segmentation == number, label == number) for number in predictor.structures]
        records.append({**describe(prediction, predictor.structures), "dice": float(np.mean(overlaps))})
    write_text_atomically(file, json.dumps(records))
    return records


def offered(records: Sequence[dict[str, Any]], strategy: str, count: int, seed: int) -> list[str]:
    """The first `count` ids of the queue; the strategy "oracle" has the worst predictions first."""
    if strategy == ORACLE:
        worst_first = sorted(records, key=lambda record: (record["dice"], record["id"]))
        return [str(record["id"]) for record in worst_first[:count]]
    return order(records, strategy, seed)[:count]
