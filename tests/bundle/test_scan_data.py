"""A training's data: what is odd is told once before it begins, what is wrong is refused."""

import shutil

import pytest

from medssl.bundle import ScanData
from medssl.core.errors import ConfigError, DataError
from medssl.data.volumes import read_volume, write_nifti


@pytest.fixture
def folder_of(phantom_dir, tmp_path):
    """folder_of(ids, labelled): phantom scans under these ids; the first `labelled` of them have labels."""

    def make(ids, labelled):
        for part, count in (("images", len(ids)), ("labels", labelled)):
            (tmp_path / "own" / part).mkdir(parents=True)
            for number, case_id in enumerate(ids[:count]):
                name = f"phantom_{number:03d}.nii.gz"
                shutil.copy(phantom_dir / part / name, tmp_path / "own" / part / f"{case_id}.nii.gz")
        return tmp_path / "own"

    return make


def test_patient_on_both_sides_of_the_split_is_told_in_one_line(folder_of, tmp_path, capsys):
    folder = folder_of([f"patient{number // 2}-f{number % 2}" for number in range(8)], 8)
    ScanData(dataset_name="folder", dataset_dir=str(folder), test=3).check(tmp_path)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning")]
    assert len(lines) == 1 and "on both sides of the split" in lines[0] and "patients.csv" in lines[0]


def test_patients_of_the_table_stay_together_and_nothing_is_told(folder_of, tmp_path, capsys):
    ids = [f"patient{number // 2}-f{number % 2}" for number in range(8)]
    folder = folder_of(ids, 8)
    (folder / "patients.csv").write_text("case,patient\n" + "".join(f"{i},{i[:8]}\n" for i in ids))
    ScanData(dataset_name="folder", dataset_dir=str(folder), test=3).check(tmp_path)
    assert "warning" not in capsys.readouterr().out


def test_one_label_is_told_to_leave_no_test_case(folder_of, tmp_path, capsys):
    data = ScanData(dataset_name="folder", dataset_dir=str(folder_of(["a", "b", "c"], 1)))
    data.check(tmp_path)
    assert "warning: the split has no test case." in capsys.readouterr().out


def test_label_with_ids_of_its_own_is_refused_before_it_becomes_a_class(folder_of, tmp_path):
    folder = folder_of(["a", "b", "c", "d"], 4)
    label = read_volume(folder / "labels" / "b.nii.gz")
    write_nifti(folder / "labels" / "b.nii.gz", label.array * 100, label.affine, "uint8")
    with pytest.raises(DataError, match=r"b\.nii\.gz: ids 100"):
        ScanData(dataset_name="folder", dataset_dir=str(folder)).check(tmp_path)


def test_region_is_one_key_and_the_old_one_means_the_same(phantom_dir):
    given = {"dataset_name": "phantom", "dataset_dir": str(phantom_dir), "region_size": [32, 32]}
    assert ScanData(**given, region="label").pipeline == ScanData(**given, paper_crop=True).pipeline
    assert ScanData(**given, region="centre").pipeline.is_centred
    assert ScanData(**given, region="structures").pipeline.geometry == ScanData(**given).pipeline.geometry
    for both in ({"region": "centre", "paper_crop": True}, {"region": "middle"}):
        with pytest.raises(ConfigError, match="region"):
            _ = ScanData(**given, **both).pipeline
