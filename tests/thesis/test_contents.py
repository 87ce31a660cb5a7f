"""The thesis' numbers are as it prints them: golden values, numbers that it states twice, means and bounds."""

import math

import pytest

from medssl.core.errors import ConfigError
from medssl.thesis.contents import Number, read_thesis

THESIS = read_thesis()
UNET = "3D-UNet w/ MC dropout"
TABLES = [entry for entry in THESIS.entries.values() if entry.kind == "table"]
NAMES = (
    [f"3.{n}" for n in range(1, 7)] + [f"4.{n}" for n in range(1, 8)] + [f"5.{n}" for n in range(1, 7)]
    + [f"A.{n}" for n in range(1, 6)] + ["B.1", "C.1", "C.2"]
    + [f"fig3.{n}" for n in range(1, 5)] + [f"fig4.{n}" for n in range(1, 4)] + [f"fig5.{n}" for n in range(1, 9)]
    + ["figA.1", "figA.2"]
)  # fmt: skip


def texts(table, row, setting):
    entry = THESIS.entry(table)
    return [number.text for number in next(r for r in entry.rows if r.name == row).numbers[setting]]


def test_every_table_and_figure_of_chapters_3_to_5_and_the_appendices_is_there():
    assert sorted(THESIS.entries) == sorted(NAMES)


@pytest.mark.parametrize(
    ("table", "row", "setting", "printed"),
    [
        (
            "3.1",
            "3D-UNet w/ MC dropout",
            "kits19_160",
            ["0.940 ± 0.004", "0.888 ± 0.005", "3.66 ± 0.26", "0.78 ± 0.11"],
        ),
        ("3.1", UNET, "kits19_4", ["0.710 ± 0.051", "0.578 ± 0.065", "19.56 ± 1.95", "6.11 ± 0.92"]),
        ("3.1", "Volume-based LRL", "left_atrium_8", ["0.865 ± 0.017", "0.773 ± 0.013", "6.81 ± 0.33", "2.49 ± 0.13"]),
        ("3.2", "Shared Encoder", "left_atrium_8", ["0.831 ± 0.019", "0.724 ± 0.012", "7.19 ± 0.68", "2.86 ± 0.41"]),
        ("3.3", "CoraNet*", "kits19_4", ["0.886", "0.812", "8.43", "2.39"]),
        ("3.4", "Reciprocal Learning", "left_atrium_16", ["0.901", "0.820", "6.70", "2.13"]),
        ("3.5", "CoraNet", "liver_5", ["0.923", "0.877", "10.84", "4.28"]),
        ("3.6", "GBDL", "left_atrium_8", ["0.864"]),
        ("4.1", "NP-Match", "stl10_40", ["14.20 ± 0.67"]),
        ("4.1", "ReMixMatch", "cifar100_10000", ["20.02 ± 0.27"]),
        ("4.2", "UPS (MC Dropout)", "stl10_1000", ["5.69"]),
        ("4.3", "NP-Match", "imagenet_100000", ["41.78", "19.33"]),
        ("4.4", "LA + DASO w. NPs", "cifar10_lt_100_1500", ["84.02 ± 0.23"]),
        ("4.5", "DASO w. NPs", "stl10_lt_20_450", ["74.05 ± 0.85"]),
        ("4.7", "dual JS", "cifar100_400", ["38.67 ± 1.29"]),
        ("5.1", "AugSeg w/ NP-SemiSeg", "voc_92", ["65.78"]),
        ("5.2", "PS-MT w/ MC dropout", "voc_blender_5291", ["75.97"]),
        ("5.3", "U2PL w/ MC dropout", "cityscapes_1488", ["75.85"]),
        ("5.4", "MC Dropout", "voc_183", ["86.42"]),
        ("5.6", "w/o Attention", "voc_blender_5291", ["89.35"]),
    ],
)
def test_numbers_are_those_of_the_latex(table, row, setting, printed):
    assert texts(table, row, setting) == printed


@pytest.mark.parametrize(
    ("table", "row", "other_table", "other_row"),
    [
        ("3.1", "GBDL (LRL)", "3.2", "GBDL"),
        ("4.1", "NP-Match", "4.7", "JS"),
        ("5.5", "w/ Attention", "5.1", "U2PL w/ NP-SemiSeg"),
        ("5.5", "w/ Attention", "5.2", "U2PL w/ NP-SemiSeg"),
        ("5.5", "w/ Attention", "5.3", "U2PL w/ NP-SemiSeg"),
        ("5.4", "NP-SemiSeg", "5.6", "w/ Attention"),
    ],
)
def test_numbers_that_the_thesis_states_twice_agree(table, row, other_table, other_row):
    shared = {setting.name for setting in THESIS.entry(table).settings}
    shared &= {setting.name for setting in THESIS.entry(other_table).settings}
    assert shared
    assert all(texts(table, row, name) == texts(other_table, other_row, name) for name in shared)


@pytest.mark.parametrize(("table", "dataset"), [("3.3", "kits19"), ("3.4", "left_atrium")])
def test_means_of_gbdl_in_the_comparisons_are_those_of_the_ablation(table, dataset):
    for setting in THESIS.entry(table).settings:
        ablation = [text.partition(" ")[0] for text in texts("3.2", "GBDL", setting.name)]
        assert texts(table, "GBDL", setting.name) == ablation and setting.dataset == dataset


def test_mean_auc_is_the_mean_over_the_findings():
    table = THESIS.entry("4.6")
    assert len(table.rows) == 8 and len(table.metrics) == 15
    for row in table.rows:
        *findings, mean = (number.mean for number in row.numbers["chest_xray14_20"])
        assert mean == pytest.approx(sum(findings) / 14, abs=0.0101)  # both are rounded


def test_impossible_numbers_are_all_that_lie_below_the_bound_of_jaccard():
    """A mean over cases of J = D / (2 - D), which is convex, is at least that of the mean D; roundings allowed."""
    marked, below = set(), set()
    for entry in TABLES:
        if "jaccard" not in entry.metrics:
            continue
        for row, setting in entry.cells():
            dice, jaccard = row.numbers[setting.name][:2]
            least = (dice.mean - 0.0005) / (2 - dice.mean + 0.0005)
            place = (entry.number, row.name, setting.name)
            below |= {place} if jaccard.mean + 0.0005 < least else set()
            marked |= {place} if jaccard.why_impossible else set()
    assert marked == below
    assert ("3.4", "UA-MT*", "left_atrium_16") in marked and len(marked) == 7


def test_every_row_has_numbers_of_all_metrics_and_names_a_method_that_is_described():
    for entry in TABLES:
        for row, setting in entry.cells():
            assert len(row.numbers[setting.name]) == len(entry.metrics)
            assert all(number.mean > 0 for number in row.numbers[setting.name])
            assert row.method is None or row.method in THESIS.methods
        assert {name for row in entry.rows for name in row.numbers} == {setting.name for setting in entry.settings}
        assert entry.against in {row.method for row in entry.rows}
        assert entry.differs


def test_a_number_without_deviation_has_none():
    assert math.isnan(Number("0.911").sd) and Number("0.911 ± 0.010").sd == 0.010


def test_tables_and_figures_of_the_same_number_are_told_apart():
    assert THESIS.entry("3.2").kind == "table" and THESIS.entry("fig3.2").kind == "figure"
    assert THESIS.entry("Figure 3.2") is THESIS.entry("fig3.2") and THESIS.entry("Table 3.2") is THESIS.entry("3.2")


def test_an_unknown_number_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"table or figure 'fig3\.22' is unknown\. Did you mean 'fig3\.2'\?"):
        THESIS.entry("fig3.22")
