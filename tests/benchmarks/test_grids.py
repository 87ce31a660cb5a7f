"""The grids behind the tables: every training of them is given keys that its bundle knows."""

from pathlib import Path

import pytest

from medssl.bundle.command import _of_command_line, started
from medssl.bundle.scans import begin_gbdl, begin_scans
from medssl.sweep import sweeps_of_file
from natural_image_ext.bundle import begin_pictures, begin_scenes

ROOT = Path(__file__).parents[2]
GRIDS = sorted(path for path in (ROOT / "benchmarks").glob("*.json"))
BEGIN = {
    "gbdl": begin_gbdl,
    "mcdropout_unet3d": lambda root, seed: begin_scans(root, seed, "supervised"),
    "np_match": begin_pictures,
    "np_semiseg": begin_scenes,
}


@pytest.mark.parametrize("grid", GRIDS, ids=lambda path: path.stem)
def test_keys_of_every_row_are_known_to_its_bundle(grid, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("medssl.bundle.keys.explain_errors", lambda debug=None: None)
    trainings = [training for sweep in sweeps_of_file(grid, tmp_path) for training in sweep.trainings()]
    rows = {training.row.name: training for training in trainings}
    assert rows
    for training in rows.values():
        words = training.command()[training.command().index("run") :]
        with started(_of_command_line(("bundle/__main__.py", *words))):
            BEGIN[training.row.bundle.name](training.row.bundle, 0)
