"""Rounds of review: who is offered, who becomes labelled, what is trained; one real chain on phantoms."""

import json
from pathlib import Path

import numpy as np
import pytest

from medssl.core.errors import ConfigError
from medssl.data.split import Split
from medssl.review.simulation import Rounds
from medssl.review.simulation import rounds as module
from medssl.review.simulation.pool import offered
from medssl.review.simulation.rounds import reviewed, rounds_grid, write_rounds
from medssl.sweep import SweepRow

RECORDS = [
    {"id": "a", "score": 0.1, "dice": 0.9, "structures": {}},
    {"id": "b", "score": 0.5, "dice": 0.8, "structures": {}},
    {"id": "c", "score": 0.3, "dice": 0.2, "structures": {}},
]


def test_queue_offers_the_most_uncertain_and_the_oracle_the_worst():
    assert offered(RECORDS, "uncertain", 2, seed=0) == ["b", "c"]
    assert offered(RECORDS, "oracle", 2, seed=0) == ["c", "b"]
    drawn = {tuple(offered(RECORDS, "random", 1, seed)) for seed in range(20)}
    assert len(drawn) == 3, "the random order depends on the seed"


def test_reviewed_cases_become_labelled():
    cases = [
        {"id": name, "patient": name, "role": role}
        for name, role in zip("abc", ["labelled", "unlabelled", "test"], strict=True)
    ]
    assert [case["role"] for case in reviewed(Split(cases, {}), ["b"]).cases] == ["labelled", "labelled", "test"]


@pytest.fixture
def plan(phantom_dir, bundle_dir, tmp_path):
    def make(**changes):
        keys = {"dataset_name": "phantom", "dataset_dir": str(phantom_dir), "validation": "1", "test": "2"}
        keys = changes.pop("keys", keys)
        settings = {"start": 1, "per_round": 1, "rounds": 2, "seeds": (0, 1), **changes}
        return Rounds(SweepRow("review", bundle_dir, ("smoke",)), keys, tmp_path / "out", **settings)

    return make


@pytest.fixture
def trained(monkeypatch):
    """Stands in for training and prediction: keeps the trainings and leaves runs whose Dice rises with the labels."""
    kept = []

    def train_all(trainings, jobs, trust):
        for training in trainings:
            kept.append(training)
            lists = Path(training.keys["lists_dir"])
            ids = (lists / "train.list").read_text().split()
            labelled = int(training.keys["labelled"])
            cases = [
                {"id": name, "patient": name, "role": "labelled" if place < labelled else "unlabelled"}
                for place, name in enumerate(ids[: len(ids) - int(training.keys["validation"])])
            ]
            tests = (lists / "test.list").read_text().split()
            cases += [{"id": name, "patient": name, "role": "test"} for name in tests]
            (training.folder / "evaluation").mkdir(parents=True)
            facts = {
                "name": training.folder.name,
                "method": training.keys["title"],
                "dataset": "phantom",
                "labelled": labelled,
                "seed": int(training.keys["seed"]),
                "status": "finished",
            }
            (training.folder / "run.json").write_text(json.dumps(facts))
            (training.folder / "split.json").write_text(json.dumps({"cases": cases}))
            bonus = {"uncertain": 0.1}.get(training.keys["title"], 0.0)
            rows = "".join(f"{name},organ,{0.5 + 0.1 * labelled + bonus}\n" for name in tests)
            (training.folder / "evaluation" / "per_case.csv").write_text("case,structure,dice\n" + rows)

    def score_pool(run, trust):
        waiting = [
            case["id"] for case in json.loads((run / "split.json").read_text())["cases"] if case["role"] == "unlabelled"
        ]
        return [
            {"id": name, "score": place / 10, "dice": place / 10, "structures": {}}
            for place, name in enumerate(waiting)
        ]

    monkeypatch.setattr(module, "train_all", train_all)
    monkeypatch.setattr(module, "score_pool", score_pool)
    return kept


def test_every_round_adds_what_the_queue_offers_and_never_touches_test_cases(plan, trained):
    result = plan().run()
    assert result.labelled == [1, 2, 3] and result.seeds == [0, 1] and len(result.cases) == 2
    names = [training.folder.name for training in trained]
    assert names[:2] == ["start_1_seed0", "start_1_seed1"] and len(names) == 2 + 2 * 2 * 3
    for training in trained:
        lists = Path(training.keys["lists_dir"])
        train, test = (set((lists / name).read_text().split()) for name in ("train.list", "test.list"))
        assert not train & test and test == set(result.cases)
    first, second = (
        Path(training.keys["lists_dir"], "train.list").read_text().split()
        for training in trained
        if training.folder.name in ("uncertain_2_seed0", "uncertain_3_seed0")
    )
    assert set(first[:2]) < set(second[:3]), "labels are kept from round to round"


def test_gain_is_the_difference_of_the_areas_below_the_curves(plan, trained, tmp_path):
    result = plan().run()
    gain, interval = result.gain("uncertain", "random")
    assert gain == pytest.approx(0.075) and interval.low == pytest.approx(0.075)  # 0, 0.1, 0.1 by trapezoids
    assert result.dice["uncertain", 1] == pytest.approx(result.dice["random", 1])
    assert np.allclose(result.area("random"), 0.7)
    grid = rounds_grid(result)
    texts = {row.cells[0].text: [cell.text for cell in row.cells[-3:]] for row in grid.rows}
    assert texts["uncertain"] == ["0.775", "+7.50 *", "+7.50 *"] and texts["random"] == ["0.700", "–", "0.00"]
    assert texts["oracle"][2] == "–" and grid.columns[-1].title == "Gain over oracle (points of area)"
    written = write_rounds(result, tmp_path / "tables")
    assert [path.stat().st_size > 100 for path in written] == [True] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategies": ("bold",)}, "strategy 'bold' is unknown"),
        ({"rounds": 0}, "whole numbers from 1 on"),
        ({"per_round": 50}, "cases to review"),
        ({"keys": {}}, "Give --dataset_name"),
    ],
)
def test_plans_that_cannot_be_run_are_refused(plan, trained, changes, message):
    with pytest.raises(ConfigError, match=message):
        plan(**changes).run()


def test_runs_of_other_cases_are_not_taken_for_those_of_this_plan(plan, trained):
    plan().run()
    stored = trained[0].folder / "split.json"
    cases = json.loads(stored.read_text())["cases"][1:]
    stored.unlink()
    Split(cases, {}).write(stored)
    with pytest.raises(ConfigError, match="this run would use"):
        plan().run()


@pytest.mark.slow
def test_real_chain_trains_predicts_and_goes_on_after_an_interruption(plan):
    result = plan(rounds=1, seeds=(0,), strategies=("uncertain", "oracle")).run()
    assert result.labelled == [1, 2] and np.isfinite(result.dice["uncertain", 2]).all()
    again = plan(rounds=1, seeds=(0,), strategies=("uncertain", "oracle")).run()
    assert again.dice["oracle", 2] == pytest.approx(result.dice["oracle", 2])
