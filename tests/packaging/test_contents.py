"""Wheel and sdist hold what they should: all code, all bundles, the licence, and nothing that lies about."""

import json
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]


def files_of(folder):
    """Files below a folder of the checkout, by their names in it, without what Python and notebooks leave behind."""
    left_behind = {"__pycache__", "runs"}
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file() and not left_behind & set(path.parts))
    return {path.relative_to(ROOT).as_posix() for path in files}


@pytest.fixture(scope="module")
def in_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def in_sdist(sdist):
    with tarfile.open(sdist) as archive:
        return {PurePosixPath(*PurePosixPath(file.name).parts[1:]).as_posix() for file in archive if file.isfile()}


def test_wheel_holds_both_packages_and_the_bundles_and_nothing_else(in_wheel):
    expected = files_of("medssl") | files_of("natural_image_ext") | {f"medssl/{name}" for name in files_of("bundles")}
    assert {name for name in in_wheel if ".dist-info/" not in name} == expected


def test_bundles_in_the_wheel_are_those_of_the_checkout(in_wheel):
    for name in files_of("bundles"):
        assert in_wheel[f"medssl/{name}"] == (ROOT / name).read_bytes(), name
        if name.endswith(".json"):
            assert isinstance(json.loads(in_wheel[f"medssl/{name}"]), dict), name


def test_wheel_has_licence_command_and_what_the_extension_adds(in_wheel):
    (about,) = {name.split("/")[0] for name in in_wheel if ".dist-info/" in name}
    assert in_wheel[f"{about}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert b"License-Expression: Apache-2.0" in in_wheel[f"{about}/METADATA"]
    entries = in_wheel[f"{about}/entry_points.txt"].decode()
    for group in ("[console_scripts]", "[medssl.tasks]", "[medssl.method_facts]"):
        assert group in entries


FOLDERS = ("medssl", "natural_image_ext", "bundles", "benchmarks", "notebooks", "docs")
FILES = {"pyproject.toml", "README.md", "LICENSE", "Makefile", "constraints.txt", "mkdocs.yml", "CHANGELOG.md",
         "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md"}  # fmt: skip


def test_sdist_holds_what_builds_the_wheel_and_what_the_tests_read(in_sdist):
    tests = {name for name in files_of("tests") if not name.startswith("tests/artefacts/")}
    assert tests.union(FILES, *map(files_of, FOLDERS)) <= in_sdist


def test_sdist_holds_no_runs_data_or_environments(in_sdist):
    tops = {PurePosixPath(name).parts[0] for name in in_sdist}
    assert tops == {*FOLDERS, *FILES, "tests", ".ci", ".gitignore", "PKG-INFO"}
    assert not [name for name in in_sdist if "__pycache__" in name or name.startswith("tests/artefacts/")]
