"""Every row of a benchmark has the same compute, data and ingredients; folds and the upper bound are among them."""

import json

import pytest

from medssl.benchmark.budget import seconds_per_pass
from medssl.benchmark.plan import BenchmarkPlan, methods_of
from medssl.core.errors import ConfigError


def plan_of(phantom_dir, tmp_path, **changes) -> BenchmarkPlan:
    chosen = {"methods": ["supervised", "bcp", "gbdl"], "labelled": [2], "seeds": [0, 1], "passes": 100, **changes}
    return BenchmarkPlan("phantom", phantom_dir, output=tmp_path, keys={"validation": "1", "test": "2"}, **chosen)


def test_rows_differ_in_their_method_only(phantom_dir, tmp_path):
    trainings = plan_of(phantom_dir, tmp_path).trainings()
    assert len(trainings) == 2 * (3 + 1)
    own = ("method", "title", "output_dir", "bundle_root", "seed", "labelled", "ema_decay", "copy_paste")
    shared = [{key: value for key, value in training.keys.items() if key not in own} for training in trainings]
    assert all(keys == shared[0] for keys in shared)
    assert shared[0]["patch_passes"] == "100" and shared[0]["strong_labels"] == "true"


def test_ingredients_go_to_every_method_that_takes_them(phantom_dir, tmp_path):
    supervised, bcp, gbdl, upper = (training.keys for training in plan_of(phantom_dir, tmp_path).trainings()[:4])
    assert supervised["ema_decay"] == bcp["ema_decay"] == upper["ema_decay"] == "0.99"
    assert "ema_decay" not in gbdl and "method" not in gbdl


def test_upper_bound_has_the_labels_of_all_training_scans(phantom_dir, tmp_path):
    upper = plan_of(phantom_dir, tmp_path).trainings()[3].keys
    number = len(list((phantom_dir / "images").iterdir()))
    assert upper["labelled"] == str(number - 3) and upper["title"] == "supervised, all labels"


def test_folds_are_rows_of_their_own(phantom_dir, tmp_path):
    plan = BenchmarkPlan(
        "phantom", phantom_dir, ["supervised"], [1], [0], 100, tmp_path, folds=2, keys={"validation": "1"}
    )
    trainings = plan.trainings()
    assert [training.folder.name for training in trainings][::2] == [
        "supervised_fold0_1_seed0",
        "supervised_fold1_1_seed0",
    ]
    assert [training.keys["fold"] for training in trainings] == ["0", "0", "1", "1"]


def test_keys_of_the_user_hold_against_ingredients(phantom_dir, tmp_path):
    plan = BenchmarkPlan("phantom", phantom_dir, ["supervised"], [1], [0], 100, tmp_path, keys={"ema_decay": "0.5"})
    assert plan.trainings()[0].keys["ema_decay"] == "0.5"


def test_methods_are_named_with_supervised_first():
    assert methods_of("bcp, cps") == ["supervised", "bcp", "cps"]
    assert set(methods_of("all")) >= {"supervised", "mean_teacher", "ua_mt", "cps", "bcp", "fixmatch", "pseudo_bank"}
    with pytest.raises(ConfigError, match=r"'bcq'.*bcp"):
        methods_of("bcq")


def test_seconds_of_a_pass_are_those_of_the_epochs(tmp_path):
    lines = [{"kind": "epoch", "seconds": 3.0}, {"kind": "step", "seconds": 99}, {"kind": "epoch", "seconds": 1.0}]
    (tmp_path / "history.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "run.json").write_text(json.dumps({"patch_passes": {"a": {"units": 6.0}, "b": {"units": 2.0}}}))
    assert seconds_per_pass(tmp_path) == 0.5


def test_the_chosen_method_is_trained_on_all_labels_and_supervised_where_all_scans_have_one(phantom_dir, tmp_path):
    number = len(list((phantom_dir / "images").iterdir()))
    final = plan_of(phantom_dir, tmp_path).final_training("BCP")
    assert final.keys["labelled"] == str(number) and final.keys["test"] == final.keys["validation"] == "0"
    assert final.keys["method"] == "supervised"
