"""Plans take the data that are there, share runs between tables, and fill rows once their method is registered."""

from pathlib import Path

import pytest

from medssl.core.errors import ConfigError, DataError
from medssl.sweep import sweeps_of_file
from medssl.thesis import plan as plans
from medssl.thesis.contents import read_thesis
from medssl.thesis.costs import Speed, gpu_hours, stored_speed
from medssl.thesis.grids import repository_grids
from medssl.thesis.listing import list_grid, state_text
from medssl.thesis.plan import make_plan, require_something_to_run
from medssl.thesis.registered import is_registered

ROOT = Path(__file__).parents[2]
THESIS = read_thesis()


def plan_of(number, data, **choices):
    return make_plan(THESIS, THESIS.entry(number), data, **choices)


@pytest.fixture
def data(tmp_path):
    """A folder of data in which hippocampus and left_atrium hold something."""
    for name in ("hippocampus", "left_atrium", "kits19"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for name in ("hippocampus", "left_atrium"):
        (tmp_path / "data" / name / "scan.nii.gz").touch()
    return tmp_path / "data"


def test_settings_whose_data_set_is_missing_have_no_place(data):
    plan = plan_of("3.2", data)
    assert plan.missing_datasets() == ["kits19"]  # its folder is empty
    assert {cell.place.title for cell in plan.cells if cell.can_run} == {"left_atrium_16", "left_atrium_8"}
    assert len(plan.all_run_folders(Path("runs"))) == 2 * 4 * 5


def test_bench_takes_what_stands_in_and_says_so(data):
    plan = plan_of("3.1", data, bench=True, seeds=(0,))
    assert plan.missing_datasets() == []
    assert {cell.place.dataset.name for cell in plan.cells} == {"hippocampus", "left_atrium"}
    assert plan.stand_ins()["kits19, 160 labelled"] == "MSD hippocampus, 100 labelled"
    assert plan.stand_ins()["left_atrium, 80 labelled"] == "Atrial Segmentation Challenge, 40 labelled"
    assert plan.all_run_folders(Path("runs"))[0] == Path("runs/bench/hippocampus_100/unet_100_seed0")


def test_tables_share_runs_of_the_same_row(data):
    first = set(plan_of("3.1", data).all_run_folders(Path("runs")))
    second = set(plan_of("3.2", data).all_run_folders(Path("runs")))
    assert {folder.name for folder in first & second} == {f"gbdl_{n}_seed{s}" for n in (16, 8) for s in range(5)}


def test_a_row_fills_itself_once_its_method_is_registered(monkeypatch, data):
    assert (
        not is_registered(THESIS.methods["tripled_ua"]) or "Tripled-UA*" not in plan_of("3.4", data).unregistered_rows()
    )
    monkeypatch.setattr(plans, "is_registered", lambda method: method.name == "gbdl")
    assert "UA-MT*" in plan_of("3.4", data).unregistered_rows()
    monkeypatch.setattr(plans, "is_registered", lambda method: method.name in ("gbdl", "ua_mt"))
    plan = plan_of("3.4", data)
    assert "UA-MT*" not in plan.unregistered_rows()
    assert Path("runs/left_atrium_8/ua_mt_8_seed4") in plan.all_run_folders(Path("runs"))


def test_the_registry_is_asked(monkeypatch):
    from medssl.thesis import registered

    assert is_registered(THESIS.methods["gbdl_no_kl"]) and is_registered(THESIS.methods["u2pl_np_mean"])
    assert not is_registered(THESIS.methods["acpl_np"])
    registered._choices.cache_clear()
    monkeypatch.setattr(registered, "method_names", lambda: ["dtc"])
    try:
        assert is_registered(THESIS.methods["dtc"]) and not is_registered(THESIS.methods["ua_mt"])
    finally:
        registered._choices.cache_clear()


def test_missing_data_are_named_with_where_to_get_them(tmp_path):
    with pytest.raises(DataError, match=r"Table 3\.5 needs data that are missing: .*medicaldecathlon.*--bench"):
        require_something_to_run(THESIS, plan_of("3.5", tmp_path))


def test_an_entry_without_results_says_where_it_is_checked(tmp_path):
    with pytest.raises(ConfigError, match=r"Table C\.2 has no results to make: .*test_np_seg_head\.py"):
        require_something_to_run(THESIS, plan_of("C.2", tmp_path))
    for entry in THESIS.entries.values():
        if entry.kind == "configuration":
            assert (ROOT / entry.details["code"]).exists() and (ROOT / entry.details["test"]).exists()


def test_a_table_of_methods_that_are_not_there_yet_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(plans, "is_registered", lambda method: False)
    with pytest.raises(ConfigError, match=r"Table 4\.6: none of its methods is there yet \(MT, .*ACPL-NPs\)"):
        require_something_to_run(THESIS, plan_of("4.6", tmp_path))


def test_coefficients_are_varied_one_at_a_time(data):
    cells = [cell for cell in plan_of("figA.1", data).cells if cell.place is not None]
    names = [cell.method.name for cell in cells]
    assert len(names) == len(set(names)) and names.count("gbdl_all_1") == 1
    kl = next(cell.method for cell in cells if cell.method.name == "gbdl_kl_weight_0.005")
    assert kl.keys["kl_weight"] == 0.005 and kl.keys["dice_weight"] == 1 and kl.keys["pseudo_samples"] == 1


def test_grids_in_benchmarks_are_those_of_the_json():
    """`python -m medssl.thesis.grids benchmarks/thesis` writes them; a new method adds its rows."""
    stored = {file.name: file.read_text() for file in (ROOT / "benchmarks" / "thesis").glob("*.json")}
    assert stored == repository_grids()


@pytest.mark.parametrize("name", ["3.1", "4.3", "5.6", "figA.1"])
def test_a_sweep_reads_the_grids(name, tmp_path):
    sweeps = sweeps_of_file(ROOT / "benchmarks" / "thesis" / f"{name}.json", tmp_path)
    folders = {training.folder for sweep in sweeps for training in sweep.trainings()}
    assert folders == set(plan_of(name, tmp_path, without_data=True).all_run_folders(tmp_path))


def test_gpu_hours_grow_with_seeds_and_fall_with_speed(tmp_path):
    speed = stored_speed(THESIS)
    assert 5 < speed.teraflops < 7
    one = gpu_hours(THESIS, plan_of("3.1", tmp_path, without_data=True, seeds=(0,)), speed)
    five = gpu_hours(THESIS, plan_of("3.1", tmp_path, without_data=True), speed)
    assert five == pytest.approx(5 * one) and one > 0
    twice = Speed(2 * speed.teraflops, "")
    assert gpu_hours(THESIS, plan_of("3.1", tmp_path, without_data=True), twice) == pytest.approx(five / 2)


def test_list_has_every_entry_and_its_state_without_any_data(tmp_path):
    rows = list_grid(THESIS, tmp_path / "no_data", tmp_path, stored_speed(THESIS)).rows
    by_number = {row.cells[0].text: [cell.text for cell in row.cells] for row in rows}
    assert set(by_number) == set(THESIS.entries)
    assert by_number["3.2"][2:4] == ["kits19 missing, left_atrium missing", "80"]
    assert by_number["3.2"][5] == "not started" and by_number["A.3"][5] == "checked by a test"
    assert by_number["fig3.1"][3:] == ["–", "–", "nothing to run"]


def test_state_counts_finished_runs(tmp_path):
    plan = plan_of("fig3.2", tmp_path, without_data=True)
    folders = plan.all_run_folders(tmp_path)
    folders[0].mkdir(parents=True)
    (folders[0] / "run.json").write_text('{"status": "running"}')
    assert state_text(plan, tmp_path) == "not started"
    (folders[0] / "run.json").write_text('{"status": "finished"}')
    assert state_text(plan, tmp_path) == "1 of 2 runs"
    folders[1].mkdir(parents=True)
    (folders[1] / "run.json").write_text('{"status": "finished"}')
    assert state_text(plan, tmp_path) == "done"
