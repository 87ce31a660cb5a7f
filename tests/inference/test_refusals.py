"""Careless input to the commands that predict: what is said and the exit code, before anything is read or built."""

import json
import re
import subprocess
import sys

import psutil
import pytest
from typer.testing import CliRunner

from medssl.bundle import run_bundle
from medssl.cli import app
from medssl.core.errors import ConfigError, error_behind
from medssl.inference import MCDropoutInferer, load_predictor

NONSENSE = {
    "samples": ("-5", "samples -5: expected at least 0"),
    "stride of zeros": ("0,0,0", "stride 0: expected at least 1"),
    "stride of two": ("8,8", "stride 8,8: 2 numbers, expected 3"),
    "stride of four": ("[8,8,8,8]", "stride 8,8,8,8: 4 numbers, expected 3"),
    "negative stride": ("-8,8,8", "stride -8: expected at least 1"),
    "mode": ("quick", "mode 'quick' is unknown. Known: exact, fast, reference."),
    "backend": ("gpu", "backend 'gpu' is unknown. Known: compile, eager, int8, openvino."),
    "shard": ("9/3", "shard '9/3': expected i/n with 1 <= i <= n"),
}
AT_LEAST_ONE = re.compile("greater than or equal to 1|x>=1")  # versions of typer differ
NUMBERS = [name for name in NONSENSE if name != "shard"]


def refusal(*arguments):
    """What the command says when it refuses, with its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    known = None if result.exception is None else error_behind(result.exception)
    return result.exit_code, str(known) if known else result.output


def option_of(name):
    return f"--{name.split()[-1] if 'negative' in name else name.split()[0]}"


@pytest.fixture
def unread(monkeypatch):
    """Nothing may be opened: neither the bundle's configuration nor a scan."""
    monkeypatch.setattr("medssl.inference.predictor.open_bundle_config", lambda *_: pytest.fail("bundle was opened"))
    monkeypatch.setattr("medssl.data.layouts.scans_in", lambda *_: pytest.fail("scans were listed"))


@pytest.mark.parametrize("name", NONSENSE)
def test_predict_refuses_nonsense_before_it_reads_anything(name, trained_run, phantom_dir, tmp_path, unread):
    value, text = NONSENSE[name]
    code, said = refusal(
        "predict", phantom_dir, tmp_path / "out", "--bundle", trained_run, f"{option_of(name)}={value}"
    )
    assert code == 1 and said.startswith(text) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["stride of zeros", "stride of two", "negative stride"])
@pytest.mark.parametrize("command", ["compare-modes", "quantise"])
def test_trials_refuse_nonsense_before_they_read_anything(command, name, trained_run, unread):
    value, text = NONSENSE[name]
    code, said = refusal(command, trained_run, f"--stride={value}")
    assert code == 1 and said.startswith(text)


@pytest.mark.parametrize("command", ["compare-modes", "quantise"])
@pytest.mark.parametrize("option", ["--samples", "--cases"])
def test_trials_need_at_least_one_sample_and_one_case(command, option, trained_run):
    code, said = refusal(command, trained_run, f"{option}=0")
    assert code == 2 and f"'{option}'" in said and AT_LEAST_ONE.search(said)


def test_windows_to_calibrate_with_are_at_least_one(trained_run):
    code, said = refusal("quantise", trained_run, "--windows=-2")
    assert code == 2 and "'--windows'" in said and AT_LEAST_ONE.search(said)


@pytest.mark.parametrize(("values", "text"), [("0,5", "values 0,5"), ("-1", "values -1")])
def test_numbers_of_samples_below_one_are_refused(values, text, trained_run, unread):
    code, said = refusal("samples", trained_run, f"--values={values}")
    assert code == 1 and said == f"{text}: expected numbers of samples from 1 on, for example 1,5,20."


def test_values_that_are_no_numbers_are_refused(trained_run, unread):
    code, said = refusal("samples", trained_run, "--values=few")
    assert code == 1 and said.startswith("--values 'few': expected whole numbers")


@pytest.mark.parametrize("side", ["quick", "fast@8,8", "fast@0,8,8", "fast@"])
def test_side_that_is_none_is_refused(side, trained_run):
    code, said = refusal("compare-modes", trained_run, f"--side={side}")
    assert code == 1 and said.startswith(f"side '{side}': expected one of reference, exact, fast, with or without")


