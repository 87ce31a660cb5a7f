"""Work in other processes gives the same results in the same order, and its errors reach the caller."""

import json
import operator
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.volumes import write_nifti
from medssl.inference.evaluation import Evaluation
from medssl.inference.predictor import Prediction
from medssl.inference.workers import in_processes, paying_workers

CASES = 4


class StoredPredictions:
    """Stands in for a predictor: random probabilities of three classes, the same for a case at every call."""

    structures = {1: "kidney", 2: "tumour"}  # noqa: RUF012
    pipeline = SimpleNamespace(
        facts=SimpleNamespace(target=SimpleNamespace(label_map={1: 1, 5: 2}), window=None),
        geometry=SimpleNamespace(slice_size=None, depth=None),
    )
    measures_latent = False

    def settings(self) -> dict[str, Any]:
        return {}

    def __call__(self, case: dict[str, Any]) -> Prediction:
        rng = np.random.default_rng(int(case["id"]))
        probs = rng.dirichlet(np.ones(3), (12, 11, 5)).transpose(3, 0, 1, 2).astype(np.float32)
        entropy = -(probs * np.log2(probs.clip(1e-9))).sum(0)
        return Prediction(case["id"], probs, entropy, entropy, np.diag([0.8, 1.0, 2.5, 1.0]))


@pytest.fixture
def cases(tmp_path: Path) -> list[dict[str, Any]]:
    found = [{"id": str(index), "label": str(tmp_path / f"{index}.nii.gz")} for index in range(CASES)]
    for case in found:
        label = np.random.default_rng(int(case["id"]) + 100).choice([0, 1, 5], (12, 11, 5))
        write_nifti(case["label"], label, np.diag([0.8, 1.0, 2.5, 1.0]), np.uint8)
    return found


def without_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_evaluation_in_processes_is_bit_for_bit_that_in_one(cases, tmp_path):
    here, there = (Evaluation(StoredPredictions(), cases, tmp_path / name) for name in ("here", "there"))
    there.metric_workers = 1  # a process takes seconds to start
    expected, found = here.run(), there.run()
    assert without_time(found) == without_time(expected)
    assert [row["case"] for row in found] == [case["id"] for case in cases for _ in range(2)]
    maps = sorted(path.name for path in (tmp_path / "here" / "predictions").iterdir())
    assert len(maps) == 2 * CASES
    for name in maps:
        first, second = (tmp_path / side / "predictions" / name for side in ("here", "there"))
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_error_of_a_worker_reaches_the_user_with_its_text(cases, tmp_path):
    write_nifti(cases[1]["label"], np.zeros((3, 3, 3)), np.eye(4), np.uint8)
    with pytest.raises(DataError, match=r"1\.nii\.gz: shape \(3, 3, 3\), the scan has \(12, 11, 5\)"):
        Evaluation(StoredPredictions(), cases, tmp_path / "out", metric_workers=1).run()
    assert not (tmp_path / "out" / "per_case.csv").exists()


def test_jobs_are_made_no_faster_than_they_are_done_and_an_error_of_one_is_raised():
    made: list[int] = []

    def jobs() -> Iterator[tuple[int, int]]:
        for number in range(6):
            made.append(number)
            yield number, 4 - number

    results = in_processes(operator.floordiv, jobs(), workers=1)
    assert next(results) == 0 and made == [0, 1]
    assert [next(results) for _ in range(3)] == [0, 1, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_processes_have_one_thread_and_this_one_as_many_as_before(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert list(in_processes(os.getenv, [("OMP_NUM_THREADS",)] * 2, workers=1)) == ["1", "1"]
    assert os.environ["OMP_NUM_THREADS"] == "3"


@pytest.mark.parametrize(("cores", "cases", "workers"), [(1, 100, 0), (2, 3, 0), (2, 100, 1), (8, 16, 4), (8, 100, 7)])
def test_a_core_is_left_for_the_network_and_few_cases_start_no_process(cores, cases, workers, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert paying_workers(cases) == workers


def test_evaluation_of_a_latent_says_what_it_does_and_forgets_what_was_said_before(cases, tmp_path):
    class Drawn(StoredPredictions):
        measures_latent = True

        def __call__(self, case: dict[str, Any]) -> Prediction:
            plain = super().__call__(case)
            return replace(plain, mutual_information=plain.entropy / (1 + int(case["id"])))

    Evaluation(Drawn(), cases, tmp_path / "out").run()
    entropies = [StoredPredictions()(case).entropy.sum() for case in cases]
    expected = sum(entropy / (1 + number) for number, entropy in enumerate(entropies)) / sum(entropies)
    file = tmp_path / "out" / "metrics.json"
    assert json.loads(file.read_text()) == {"latent_share": pytest.approx(float(expected), rel=1e-5)}
    Evaluation(StoredPredictions(), cases, tmp_path / "out").run()
    assert not file.exists()
