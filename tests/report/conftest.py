"""A small run folder with phantom-like scans, as a training and an evaluation would leave it."""

import csv
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest

from medssl.report import Run, load_run

SHAPE = (24, 20, 16)
AFFINE = np.diag([2.0, 2.0, 4.0, 1.0])
CASES = ("case_a", "case_b", "case_c", "case_d")
DICE = (0.9, 0.8, 0.0, 0.7)
ROW = {"jaccard": 0.7, "asd_mm": 1.0, "assd_mm": 1.1, "label_ml": 30.2, "predicted_ml": 29.1, "seconds": 2.5}


def per_case_rows() -> list[dict[str, Any]]:
    """One kidney per case, the third one missed."""
    return [
        {"case": case, "structure": "kidney", "dice": dice, "hd95_mm": "" if dice == 0 else 5 * (1 - dice)}
        | {"empty": "prediction" if dice == 0 else "", "mean_entropy_bits": 0.05 - 0.02 * dice}
        | {"pavpu": 0.9, "uce": 0.02, "ece": 0.01, **ROW}
        | ({"asd_mm": "", "assd_mm": ""} if dice == 0 else {})
        for case, dice in zip(CASES, DICE, strict=True)
    ]


def run_facts(name: str) -> dict[str, Any]:
    """What run.json of a finished run holds."""
    return {
        "name": name,
        "bundle": "gbdl",
        "method": "gbdl",
        "dataset": "phantom",
        "labelled": 4,
        "unlabelled": 8,
        "validation": 2,
        "test": len(CASES),
        "seed": 0,
        "split_hash": "0123456789abcdef",
        "git_sha": "fedcba",
        "paper_crop": False,
        "status": "finished",
        "started": "2025-01-01T10:00:00+00:00",
        "finished": "2025-01-01T11:30:00+00:00",
        "medssl_version": "0.1.0",
        "parameters": 12345,
        "command": "/opt/env/bin/python -m monai.bundle run training --dataset_dir '/home/jane doe/scans' --lr=0.1",
        "tracking_uri": "http://user:secret@mlflow.example.org:5000",
        "mlflow_run_id": "abc",
        "label_map": {"1": 1, "2": 1},
        "structures": {"1": "kidney"},
        "window": [-100, 250],
        "config": {"dataset_dir": "/home/jane doe/scans", "optimizer::lr": 0.1},
    }


def history() -> list[dict[str, Any]]:
    """Two epochs of ten steps, each validated."""
    records: list[dict[str, Any]] = []
    for epoch in (1, 2):
        steps = range(10 * epoch - 9, 10 * epoch + 1)
        records += [{"kind": "step", "epoch": epoch, "step": s, "loss": 1 / s, "lr": 0.1 / s} for s in steps]
        records.append({"kind": "epoch", "epoch": epoch, "step": 10 * epoch, "loss": 0.5 / epoch, "seconds": 60.0})
        records.append({"kind": "validation", "epoch": epoch, "step": 10 * epoch, "dice": 0.3 * epoch})
    return records


def write_case(scans: Path, predictions: Path, case: str) -> dict[str, str]:
    """Scan, label with two source ids, prediction and entropy of a case; returns its entry of split.json."""
    x, y, z = np.indices(SHAPE)
    body = ((x - 12) / 11) ** 2 + ((y - 10) / 9) ** 2 < 1
    label = np.where(((x - 7) / 3) ** 2 + ((y - 8) / 4) ** 2 + ((z - 8) / 5) ** 2 < 1, 1, 0)
    label[np.roll(label == 1, 10, axis=0)] = 2
    rng = np.random.default_rng(len(case))
    volumes = {
        scans / f"{case}.nii.gz": np.where(body, 40, -1000) + 60 * (label > 0) + rng.normal(0, 10, SHAPE),
        scans / f"{case}_label.nii.gz": label,
        predictions / f"{case}_seg.nii.gz": np.roll(label > 0, 1, axis=1),
        predictions / f"{case}_entropy.nii.gz": np.abs(np.roll(label > 0, 1, axis=1) - 1.0 * (label > 0)),
    }
    for file, array in volumes.items():
        nib.save(nib.Nifti1Image(array.astype(np.float32 if "entropy" in file.name else np.int16), AFFINE), file)
    image, label_file = scans / f"{case}.nii.gz", scans / f"{case}_label.nii.gz"
    return {"id": case, "image": str(image), "label": str(label_file), "patient": "Jane Doe", "role": "test"}


def write_evaluation(folder: Path, rows: list[dict[str, Any]]) -> None:
    with (folder / "per_case.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    settings = {"samples": 20, "window": [96, 96, 96], "checkpoint": str(folder.parent / "last.pt"), "failures": []}
    (folder / "settings.json").write_text(json.dumps(settings))


def build_run(root: Path, name: str = "run", rows: Any = "default", scans: bool = True, **changes: Any) -> Path:
    """A run folder in root. rows: of per_case.csv, None for no evaluation. changes: to run.json."""
    folder = root / name
    predictions = folder / "evaluation" / "predictions"
    predictions.mkdir(parents=True)
    (root / "scans").mkdir(exist_ok=True)
    cases = [write_case(root / "scans", predictions, case) for case in CASES] if scans else []
    (folder / "run.json").write_text(json.dumps(run_facts(name) | changes))
    (folder / "split.json").write_text(json.dumps({"hash": "0123456789abcdef", "cases": cases}))
    (folder / "history.jsonl").write_text("".join(json.dumps(record) + "\n" for record in history()))
    if rows is not None:
        write_evaluation(folder / "evaluation", per_case_rows() if rows == "default" else rows)
    return folder


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """build_run in the test's own folder."""
    return partial(build_run, tmp_path)


@pytest.fixture
def run_of(make_run: Callable[..., Path]) -> Callable[..., Run]:
    """A run of a method with a Dice for every case and a distance of ten times what the Dice lacks; facts: run.json."""

    def build(method: str, dice: Mapping[str, float], structure: str = "kidney", **facts: Any) -> Run:
        plain = {key: value for key, value in facts.items() if key != "method_facts"}
        name = "_".join([method.replace("/", ""), *(f"{key}{value}" for key, value in plain.items())])
        rows = [
            {"case": case, "structure": structure, "dice": value, "hd95_mm": 10 * (1 - value), "empty": ""}
            for case, value in dice.items()
        ]
        return load_run(make_run(name, rows=rows or None, scans=False, method=method, **facts))

    return build


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that tests only read."""
    return build_run(tmp_path_factory.mktemp("finished"))
