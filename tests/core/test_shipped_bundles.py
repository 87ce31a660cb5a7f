"""The bundles that come with medssl are found by name and copied whole; every mistake is told in one sentence."""

import json

import pytest

from medssl.core import shipped_bundles as shipped
from medssl.core.errors import ConfigError


def files_below(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_bundle_of_the_checkout_is_known_by_its_name(bundles_dir):
    assert shipped.shipped_bundles() == {path.name: path for path in sorted(bundles_dir.iterdir()) if path.is_dir()}


def test_an_installed_package_has_its_own_bundles(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "medssl"
    for folder in (package / "bundles" / "inside", package.parent / "bundles" / "foreign"):
        (folder / "configs").mkdir(parents=True)
        (folder / "configs" / "train.json").write_text("{}")
    monkeypatch.setattr(shipped, "_PACKAGE", package)
    assert shipped.shipped_bundles() == {"inside": package / "bundles" / "inside"}


def test_unknown_bundle_is_answered_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"'gdbl' is unknown\. Did you mean 'gbdl'"):
        shipped.bundle_path("gdbl")


@pytest.mark.parametrize("exists", [False, True])
def test_copy_has_all_files_of_the_bundle(tmp_path, exists):
    target = tmp_path / "mine"
    if exists:
        target.mkdir()
    assert shipped.copy_bundle("gbdl", target) == target
    assert files_below(target) == files_below(shipped.bundle_path("gbdl"))


def test_copy_overwrites_nothing(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds files already"):
        shipped.copy_bundle("gbdl", tmp_path)
    with pytest.raises(ConfigError, match=r"notes\.txt: is a file"):
        shipped.copy_bundle("gbdl", tmp_path / "notes.txt")
    assert files_below(tmp_path).keys() == {(tmp_path / "notes.txt").relative_to(tmp_path)}


def test_copy_below_a_file_names_the_target(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"mine: cannot be written .* Choose another folder"):
        shipped.copy_bundle("gbdl", tmp_path / "file" / "mine")


def test_damaged_metadata_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path)
    file = shipped_file(tmp_path / "bundles" / "odd", {"task": "x"})
    with pytest.raises(ConfigError, match="description") as caught:
        shipped.bundles_table()
    assert str(file) in str(caught.value)


def shipped_file(bundle, metadata):
    file = bundle / "configs" / "metadata.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(metadata))
    file.with_name("train.json").write_text("{}")
    return file
