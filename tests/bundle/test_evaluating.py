"""Evaluations check their keys and their role before anything is built, and say at their end what came of them."""

import pytest

from medssl.bundle import Command, run_bundle
from medssl.bundle.command import started
from medssl.bundle.evaluating import begin_evaluation, require_cases
from medssl.core.errors import ConfigError, error_behind
from medssl.data.split import Split

CONFIGS = [
    *(f"{bundle}/configs/evaluate.json" for bundle in ("gbdl", "mcdropout_unet3d", "np_match", "np_semiseg")),
    "teacher_student/configs/evaluate.json",
    "np_semiseg/configs/scans_evaluate.json",
]


@pytest.fixture
def check(bundles_dir, monkeypatch):
    """Begins an evaluation by a command with these keys, as evaluate.json does."""
    monkeypatch.setattr("medssl.bundle.evaluating.explain_errors", lambda: None)

    def checked(config="gbdl/configs/evaluate.json", role="test", **keys):
        with started(Command((str(bundles_dir / config),), {"role": role, **keys}, "evaluating")):
            begin_evaluation(role)

    return checked


@pytest.fixture
def split():
    labelled = [{"id": name, "patient": name, "label": name, "role": "labelled"} for name in "ab"]
    return Split([*labelled, {"id": "c", "patient": "c", "role": "unlabelled"}], {"dataset": "folder"})


@pytest.mark.parametrize("config", CONFIGS)
def test_a_mistyped_key_of_an_evaluation_ends_monais_command_with_the_nearest(config, bundles_dir, tmp_path):
    with pytest.raises((RuntimeError, ConfigError)) as caught:
        run_bundle("evaluating", [bundles_dir / config], output_dir=str(tmp_path), sampels=3)
    error = error_behind(caught.value)
    assert isinstance(error, ConfigError)
    assert "key 'sampels' is unknown. Did you mean 'samples'?" in str(error)


@pytest.mark.parametrize("config", CONFIGS)
def test_the_keys_that_an_evaluation_has_are_accepted(check, config):
    check(config, samples=3, output_dir="runs/mine", trust=True, device="cpu", debug=True)


def test_a_section_and_a_device_that_is_none_are_refused(check):
    with pytest.raises(ConfigError, match="key 'split': 3 given"):
        check(split=3)
    with pytest.raises(ConfigError, match="device 'cud': no such kind of device"):
        check(device="cud")


def test_an_unknown_role_is_refused_with_the_known_ones(check):
    with pytest.raises(
        ConfigError, match=r"'nobody' is unknown\. Expected one of labelled, unlabelled, validation, test"
    ):
        check(role="nobody")


def test_a_role_without_cases_is_refused_with_those_there_are(split, tmp_path):
    require_cases(split, "labelled", tmp_path)
    with pytest.raises(ConfigError, match=r"split\.json: no case has the role 'test'. It has 2 labelled, 1 unlabelled"):
        require_cases(split, "test", tmp_path)


def test_cases_without_labels_cannot_be_evaluated(split, tmp_path):
    with pytest.raises(ConfigError, match="1 of 1 unlabelled cases have no label, the first is c"):
        require_cases(split, "unlabelled", tmp_path)
