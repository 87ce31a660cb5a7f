"""A table is made from beginning to end on phantoms with smoke settings, and read back."""

import csv
import re
from dataclasses import replace

import pytest

from medssl.core.errors import ConfigError
from medssl.thesis.contents import read_thesis
from medssl.thesis.plan import make_plan
from medssl.thesis.run import commands, train_and_write

THESIS = read_thesis()
KEYS = {
    "mlflow": "false",
    "validation": "0",
    "test": "3",
    "max_epochs": "2",
    "slice_size": "[24, 24]",
    "patch_size": "[16, 16, 8]",
    "stride": "[16, 16, 8]",
}


def small_table():
    """Table 3.5 with two of its rows in one of its settings."""
    entry = THESIS.entry("3.5")
    setting = THESIS.settings["liver_5"]
    numbers = {row.name: next(iter(row.numbers.values())) for row in entry.rows}
    kept = [row for row in entry.rows if row.method in ("unet", "ua_mt")]
    rows = tuple(replace(row, numbers={setting.name: numbers[row.name]}) for row in kept)
    return replace(entry, settings=(setting,), rows=rows, against="unet")


def with_ua_mt():
    """The thesis as if UA-MT were registered: another method of its bundle stands for it."""
    method = replace(THESIS.methods["ua_mt"], keys={"method": "mean_teacher"})
    return replace(THESIS, methods={**THESIS.methods, "ua_mt": method})


def read_csv(file):
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture
def data(phantom_dir, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "phantom").symlink_to(phantom_dir)
    return tmp_path / "data"


def test_a_table_is_trained_written_and_read_back(data, tmp_path, trained_here):
    thesis, output = with_ua_mt(), tmp_path / "runs"
    plan = make_plan(thesis, small_table(), data, bench=True, seeds=(0, 1))
    keys = {**KEYS, "runs_dir": str(output)}
    measured, files = train_and_write(thesis, plan, output, ["smoke"], keys)
    assert len(trained_here) == 4 and len(measured.runs) == 4
    names = [f"3.5{end}" for end in (".md", ".html", ".csv", "_cases.csv", "_differences.csv")]
    assert [file.name for file in files] == names and all(file.parent == output / "bench" / "tables" for file in files)

    numbers = {(row["row"], row["metric"]): row for row in read_csv(files[2])}
    ua_mt = numbers["UA-MT", "dice"]
    assert ua_mt["thesis_mean"] == "0.920000" and ua_mt["seeds"] == "2"
    assert ua_mt["run_on"] == "phantom" and ua_mt["run_labelled"] == "2"
    dice = [float(row["value"]) for row in read_csv(files[3]) if row["row"] == "UA-MT" and row["metric"] == "dice"]
    assert len(dice) == 2 * 3  # seeds, cases
    assert float(ua_mt["mean"]) == pytest.approx(sum(dice) / 6, abs=2e-6)

    [difference] = read_csv(files[4])
    assert difference["baseline"] == "3D-UNet w/ MC dropout" and difference["method"] == "UA-MT"
    assert difference["n_seeds"] == "2" and difference["cases_low"] and difference["seeds_and_cases_high"]
    text = files[0].read_text()
    assert re.search(r"\| UA-MT \| 5 vs\. 95 \| 0\.\d{3} ± 0\.\d{3} \(0\.920\) \|", text)
    assert re.search(r"\| 3D-UNet w/ MC dropout \| 5 vs\. 0 \| 0\.\d{3} ± 0\.\d{3} \(0\.950\) \|", text)
    assert "In place of liver, 5 labelled: phantoms, 2 labelled." in text
    assert "What differs from the thesis' protocol" in text and "Bench size" in text
    assert "(0.920)" in files[1].read_text()

    train_and_write(thesis, plan, output, ["smoke"], keys)
    assert len(trained_here) == 4  # finished runs are not trained again
    assert commands(plan, output, ["smoke"], keys, trust=False) == []


def test_rows_that_cannot_be_made_are_shown_with_the_thesis_number(data, tmp_path, monkeypatch):
    from medssl.thesis import plan as plans
    from medssl.thesis.measured import measure
    from medssl.thesis.pages import table_markdown

    monkeypatch.setattr(plans, "is_registered", lambda method: method.name == "gbdl")
    plan = make_plan(THESIS, THESIS.entry("3.4"), data)
    text = table_markdown(THESIS, measure(plan, tmp_path))
    assert "| UA-MT\\* | 16 vs. 64 | not there yet (0.891) | not there yet (0.793 !) |" in text
    assert "| UA-MT | 16 vs. 64 | quoted (0.889) |" in text and "| GBDL | 16 vs. 64 | no data (0.894) |" in text
    assert "Dice 0.891 asks for at least 0.802, printed is 0.793" in text
    wide = table_markdown(THESIS, measure(make_plan(THESIS, THESIS.entry("3.6"), data), tmp_path))
    assert "| GBDL | no data (0.897) | no data (0.877) | no data (0.882) | no data (0.864) | 0 |" in wide


def test_where_all_trainings_fail_their_error_is_told(data, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise ConfigError("2 of 2 trainings failed; see training.log.")

    monkeypatch.setattr("medssl.thesis.run.train_all", refused)
    with pytest.raises(ConfigError, match=r"2 of 2 trainings failed"):
        train_and_write(THESIS, make_plan(THESIS, small_table(), data, bench=True, seeds=(0,)), tmp_path)
    assert not (tmp_path / "bench" / "tables" / "3.5.md").exists()


@pytest.mark.slow
def test_a_whole_table_and_figures_are_made_of_the_same_runs(data, tmp_path, trained_here):
    from medssl.thesis.figures import write_figure
    from medssl.thesis.measured import measure

    output = tmp_path / "runs"
    plan = make_plan(THESIS, THESIS.entry("3.2"), data, bench=True, seeds=(0,))
    train_and_write(THESIS, plan, output, ["smoke"], {**KEYS, "runs_dir": str(output)})
    for number in ("fig3.2", "fig3.3", "figA.2"):
        drawn = make_plan(THESIS, THESIS.entry(number), data, bench=True)
        files = write_figure(THESIS, measure(drawn, output), output / "figures")
        assert len(files) > 1 and files[0].name == f"{number}.html"
