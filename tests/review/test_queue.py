import csv

import pytest

from medssl.core import progress
from medssl.core.errors import ConfigError
from medssl.data.volumes import read_volume, write_nifti
from medssl.review.effort import Effort
from medssl.review.queue import build_queue, time_text
from medssl.review.review_page import write_page
from medssl.review.sources import source_of_predictions, source_of_run
from medssl.review.strategies import order
from medssl.review.worklist import write_worklist

NEEDS = {"calm": 0.1, "wild": 0.9, "fair": 0.55}


def ids(queue):
    return [entry.measured.case.id for entry in queue.entries]


def rows_of(queue, tmp_path):
    with write_worklist(queue, tmp_path / "worklist.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_cases_stand_in_the_order_of_the_shared_strategies(make_run):
    source = source_of_run(make_run(NEEDS))
    queue = build_queue(source)
    assert ids(queue) == ["wild", "fair", "calm"] and [entry.rank for entry in queue.entries] == [1, 2, 3]
    records = [entry.measured.record for entry in queue.entries]
    assert ids(build_queue(source, "random", seed=4)) == order(records, "random", 4)
    needs = [entry.need for entry in build_queue(source, "structure", "kidney").entries]
    assert needs == sorted((r["structures"]["kidney"]["surroundings_entropy_bits"] for r in records), reverse=True)


def test_log_tells_how_many_cases_were_looked_at(make_run, tmp_path, monkeypatch):
    begun = []
    begin = progress._display.begin
    monkeypatch.setattr(progress._display, "begin", lambda piece: begun.append(piece) or begin(piece))
    queue = build_queue(source_of_run(make_run({"fair": 0.2, "bad": 0.9})))
    write_page(queue, tmp_path / "review.html", cases=1, slices=1)
    told = [piece.text() for piece in begun]
    assert told == ["looking at predictions: 2 of 2 cases", "pictures: 1 of 1 cases"]


def test_a_run_and_stored_records_of_the_same_maps_rank_the_same(make_run, make_predictions):
    scans, predictions = make_predictions(NEEDS)
    of_records = build_queue(source_of_predictions(scans, predictions))
    of_run = build_queue(source_of_run(make_run(NEEDS)))
    assert [entry.need for entry in of_records.entries] == [entry.need for entry in of_run.entries]
    assert [e.measured.names for e in of_records.entries] == [e.measured.names for e in of_run.entries]


def test_cases_with_bad_maps_come_first_and_the_rest_is_ranked(make_run, tmp_path):
    folder = make_run(NEEDS)
    (folder / "evaluation" / "predictions" / "fair_entropy.nii.gz").unlink()
    queue = build_queue(source_of_run(folder))
    assert list(queue.failures) == ["fair"] and ids(queue) == ["wild", "calm"]
    assert [entry.rank for entry in queue.entries] == [2, 3]
    assert (
        "fair_entropy.nii.gz: no entropy map" in queue.failures["fair"] and str(tmp_path) not in queue.failures["fair"]
    )


def test_a_record_without_a_score_is_a_failure_not_an_end(make_predictions):
    scans, predictions = make_predictions(NEEDS)
    (predictions / "wild.json").write_text('{"id": "wild", "structures": {}}')
    queue = build_queue(source_of_predictions(scans, predictions))
    assert "no score" in queue.failures["wild"] and ids(queue) == ["fair", "calm"]


def test_an_unknown_structure_is_an_error_not_a_failure_of_every_case(make_run):
    with pytest.raises(ConfigError, match=r"'liver': not among those of case"):
        build_queue(source_of_run(make_run(NEEDS)), "structure", "liver")


def test_the_budget_takes_cases_in_order_and_says_what_is_passed_over(make_run, tmp_path):
    source = source_of_run(make_run(NEEDS))
    queue = build_queue(source, effort=Effort(open_seconds=60, slice_seconds=30, area_seconds=0), budget_seconds=300)
    # wild and fair: 60 s and 4 slices; calm: no slice above 0.5 bits
    assert [entry.seconds for entry in queue.entries] == [180, 180, 60]
    assert [entry.measured.case.id for entry in queue.chosen] == ["wild", "calm"]
    rows = rows_of(queue, tmp_path)
    assert [row["chosen"] for row in rows] == ["yes", "no", "yes"]
    assert rows[1]["note"] == "Passed over: takes 3.0 min, 2.0 min were left"


def test_worklist_holds_a_row_per_case_with_numbers_of_every_structure(make_run, tmp_path):
    folder = make_run(NEEDS)
    (folder / "evaluation" / "predictions" / "fair_seg.nii.gz").unlink()
    (folder / "evaluation" / "per_case.csv").write_text("case,structure,dice\nfair,kidney,0.5\n")
    failed, wild, calm = rows_of(build_queue(source_of_run(folder)), tmp_path)
    assert failed["rank"] == "1" and failed["case"] == "fair" and failed["note"].startswith("failed: ")
    assert failed["minutes"] == "" and wild["chosen"] == ""
    assert (wild["rank"], wild["case"], calm["rank"]) == ("2", "wild", "3")
    assert float(wild["kidney_ml"]) == pytest.approx(3.456) and float(wild["tumour_ml"]) == pytest.approx(0.432)
    assert float(wild["need"]) == pytest.approx(
        (float(wild["kidney_entropy_bits"]) + float(wild["tumour_entropy_bits"])) / 2, abs=2e-6
    )
    assert wild["plane"] == "axial" and wild["slices_to_check"] == "4" and wild["uncertain_cm2"] == "10.24"
    assert float(wild["minutes"]) == pytest.approx((30 + 2 * 4 + 2 * 10.24) / 60, abs=0.01)
    assert set(wild["uncertain_slices"].split()) <= {"5", "6", "7", "8"}


def test_a_run_whose_scans_are_gone_is_ranked_with_a_note(make_run, tmp_path):
    folder = make_run(NEEDS)
    for scan in (tmp_path / "scans").iterdir():
        scan.unlink()
    queue = build_queue(source_of_run(folder))
    assert not queue.failures and all("Scan not found" in entry.note for entry in queue.entries)


def test_where_nothing_was_found_the_case_is_ranked_by_the_rest(make_run):
    folder = make_run(NEEDS)
    file = folder / "evaluation" / "predictions" / "calm_seg.nii.gz"
    known = read_volume(file)
    write_nifti(file, 0 * known.array, known.affine, "uint8")
    queue = build_queue(source_of_run(folder))
    entry = next(entry for entry in queue.entries if entry.measured.case.id == "calm")
    assert entry.need == pytest.approx(0.1, abs=1e-6)  # the most uncertain percent of the scan
    assert entry.measured.record["structures"]["kidney"]["volume_ml"] == 0


@pytest.mark.parametrize(
    ("seconds", "text"), [(30, "0.5 min"), (3569, "59.5 min"), (3570, "1 h 00 min"), (9000, "2 h 30 min")]
)
def test_times_are_written_in_minutes_and_hours(seconds, text):
    assert time_text(seconds) == text
