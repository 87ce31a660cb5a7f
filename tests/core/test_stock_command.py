"""The MONAI command behind a short form: files that are there, one text that can be typed again."""

import shlex
import sys

import pytest

from medssl.core.errors import ConfigError
from medssl.core.stock_command import as_run, as_typed, config_files, find_bundle, stock_command


def test_bundle_is_found_by_its_name_and_by_its_folder(bundles_dir):
    assert find_bundle("gbdl") == bundles_dir / "gbdl" == find_bundle(bundles_dir / "gbdl")


@pytest.mark.parametrize(
    ("text", "reason"), [("gbld", "Did you mean 'gbdl'"), ("nothere/at_all", "'medssl bundles' lists all")]
)
def test_bundle_that_there_is_not_is_refused(text, reason):
    with pytest.raises(ConfigError, match=reason):
        find_bundle(text)


def test_folder_without_a_training_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"has no configs/train\.json"):
        find_bundle(tmp_path)


def test_overlays_are_files_beside_it_or_of_the_user(bundles_dir, tmp_path):
    own = tmp_path / "mine.json"
    own.write_text("{}")
    folder = bundles_dir / "gbdl" / "configs"
    files = config_files(bundles_dir / "gbdl", "train", ["smoke", str(own)])
    assert files == [folder / "train.json", folder / "smoke.json", own]


def test_mistyped_overlay_is_refused_with_the_nearest(bundles_dir):
    with pytest.raises(ConfigError, match=r"overlay 'smok' is unknown. Did you mean 'smoke'"):
        config_files(bundles_dir / "gbdl", "train", ["smok"])
    with pytest.raises(ConfigError, match=r"overlay 'xyz' is unknown. Known: bench,"):
        config_files(bundles_dir / "gbdl", "train", ["xyz"])


def test_command_names_files_and_keys_and_can_be_typed_again(bundles_dir):
    files = config_files(bundles_dir / "gbdl", "train", ["smoke"])
    arguments = stock_command("training", files, {"labelled": "4", "dataset_dir": "my scans"})
    typed = shlex.split(as_typed(arguments))
    assert typed[:6] == ["python", "-m", "monai.bundle", "run", "training", "--config_file"]
    assert typed[6] == str([str(file) for file in files])
    assert typed[7:] == ["--labelled", "4", "--dataset_dir", "my scans"]
    assert f'--config_file "{[str(file) for file in files]}" --labelled 4' in as_typed(arguments)
    assert as_run(arguments) == [sys.executable, *typed[1:]]