def test_review_refuses_nonsense_before_it_reads_anything(trained_run, phantom_dir, tmp_path, unread):
    code, said = refusal("review", phantom_dir, "--bundle", trained_run, "--samples=-5", "--output_dir", tmp_path)
    assert code == 1 and said.startswith("samples -5: expected at least 0")


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "scans", "out", "--bundle"),
        ("samples",),
        ("compare-modes",),
        ("quantise",),
        ("review", "x", "--bundle"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_bundle_that_is_not_there_is_named_with_the_nearest(arguments, trained_run):
    missing = trained_run.with_name(trained_run.name[:-1])
    code, said = refusal(*arguments, missing)
    assert code == 1 and said.startswith(f"{missing}: no such folder. Did you mean '{trained_run}'?")


def test_command_refuses_within_seconds(trained_run, phantom_dir, tmp_path):
    """The libraries that predict take longer to load."""
    arguments = ["predict", str(phantom_dir), str(tmp_path / "out"), "--bundle", str(trained_run), "--samples=-5"]
    script = (
        "import sys\nfrom medssl.cli import main\ntry:\n    main()\n"
        "finally:\n    print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "ConfigError: samples -5: expected at least 0 and at most 10000 "
        "(Monte Carlo samples of each voxel; 0: one pass without dropout).",
        "False",
    ]


@pytest.mark.parametrize("name", NUMBERS)
def test_stock_command_refuses_nonsense_of_inference(name, trained_run, phantom_dir, tmp_path):
    value, text = NONSENSE[name]
    config = trained_run / "bundle" / "configs" / "inference.json"
    keys = {
        "bundle_root": str(trained_run / "bundle"),
        "dataset_dir": str(phantom_dir),
        "output_dir": str(tmp_path / "out"),
        option_of(name)[2:]: int(value) if value.lstrip("-").isdigit() else value,
    }
    with pytest.raises(Exception) as raised:
        run_bundle("predicting", [config], **keys)
    assert str(error_behind(raised.value)).startswith(text) and not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NUMBERS)
def test_stock_command_refuses_nonsense_of_evaluation(name, trained_run, bundle_dir):
    value, text = NONSENSE[name]
    key = {option_of(name)[2:]: int(value) if value.lstrip("-").isdigit() else value}
    with pytest.raises(Exception) as raised:
        run_bundle("evaluating", [bundle_dir / "configs" / "evaluate.json"], output_dir=str(trained_run), **key)
    assert str(error_behind(raised.value)).startswith(text)


@pytest.mark.parametrize("batch", [0, -4, "many"])
def test_impossible_numbers_of_windows_at_a_time_are_refused(batch, trained_run):
    with pytest.raises(ConfigError, match=f"window_batch {batch}: expected auto or a whole number of windows"):
        load_predictor(trained_run, window_batch=batch)
    with pytest.raises(ConfigError, match=f"window_batch {batch}: expected auto or a whole number of windows"):
        MCDropoutInferer((8, 8, 8), (8, 8, 8), window_batch=batch)


@pytest.mark.parametrize("stride", ["16,16,8", "[16,16,8]", "[16, 16, 8]"])
def test_strides_are_accepted_in_every_spelling(stride, trained_run):
    assert load_predictor(trained_run, stride=stride).inferer.stride == (16, 16, 8)


def test_no_samples_is_one_pass_and_says_so_in_the_record(trained_run, phantom_dir, tmp_path):
    scan = phantom_dir / "images" / "phantom_000.nii.gz"
    code, said = refusal("predict", scan, tmp_path / "out", "--bundle", trained_run, "--samples=0")
    assert code == 0, said
    record = json.loads((tmp_path / "out" / "phantom_000.json").read_text())
    assert record["made_by"]["samples"] == 0


def test_stored_stride_longer_than_the_window_counts_as_the_window(trained_run, phantom_dir):
    case = {"id": "scan", "image": str(phantom_dir / "images" / "phantom_000.nii.gz")}
    predictor = load_predictor(trained_run, samples=1)
    window = predictor.inferer.window
    predictions = []
    for factor in (1, 9):
        predictor.inferer = MCDropoutInferer(window, [factor * side for side in window], samples=1)
        predictions.append(predictor(case).probs)
    assert (predictions[0] == predictions[1]).all()


@pytest.mark.parametrize("command", ["predict", "compare-modes", "quantise"])
def test_given_stride_longer_than_the_window_is_refused(command, trained_run, phantom_dir, tmp_path):
    scan = phantom_dir / "images" / "phantom_000.nii.gz"
    asked = [scan, tmp_path / "out", "--bundle", trained_run] if command == "predict" else [trained_run]
    code, said = refusal(command, *asked, "--stride=900,8,8")
    assert code == 1 and "stride 900,8,8: longer than the window" in said


def test_command_says_within_two_seconds_what_it_is_going_to_do(trained_run, phantom_dir, tmp_path):
    scan = phantom_dir / "images" / "phantom_000.nii.gz"
    arguments = ["predict", str(scan), str(tmp_path / "out"), "--bundle", str(trained_run), "--samples=1"]
    command = [sys.executable, "-c", "from medssl.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        first = process.stdout.readline()
        times = psutil.Process(process.pid).cpu_times()
        assert first == f"Predicting {scan} with {trained_run} into {tmp_path / 'out'} ...\n"
        assert times.user + times.system < 2.0  # on a machine that does other things the wall clock says little
        assert process.wait(timeout=300) == 0
