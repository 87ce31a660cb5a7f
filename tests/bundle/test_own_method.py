"""A method of anybody's package is trained by its name, with its own options, and has its row in tables."""

import json
import sys
from textwrap import dedent

import pytest
from trainings import training_of

from medssl.core.errors import ConfigError, error_behind
from medssl.report import write_markdown
from medssl.report.comparison.compare import compare

SOURCE = """
    from dataclasses import dataclass

    from medssl.core.options import option
    from medssl.methods.facts import MethodFacts, coefficients_of
    from medssl.methods.method import Method


    @dataclass(frozen=True)
    class MyOptions:
        sharpness: float = option(0.5, "weight of the entropy", symbol="$s$", weighs="entropy", at_least=0)


    class MyMethod(Method):
        Options = MyOptions
        facts = MethodFacts("Sharp", True, 30, ("plain",), coefficients_of(MyOptions))

        def forward(self, batch):
            labelled = batch["is_labelled"].bool()
            terms = self.loss(self.network(batch["image"][labelled]), batch["label"][labelled])
            probs = self.network(batch["image"][~labelled]).softmax(1)
            entropy = -(probs * probs.clamp_min(1e-8).log()).sum(1).mean()
            return {**terms, "loss": terms["loss"] + self.options.sharpness * entropy, "entropy": entropy}


    class Nothing:
        pass


    class WithoutFacts(Method):
        pass
"""
MINE = "my_package.my_module:MyMethod"


@pytest.fixture(scope="module")
def own_package(tmp_path_factory):
    """A package of somebody else in Python's path."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "my_package").mkdir()
    (folder / "my_package" / "__init__.py").touch()
    (folder / "my_package" / "my_module.py").write_text(dedent(SOURCE))
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in ("my_package", "my_package.my_module"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def train(own_package, bundles_dir, phantom_dir):
    return training_of(bundles_dir / "teacher_student", ("train", "smoke"), phantom_dir)


@pytest.fixture(scope="module")
def own_run(train, tmp_path_factory):
    return train(tmp_path_factory.mktemp("own") / "run", method=MINE, sharpness=0.25)


def test_its_run_has_its_title_facts_losses_and_options(own_run):
    facts = json.loads((own_run / "run.json").read_text())
    assert facts["method"] == "Sharp" and facts["status"] == "finished"
    assert facts["method_facts"] == {
        "title": "Sharp",
        "learns_from_unlabelled": True,
        "place": 30,
        "views": ["plain"],
        "coefficients": {"sharpness": {"symbol": "$s$", "meaning": "entropy"}},
    }
    assert facts["config"]["method"] == MINE and facts["config"]["sharpness"] == "0.25"
    steps = [json.loads(line) for line in (own_run / "history.jsonl").read_text().splitlines()]
    steps = [step for step in steps if step["kind"] == "step"]
    assert all(step["entropy"] > 0 for step in steps)
    first = steps[0]
    assert first["loss"] == pytest.approx(first["ce"] + 2 * first["dice"] + 0.25 * first["entropy"], rel=1e-4)


def test_it_has_its_row_beside_another_method_with_the_cases_it_learned_from(own_run, trained_run, tmp_path):
    comparison = compare([own_run, trained_run], against=["supervised"])
    assert [row.method for row in comparison.rows] == ["supervised", "Sharp"]
    [difference] = comparison.differences
    assert difference.method == "Sharp" and difference.baseline == "supervised"
    text = write_markdown(comparison, tmp_path / "table.md").read_text()
    assert "| Method | L vs. U |" in text
    results = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("|")][2:4]
    assert [[cell.strip() for cell in row] for row in results] == [["supervised", "3 vs. 0"], ["Sharp", "3 vs. 4"]]


@pytest.mark.parametrize(
    ("keys", "finding"),
    [
        ({"method": MINE, "sharpnes": 1}, "key 'sharpnes' is unknown. Did you mean 'sharpness'?"),
        ({"method": MINE, "sharpness": -1}, "sharpness -1: expected at least 0"),
        ({"method": MINE, "consistency_weight": 1}, "key 'consistency_weight' is unknown"),
        ({"method": "my_package.my_module:Missing"}, "has no attribute 'Missing'"),
        ({"method": "my_package.nowhere:MyMethod"}, "Is the package installed, or its folder in PYTHONPATH?"),
        ({"method": "my_package.my_module:Nothing"}, "not a subclass of medssl.methods.Method"),
        ({"method": "my_package.my_module:WithoutFacts"}, "has no facts"),
        ({"method": "mean_taecher"}, "method 'mean_taecher' is unknown. Did you mean 'mean_teacher'?"),
        ({"method": "gbdl"}, "trained by the bundle gbdl"),
    ],
)
def test_what_is_wrong_with_a_method_or_its_options_is_said_before_training(train, tmp_path, keys, finding):
    with pytest.raises(RuntimeError) as caught:
        train(tmp_path / "run", **keys)
    error = error_behind(caught.value)
    assert isinstance(error, ConfigError) and finding in str(error)
    assert not (tmp_path / "run" / "history.jsonl").exists()
