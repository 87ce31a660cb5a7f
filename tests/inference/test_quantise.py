"""Int8 graphs: made from training scans only, refused for other weights, used only with their measured loss."""

import csv
import importlib.util
import json
import shutil
import subprocess
import sys
import textwrap
import types

import pytest
import torch

from medssl.core.errors import ConfigError, error_behind
from medssl.data import volumes
from medssl.data.split import Split, read_split
from medssl.inference import MCDropoutInferer, load_predictor, quantise, require_bundle
from medssl.inference.backends import int8, open_backend
from medssl.inference.int8_calibration import calibration_windows, import_nncf
from medssl.inference.predictor import bundle_root
from medssl.networks import MCDropoutUNet3D
from medssl.networks.weights import weights_digest
from medssl.security import check_bundle

WINDOW = (16, 16, 4)
MEASURED = {
    **{"role": "validation", "cases": 3, "samples": 5, "dice": 0.8, "dice_difference": -0.002},
    **{"pavpu": 0.9, "pavpu_difference": 0.001, "entropy_correlation": 0.99},
}
NEAR_FLOAT32 = """
    import sys, torch
    from medssl.inference.backends.int8 import read_models, write_models
    from medssl.inference.backends.openvino import OpenVINOBackend
    from medssl.inference.int8_calibration import quantised_models
    from medssl.inference import MCDropoutInferer
    from medssl.networks import MCDropoutUNet3D
    from pathlib import Path

    torch.manual_seed(0)
    network, image = MCDropoutUNet3D(1, 3, widths=(4, 8)).eval(), torch.rand(1, 1, 20, 24, 7)
    folder = Path(sys.argv[1])
    write_models(*quantised_models(network, [image[..., i : i + 16, i : i + 16, :4] for i in range(4)]), folder)
    assert sys.modules["openvino_telemetry"] is None  # nothing is reported over the network
    for samples in (0, 3):
        for mode in ("reference", "exact", "fast"):
            found = []
            for name in ("eager", "int8"):
                torch.manual_seed(3)
                inferer = MCDropoutInferer((16, 16, 4), (8, 8, 2), samples, mode=mode, backend=name)
                inferer.use(OpenVINOBackend(network, *read_models(folder)), network)
                found.append(inferer.statistics(image, network))
            apart = (found[0].mean - found[1].mean).abs()
            print(samples, mode, float(apart.mean()), float(apart.max()))
            assert 0 < apart.max() < 0.1 and apart.mean() < 0.01
"""


@pytest.fixture
def network():
    torch.manual_seed(0)
    return MCDropoutUNet3D(1, 3, widths=(4, 8)).eval()


@pytest.fixture
def models_dir(network, tmp_path):
    """A folder of weights with the record of graphs, whose files hold nothing."""
    folder = int8.int8_folder(tmp_path)
    folder.mkdir()
    for name in int8.FILES:
        (folder / name).write_text(name)
    files = {name: volumes.content_digest(folder / name) for name in int8.FILES}
    record = {"weights": weights_digest(network), "window": list(WINDOW), "files": files, "measured": MEASURED}
    int8.write_record(int8.StoredGraphs(folder, record))
    return tmp_path


@pytest.fixture
def without_openvino(monkeypatch):
    """Opens the back end without its graphs: what is checked and printed before and after stays."""
    monkeypatch.setattr(int8, "read_models", lambda folder: ("encoder", "decoder"))
    monkeypatch.setattr("medssl.inference.backends.openvino.compiled", lambda model: model)


@pytest.fixture(scope="module")
def quantised(trained_run, tmp_path_factory):
    """A trained run with int8 graphs, and what the command printed."""
    require_nncf()
    run = shutil.copytree(trained_run, tmp_path_factory.mktemp("int8") / "run")
    return run, medssl("quantise", run, "--cases", 1, "--samples", 2, "--windows", 4)


def require_nncf():
    if importlib.util.find_spec("nncf") is None or importlib.util.find_spec("openvino") is None:
        pytest.skip("needs nncf and OpenVINO: pip install 'medssl[int8]'")


