"""Where a bundle lies, and what is said where there is none."""

import pytest

from medssl.core.bundle_folder import bundle_root
from medssl.core.errors import ConfigError


@pytest.fixture
def run(tmp_path):
    """A folder of runs with a run that has a bundle."""
    configs = tmp_path / "runs" / "smoke" / "bundle" / "configs"
    configs.mkdir(parents=True)
    (configs / "inference.json").write_text("{}")
    return tmp_path / "runs" / "smoke"


def test_bundle_is_found_in_its_own_folder_and_in_that_of_a_run(run):
    assert bundle_root(run) == run / "bundle"
    assert bundle_root(run / "bundle") == run / "bundle"


def test_folder_that_is_not_there_is_named_with_the_nearest_beside_it(run):
    with pytest.raises(ConfigError, match=r"smok: no such folder\. Did you mean '.*runs/smoke'\? Give a bundle, or"):
        bundle_root(run.with_name("smok"))


@pytest.mark.parametrize("missing", ["zzz", "nothere/deeper"])
def test_nothing_is_guessed_where_nothing_is_near(run, missing):
    with pytest.raises(ConfigError, match=rf"{missing}: no such folder\. Give a bundle, or the folder of a finished"):
        bundle_root(run.parent / missing)


def test_folder_without_a_configuration_says_what_it_lacks(run):
    with pytest.raises(ConfigError, match=r"runs: no configs/inference\.json\. Give a bundle"):
        bundle_root(run.parent)


def test_file_is_no_bundle(run):
    with pytest.raises(ConfigError, match=r"inference\.json: a file, expected a folder"):
        bundle_root(run / "bundle" / "configs" / "inference.json")
