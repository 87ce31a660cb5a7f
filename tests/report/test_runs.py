"""Reading a run folder back, whole, partial or damaged."""

import json
import math

import pytest

from medssl.core.errors import DataError
from medssl.report import load_run


def test_a_finished_run_is_read_whole(finished_run):
    run = load_run(finished_run)

    assert run.status == "finished"
    assert run.structures == {1: "kidney"}
    assert len(run.split["cases"]) == 4
    assert run.settings["samples"] == 20
    assert run.per_case[0]["dice"] == 0.9
    assert math.isnan(run.per_case[2]["hd95_mm"])
    assert run.per_case[2]["empty"] == "prediction"


def test_a_folder_without_run_json_is_refused_by_name(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"not a run folder, run\.json is missing \(found: notes\.txt\)"):
        load_run(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        load_run(tmp_path / "nowhere")


def test_missing_facts_are_named(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"name": "x", "method": "gbdl", "status": "running"}))
    with pytest.raises(DataError, match="dataset, labelled, seed missing"):
        load_run(tmp_path)


def test_a_run_that_just_began_has_empty_parts(make_run):
    folder = make_run(rows=None, status="running")
    for name in ("split.json", "history.jsonl"):
        (folder / name).unlink()

    run = load_run(folder)

    assert (run.split, run.history, run.per_case, run.settings) == ({}, [], [], {})


def test_the_half_written_last_line_of_a_killed_run_is_left_out(make_run):
    folder = make_run()
    with (folder / "history.jsonl").open("a") as stream:
        stream.write('{"kind": "step", "lo')
    assert len(load_run(folder).history) == 24


def test_a_damaged_line_in_the_middle_is_an_error(make_run):
    folder = make_run()
    text = (folder / "history.jsonl").read_text()
    (folder / "history.jsonl").write_text("{broken\n" + text)
    with pytest.raises(DataError, match=r"history\.jsonl, record 1: not JSON"):
        load_run(folder)


def test_steps_repeated_after_a_resume_count_once_with_their_last_value(make_run):
    folder = make_run()
    with (folder / "history.jsonl").open("a") as stream:
        stream.write(json.dumps({"kind": "step", "epoch": 1, "step": 3, "loss": 9.0}) + "\n")

    steps = load_run(folder).records("step")

    assert [record["step"] for record in steps] == list(range(1, 21))
    assert steps[2]["loss"] == 9.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case,structure\na,kidney\n", "column dice missing"),
        ("case,structure,dice\na,kidney,good\n", "line 2: could not convert string to float"),
        ("case,structure,dice\na,kidney,0.5,0.6\n", "line 2: .* Evaluate again"),
    ],
)
def test_a_damaged_per_case_table_is_an_error(make_run, text, message):
    folder = make_run()
    (folder / "evaluation" / "per_case.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_run(folder)
