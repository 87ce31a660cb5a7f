"""start_from: the weights of a bundle, a run or a file that fit are loaded, and the user reads which do not."""

import shutil

import pytest
import torch
from methods.stages import built, small_network, trainer_of
from torch import nn

from medssl.bundle.networks import (
    LoadedWeights,
    NetworkOptions,
    load_fitting_weights,
    prepared_network,
    require_fitting,
)
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import SessionOptions
from medssl.core.checkpoint import load_tensors, save_tensors
from medssl.core.errors import CheckpointError, ConfigError
from medssl.core.seeding import seed_everything
from medssl.losses import DiceCE
from medssl.methods.method import Schedule
from medssl.methods.registry import find_method
from medssl.networks import MCDropoutUNet3D

OLD_RUN = "tests/old_runs/mcdropout_unet3d"


@pytest.fixture
def run(request, tmp_path):
    """The folder of a finished run, whose network has the widths 4 and 6."""
    return shutil.copytree(request.config.rootpath / OLD_RUN, tmp_path / "run")


def network(num_classes=2, widths=(4, 6)):
    return MCDropoutUNet3D(1, num_classes, widths=widths)


def weights_of(folder):
    return load_tensors(folder / "models" / "model.pt")


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("part", ["bundle", "bundle/models/model.pt", "."])
def test_all_weights_come_from_a_bundle_its_file_or_the_run_around_it(run, part):
    fresh = network()
    report = load_fitting_weights(fresh, run / part)
    assert same(fresh.state_dict(), weights_of(run / "bundle"))
    assert len(report.loaded) == len(fresh.state_dict()) and report.left == {}
    assert report.text().endswith(f"{len(report.loaded)} of {len(report.loaded)} tensors loaded")


def test_a_run_without_a_bundle_gives_its_newest_checkpoint(run):
    shutil.rmtree(run / "bundle")
    fresh = network()
    load_fitting_weights(fresh, run)
    newest = load_tensors(run / "checkpoints" / "epoch_0002.pt")["method"]
    assert all(torch.equal(newest[f"network.{name}"], value) for name, value in fresh.state_dict().items())


def test_a_file_of_a_checkpoint_gives_the_network_of_its_epoch(run):
    fresh = network()
    load_fitting_weights(fresh, run / "checkpoints" / "epoch_0001.pt")
    first = load_tensors(run / "checkpoints" / "epoch_0001.pt")["method"]
    assert all(torch.equal(first[f"network.{name}"], value) for name, value in fresh.state_dict().items())
    assert not same(fresh.state_dict(), weights_of(run / "bundle"))


def test_what_does_not_fit_stays_as_it_is_and_is_reported(run, capsys):
    seed_everything(3)
    before = {name: value.clone() for name, value in network(num_classes=4).state_dict().items()}
    seed_everything(3)
    prepared = prepared_network(network(num_classes=4), "cpu", NetworkOptions(start_from=str(run)), SessionOptions())
    stored, after = weights_of(run / "bundle"), prepared.state_dict()
    left = [name for name in after if stored[name].shape != after[name].shape]
    assert left, "the last layer has another number of classes"
    for name in after:
        assert torch.equal(after[name], before[name] if name in left else stored[name]), name
    text = capsys.readouterr().out
    assert f"start_from {run}: {len(after) - len(left)} of {len(after)} tensors loaded; not loaded: " in text
    shape = f"{tuple(stored[left[0]].shape)} there, {tuple(after[left[0]].shape)} here"
    assert f"{left[0]} ({shape})" in text


def test_tensors_that_are_not_stored_there_are_reported(run):
    class Wider(MCDropoutUNet3D):
        def __init__(self):
            super().__init__(1, 2, widths=(4, 6))
            self.extra = nn.Linear(2, 2)

    report = load_fitting_weights(Wider(), run)
    assert report.left == {"extra.weight": "not stored there", "extra.bias": "not stored there"}


def test_tensors_that_are_stored_there_for_nothing_are_counted(run, tmp_path):
    save_tensors({**weights_of(run / "bundle"), "extra.weight": torch.ones(2)}, tmp_path / "model.pt")
    report = load_fitting_weights(network(), tmp_path / "model.pt")
    assert report.left == {} and report.text().endswith("; 1 stored there have no place here")


def test_a_run_that_goes_on_needs_the_weights_it_began_with_no_more(run, tmp_path, capsys):
    options = NetworkOptions(start_from=str(tmp_path / "gone.pt"))
    prepared_network(network(), "cpu", options, SessionOptions(output_dir=str(run), resume=True))
    assert "start_from" not in capsys.readouterr().out
    with pytest.raises(CheckpointError):
        prepared_network(network(), "cpu", options, SessionOptions(output_dir=str(tmp_path / "new"), resume=True))


def test_a_long_list_is_cut_short():
    left = {f"layer{number}": "not stored there" for number in range(8)}
    text = LoadedWeights("run", ("first",), left, unused=0).text()
    assert "1 of 9 tensors loaded" in text and "layer4 (not stored there) and 3 more" in text and "layer5" not in text


def test_nothing_that_fits_is_an_error_that_names_both_sides(run):
    with pytest.raises(CheckpointError, match=r"no tensor fits Linear \(its first is weight, there it is "):
        load_fitting_weights(nn.Linear(3, 2), run)


def test_a_folder_without_weights_and_a_missing_file_are_errors(tmp_path):
    with pytest.raises(
        CheckpointError, match=r"no weights\. Give a trained bundle, a run with a checkpoint, or a file"
    ):
        load_fitting_weights(network(), tmp_path)
    with pytest.raises(CheckpointError):
        load_fitting_weights(network(), tmp_path / "nowhere.pt")


def test_of_a_training_with_a_moving_average_the_average_is_taken(tmp_path):
    kind = find_method("mean_teacher")

    def build(dropout):
        return kind(small_network(dropout), DiceCE(), kind.Options(), Schedule(4, 2))

    method = built(build)
    trainer = trainer_of("mean_teacher", method, epochs=1)
    trainer.run()
    save_tensors(trainer.state_dict(), tmp_path / "epoch_0001.pt")
    assert not same(method.network.state_dict(), method.evaluated.state_dict())
    fresh = small_network()
    report = load_fitting_weights(fresh, tmp_path / "epoch_0001.pt")
    assert report.left == {} and same(fresh.state_dict(), method.evaluated.state_dict())


def test_without_start_from_the_weights_stay(capsys):
    fresh = network()
    before = {name: value.clone() for name, value in fresh.state_dict().items()}
    assert same(prepared_network(fresh, "cpu", NetworkOptions(), SessionOptions()).state_dict(), before)
    assert "start_from" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("built_network", "samples", "finding"),
    [
        (lambda: network(num_classes=3), 2, "3"),
        (lambda: MCDropoutUNet3D(1, 2, widths=(4, 6), dropout=0.0), 2, "has no dropout layer"),
    ],
)
def test_a_network_that_does_not_fit_is_refused_before_anything_is_trained(built_network, samples, finding):
    data = ScanData(dataset_name="phantom", patch_size=[32, 32, 8])
    with pytest.raises(ConfigError, match=finding):
        require_fitting(built_network(), data, samples, "eager")


def test_weights_that_are_not_there_are_refused_with_what_is_expected_and_the_way_out(tmp_path):
    expected = r"gone: no such file or folder\. Expected a trained bundle, a run, or a file of weights"
    with pytest.raises(CheckpointError, match=expected) as caught:
        load_fitting_weights(network(num_classes=2), tmp_path / "gone")
    assert "leave --start_from out" in str(caught.value)
