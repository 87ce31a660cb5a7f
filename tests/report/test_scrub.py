"""Nothing of the machine's paths and servers is left in a text."""

from pathlib import Path

import pytest

from medssl.report.scrub import command_without_paths, without_paths

FOLDER = Path("/home/jane/runs/gbdl_0")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/jane/runs/gbdl_0/checkpoints/last.pt", "checkpoints/last.pt"),
        ("/home/jane doe/my scans", "…/my scans"),
        ("~/scans/", "…/scans"),
        (r"C:\Users\jane\scans", "…/scans"),
        ("cannot read /home/jane/a.nii.gz: truncated", "cannot read …/a.nii.gz: truncated"),
        ("cannot read '/home/jane doe/a b.nii.gz'", "cannot read '…/a b.nii.gz'"),
        ("/data/a.h5::image: empty", "…/a.h5::image: empty"),
        ("['/home/jane/a', '/home/jane/b']", "['…/a', '…/b']"),
        ("http://user:secret@host:5000", "(address)"),
        ("sqlite:////home/jane/mlflow.db", "…/mlflow.db"),
        ("file:///home/jane/mlruns", "…/mlruns"),
        ("mm/voxel, 1/2, $@a / @b", "mm/voxel, 1/2, $@a / @b"),
        ("configs/train.json", "configs/train.json"),
    ],
)
def test_paths_are_cut_and_other_text_is_kept(text, clean):
    assert without_paths(text, FOLDER) == clean


def test_lists_and_dicts_are_cleaned_inside_and_numbers_kept():
    value = {"dirs": ["/home/jane/a", 3], "lr": 0.1, "none": None}
    assert without_paths(value, FOLDER) == {"dirs": ["…/a", 3], "lr": 0.1, "none": None}


def test_command_keeps_its_options_and_loses_its_paths():
    command = (
        "/opt/env/bin/python -m monai.bundle run --dir '/home/jane doe/scans' --out=/home/jane/x --net '{\"a\": 1}'"
    )
    assert command_without_paths(command, FOLDER) == (
        "…/python -m monai.bundle run --dir …/scans --out=…/x --net '{\"a\": 1}'"
    )


def test_a_command_with_an_open_quote_is_cleaned_too():
    assert command_without_paths("run --note 'open /home/jane/x", FOLDER).endswith(" …/x")
