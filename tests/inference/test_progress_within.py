"""Long loops of predictions count every step that they announce, and none goes on after its end."""

import pytest
import torch
from torch import nn

from medssl.core import progress
from medssl.inference import Evaluation, MCDropoutInferer, SliceInferer, load_predictor
from medssl.inference.compare_modes import DEFAULT_SIDES, write_mode_comparison
from medssl.inference.sample_curve import write_sample_curve
from medssl.networks import MCDropoutUNet3D
from medssl.networks.sampled import SampledNetwork

WINDOW, STRIDE = (16, 16, 4), (8, 8, 2)


@pytest.fixture
def works(monkeypatch):
    """All works that begin; they must have ended when the test has."""
    begun = []
    begin = progress._display.begin
    monkeypatch.setattr(progress._display, "begin", lambda piece: begun.append(piece) or begin(piece))
    yield begun
    assert progress._display.works == []


def counted(works, title):
    return [(piece.done, piece.total, piece.unit) for piece in works if piece.title == title]


@pytest.mark.parametrize("mode", ["reference", "exact", "fast"])
@pytest.mark.parametrize("samples", [0, 3])
def test_every_pass_of_every_window_is_counted(mode, samples, works):
    inferer = MCDropoutInferer(WINDOW, STRIDE, samples, window_batch=2, mode=mode)
    inferer.statistics(torch.rand(1, 1, 20, 24, 7), MCDropoutUNet3D(1, 2, widths=(4, 8)))
    passes = sum(inferer.plan((20, 24, 7), max(1, samples)).values())
    assert counted(works, "windows") == [(passes, passes, "passes")]


def test_network_that_fails_leaves_no_work_behind(works):
    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        MCDropoutInferer(WINDOW, STRIDE, 0, window_batch=1).statistics(torch.rand(1, 1, *WINDOW), Failing())
    assert counted(works, "windows") == [(0, 1, "passes")]


def test_every_slice_is_counted(works):
    class Channels(SampledNetwork):
        def sampler(self, images):
            return lambda number: iter([images.softmax(1)[None]])

    SliceInferer(slice_batch=2).statistics(torch.rand(1, 1, 4, 4, 5), Channels())
    assert counted(works, "sampling") == [(5, 5, "slices")]


@pytest.fixture
def predictor(trained_run):
    return load_predictor(trained_run, samples=1)


def test_evaluation_counts_its_cases_and_names_the_one_that_is_predicted(predictor, phantom_dir, tmp_path, works):
    cases = [
        {
            "id": name,
            "image": str(phantom_dir / "images" / f"{name}.nii.gz"),
            "label": str(phantom_dir / "labels" / f"{name}.nii.gz"),
        }
        for name in ("phantom_000", "phantom_001")
    ]
    Evaluation(predictor, cases, tmp_path / "out").run()
    assert counted(works, "evaluation") == [(2, 2, "cases")]
    assert [piece.title for piece in works] == ["evaluation", "phantom_000", "windows", "phantom_001", "windows"]


def test_trials_count_their_cases(trained_run, tmp_path, works, monkeypatch):
    for module in ("sample_curve", "compare_modes"):
        monkeypatch.setattr(f"medssl.inference.{module}.write_rows", lambda *_: None)  # the run is everybody's
    write_sample_curve(trained_run, [1, 2], limit=1)
    assert counted(works, "samples") == [(1, 1, "cases")]
    write_mode_comparison(trained_run, DEFAULT_SIDES, samples=1, limit=1, again=0)
    assert counted(works, "comparison") == [(1, 1, "cases")] and counted(works, "modes") == [(2, 2, "modes")]
