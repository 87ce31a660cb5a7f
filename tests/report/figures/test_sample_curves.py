"""The curves over the number of samples show the means of samples.csv, on axes that do not exaggerate."""

import pytest
from rich.console import Console

from medssl.core.errors import DataError
from medssl.report import write_report
from medssl.report.figures.files import write_figures
from medssl.report.figures.sample_curves import read_samples, sample_curves, sampling_mode
from medssl.report.figures.style import share_limits
from medssl.report.samples_table import samples_table
from medssl.report.segmentation import SEGMENTATION

TABLE = """case,samples,dice,pavpu,ece,seconds
a,1,0.80,0.90,0.02,1.0
a,5,0.82,0.91,0.02,5.0
a,20,0.83,0.92,0.01,20.0
b,1,0.60,0.80,0.02,3.0
b,5,0.62,0.83,0.02,15.0
b,20,0.61,0.84,0.01,60.0
"""


@pytest.fixture
def sampled(make_run):
    folder = make_run(rows=None)
    (folder / "samples.csv").write_text(TABLE)
    return folder


def test_three_panels_show_the_means_over_cases_against_t(sampled):
    panels = sample_curves(read_samples(sampled, SEGMENTATION), SEGMENTATION).axes

    assert [axes.get_ylabel() for axes in panels] == ["time per scan (s)", "Dice", "PAvPU"]
    assert {axes.get_xlabel() for axes in panels} == {"samples T"}
    assert panels[0].get_title(loc="left") == "mean of 2 cases"
    for axes, means in zip(panels, ([2, 10, 40], [0.70, 0.72, 0.72], [0.85, 0.87, 0.88]), strict=True):
        (line,) = axes.lines
        assert line.get_xdata().tolist() == [1, 5, 20]
        assert line.get_ydata() == pytest.approx(means)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "5", "20"]


def test_time_of_a_patch_is_drawn_and_told_where_it_was_measured(sampled):
    assert sampling_mode(sampled) == ""
    lines = [f"{line},0.{number},exact" for number, line in enumerate(TABLE.splitlines()[1:], 1)]
    (sampled / "samples.csv").write_text("\n".join([TABLE.splitlines()[0] + ",patch_seconds,mode", *lines]) + "\n")
    time = sample_curves(read_samples(sampled, SEGMENTATION), SEGMENTATION).axes[0]
    scans, patches = time.lines
    assert scans.get_ydata() == pytest.approx([2, 10, 40]) and patches.get_ydata() == pytest.approx([0.25, 0.35, 0.45])
    assert [text.get_text() for text in time.get_legend().get_texts()] == ["one scan", "one patch"]
    console = Console(width=100, record=True)
    console.print(samples_table(sampled, SEGMENTATION))
    told = console.export_text()
    assert "mode exact" in told and "s per patch" in told and "0.45" in told


def test_time_is_a_straight_line_where_it_is_proportional_to_t(sampled):
    time = sample_curves(read_samples(sampled, SEGMENTATION), SEGMENTATION).axes[0]
    assert (time.get_xscale(), time.get_yscale()) == ("log", "log")


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([0.9000, 0.9001], (0.87505, 0.92505)),  # no mountains from the fourth decimal
        ([0.5, 0.9], (0.46, 0.94)),
        ([0.999, 1.0], (0.95, 1.0)),
        ([0.0, 0.0], (0.0, 0.025)),
        ([], (0.0, 1.0)),
    ],
)
def test_axes_of_shares_have_room_but_not_too_little(values, limits):
    low, high = share_limits(values)
    assert (low, high) == pytest.approx(limits) and (not values or low <= min(values) <= max(values) <= high)


def test_report_and_figures_have_the_curves_only_where_they_were_measured(sampled, make_run):
    assert "Number of samples" in write_report(sampled).read_text()
    assert "samples.png" in {path.name for path in write_figures(sampled)}
    other = make_run("other", rows=None)
    assert "Number of samples" not in write_report(other).read_text()


@pytest.mark.parametrize("table", ["case,samples,dice\na,1,0.5\n", TABLE.replace("0.61", "good"), TABLE + "a,7\n"])
def test_a_damaged_table_is_an_error(sampled, table):
    (sampled / "samples.csv").write_text(table)
    with pytest.raises(DataError, match=r"samples\.csv, line \d: .*medssl samples"):
        read_samples(sampled, SEGMENTATION)