def medssl(*arguments):
    """What the command prints, from a process of its own: a crash in OpenVINO must not end the tests."""
    command = [sys.executable, "-m", "medssl", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_calibration_reads_training_scans_only(trained_run, monkeypatch):
    read, read_volume = [], volumes.read_volume
    monkeypatch.setattr(volumes, "read_volume", lambda address: read.append(str(address)) or read_volume(address))
    monkeypatch.setattr(quantise, "import_nncf", lambda: None)

    def stop(network, windows):
        raise StopIteration(windows)

    monkeypatch.setattr(quantise, "quantised_models", stop)
    with pytest.raises(StopIteration) as stopped:
        quantise.quantise_run(trained_run, windows=9)
    split = read_split(trained_run / "split.json")
    training = {str(case["image"]) for role in ("labelled", "unlabelled") for case in split.role(role)}
    assert len(split.role("validation")) and len(split.role("test")) and len(training) == 7
    assert set(read) == training, "all of them, and no label, validation or test case"
    assert len(stopped.value.args[0]) == 9


def test_windows_follow_from_the_seed_and_come_from_every_scan_alike(trained_run):
    predictor, cases = load_predictor(trained_run), read_split(trained_run / "split.json").role("labelled")
    drawn = [calibration_windows(cases, predictor.pipeline, WINDOW, 4, seed) for seed in (1, 1, 2)]
    assert all(window.shape == (1, 1, *WINDOW) for window in drawn[0]) and len(drawn[0]) == 4
    assert all(torch.equal(a, b) for a, b in zip(*drawn[:2], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(drawn[0], drawn[2], strict=True))


def test_loss_is_measured_on_validation_cases_and_on_test_cases_only_without_them():
    cases = [{"id": name, "patient": name, "image": name, "role": name} for name in ("validation", "test")]
    assert [case["id"] for case in quantise.measured_cases(Split(cases, {}), None)[1]] == ["validation"]
    role, chosen = quantise.measured_cases(Split(cases[1:], {}), None)
    assert role == "test" and [case["id"] for case in chosen] == ["test"]


def test_every_use_prints_the_measured_loss(network, models_dir, without_openvino, capsys):
    inferer = MCDropoutInferer(WINDOW, WINDOW, 2, backend="int8")
    inferer.prepare(network, models_dir)
    assert capsys.readouterr().out == (
        "int8: on 3 validation cases (T = 5) Dice 0.8000, -0.0020 from float32; PAvPU 0.9000, +0.0010; "
        "entropy correlation 0.9900\n"
    )
    assert inferer.settings()["graphs"] == int8.read_record(models_dir).digest


def test_run_without_graphs_is_told_the_command(trained_run):
    with pytest.raises(RuntimeError) as caught:
        load_predictor(trained_run, backend="int8")
    error = error_behind(caught.value)
    assert isinstance(error, ConfigError) and "medssl quantise RUN" in str(error) and "quantised.json" in str(error)


def test_graphs_of_other_weights_are_refused(network, models_dir, without_openvino):
    inferer = MCDropoutInferer(WINDOW, WINDOW, 2, backend="int8")
    inferer.prepare(network, models_dir)
    with torch.no_grad():
        network.classifier.bias += 1
    with pytest.raises(ConfigError, match=r"quantised\.json: made for weights \w+, the network has .*medssl quantise"):
        inferer(torch.zeros(1, 1, *WINDOW), network)


def test_graphs_of_other_windows_are_refused(network, models_dir, without_openvino):
    with pytest.raises(ConfigError, match=r"made for window \[16, 16, 4\], the network has \[8, 8, 4\]"):
        open_backend("int8", network, (8, 8, 4), models_dir)


def test_graphs_that_were_not_measured_are_refused(network, models_dir, without_openvino):
    (int8.int8_folder(models_dir) / "decoder.bin").write_text("another")
    with pytest.raises(ConfigError, match=r"decoder\.bin: not the graph that was measured.*medssl quantise"):
        open_backend("int8", network, WINDOW, models_dir)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {}}', json.dumps({"measured": MEASURED, "files": {}})])
def test_record_that_says_too_little_is_refused(models_dir, text):
    (int8.int8_folder(models_dir) / int8.RECORD).write_text(text)
    with pytest.raises(ConfigError, match=r"quantised\.json: not a record of int8 graphs.*medssl quantise"):
        int8.read_record(models_dir)


def test_graphs_written_anew_have_no_record_until_they_are_measured(models_dir, monkeypatch):
    class Writer:
        @staticmethod
        def save_model(model, path, compress_to_fp16):
            assert not compress_to_fp16
            path.write_text(model)
            path.with_suffix(".bin").write_text(model)

    monkeypatch.setattr(int8, "import_openvino", lambda: Writer)
    files = int8.write_models("new encoder", "new decoder", int8.int8_folder(models_dir))
    assert list(files) == list(int8.FILES)
    with pytest.raises(ConfigError, match="no int8 graphs"):
        int8.read_record(models_dir)


def test_training_with_int8_is_refused_before_it_starts(bundle_dir):
    require_bundle(bundle_dir, "openvino")
    with pytest.raises(ConfigError, match=r"finished run.*medssl quantise RUN"):
        require_bundle(bundle_dir, "int8")


def test_missing_nncf_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("medssl.inference.int8_calibration.import_openvino", lambda: None)
    monkeypatch.setitem(sys.modules, "nncf", None)
    with pytest.raises(ConfigError, match=r"medssl\[int8\]"):
        import_nncf()


def test_network_of_another_kind_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(quantise, "import_nncf", lambda: None)
    other = {"_target_": "torch.nn.Conv3d", "in_channels": 1, "out_channels": 2, "kernel_size": 1}
    for name, text in (("configs/inference.json", json.dumps({"network_def": other})), ("models/model.pt", "")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match="Conv3d: has no encode"):
        quantise.quantise_run(tmp_path)


def test_bundle_that_predicts_by_another_inferer_is_refused_by_name():
    class SliceInferer:
        samples = 5

    predictor = types.SimpleNamespace(inferer=SliceInferer())
    with pytest.raises(ConfigError, match="serve MCDropoutInferer, this bundle predicts by SliceInferer"):
        quantise._sampling_by_dropout(predictor)


@pytest.mark.slow
def test_mean_probabilities_are_near_float32_in_every_mode(tmp_path):
    require_nncf()
    command = [sys.executable, "-c", textwrap.dedent(NEAR_FLOAT32), str(tmp_path)]
    subprocess.run(command, check=True, timeout=500)  # a crash in it must not end the tests


@pytest.mark.slow
def test_command_prints_and_stores_the_loss_on_validation_cases(quantised):
    run, printed = quantised
    rows = list(csv.DictReader((run / "int8.csv").open()))
    assert [row["backend"] for row in rows] == ["eager", "int8"]
    assert rows[0]["case"] in {case["id"] for case in read_split(run / "split.json").role("validation")}
    graphs = int8.read_record(bundle_root(run) / "models")
    found = graphs.record["measured"]
    assert (found["role"], found["cases"], found["samples"]) == ("validation", 1, 2)
    assert found["dice_difference"] == pytest.approx(float(rows[1]["dice_difference"]), abs=1e-6)
    assert graphs.measured_loss() in printed and "differences from the first line" in printed
    assert check_bundle(run / "bundle") == []


@pytest.mark.slow
def test_exported_bundle_predicts_in_int8_and_says_what_it_loses(quantised, phantom_dir, tmp_path):
    run, _ = quantised
    bundle = shutil.copytree(run / "bundle", tmp_path / "elsewhere")
    scan = phantom_dir / "images" / "phantom_000.nii.gz"
    printed = medssl("predict", scan, tmp_path / "out", "--bundle", bundle, "--backend", "int8")
    assert int8.read_record(bundle / "models").measured_loss() in printed and "1 predicted" in printed
    made_by = json.loads((tmp_path / "out" / "phantom_000.json").read_text())["made_by"]
    assert made_by["backend"] == "int8" and made_by["graphs"] == int8.read_record(bundle / "models").digest
