"""pip is enough: in an empty folder, with no checkout in sight, the bundles are found, copied and trained."""

import json
import sysconfig
from pathlib import Path

import pytest

FIND_RECIPE = (
    "import pathlib, sys; from medssl.label_app.recipe import find_recipe; "
    "print(find_recipe(pathlib.Path(sys.argv[1])).source)"
)
SIZES = {"dataset_name": "phantom", "labelled": 3, "validation": 2, "test": 3, "mlflow": False}


def train(installed, bundle, phantoms, cwd):
    """Train with the smoke overlay, by MONAI's own command; returns the folder of the run."""
    configs = [str(Path(bundle) / "configs" / name) for name in ("train.json", "smoke.json")]
    keys = {**SIZES, "dataset_dir": phantoms, "output_dir": cwd / "run"}
    words = [word for key, value in keys.items() for word in (f"--{key}", value)]
    installed.run("python", "-m", "monai.bundle", "run", "training", "--config_file", configs, *words, cwd=cwd)
    return cwd / "run"


def test_packages_are_those_of_the_wheel_and_no_checkout_can_be_imported(installed, tmp_path):
    script = "import medssl, natural_image_ext, sys; print(medssl.__file__, natural_image_ext.__file__, *sys.path)"
    medssl, extension, *search_path = installed.run("python", "-c", script, cwd=tmp_path).split()
    assert Path(medssl).parent == installed.package
    assert Path(extension).parents[1] == installed.package.parent
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    for folder in set(search_path) - borrowed:
        assert folder.startswith(str(installed.root)) or not (Path(folder) / "medssl").exists(), folder


def test_bundles_are_listed_and_lie_inside_the_package(installed, tmp_path, bundles_dir):
    printed = installed.run("medssl", "bundles", cwd=tmp_path)
    assert all(bundle.name in printed for bundle in bundles_dir.iterdir() if bundle.is_dir())
    path = installed.run("medssl", "bundles", "--path", "gbdl", cwd=tmp_path)
    assert path == f"{installed.package / 'bundles' / 'gbdl'}\n"


def test_bundle_is_copied_from_the_package(installed, tmp_path, bundles_dir):
    installed.run("medssl", "bundles", "--copy", "gbdl", "my_bundle", cwd=tmp_path)
    for file in (bundles_dir / "gbdl").rglob("*"):
        copied = tmp_path / "my_bundle" / file.relative_to(bundles_dir / "gbdl")
        assert copied.is_dir() if file.is_dir() else copied.read_bytes() == file.read_bytes()


@pytest.mark.parametrize("copied", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["shipped", "copied"])
def test_bundle_trains_where_there_is_no_checkout_and_its_report_is_written(installed, tmp_path, phantom_dir, copied):
    if copied:
        installed.run("medssl", "bundles", "--copy", "gbdl", "my_bundle", cwd=tmp_path)
    bundle = "my_bundle" if copied else installed.run("medssl", "bundles", "--path", "gbdl", cwd=tmp_path).strip()
    run = train(installed, bundle, phantom_dir, tmp_path)
    assert json.loads((run / "run.json").read_text())["status"] == "finished"
    assert "Dice" in installed.run("medssl", "report", run, cwd=tmp_path)
    assert (run / "report.html").is_file()
    assert {path.name for path in tmp_path.iterdir()} <= {"run", "runs", "my_bundle"}
    source = installed.run("python", "-c", FIND_RECIPE, run / "bundle", cwd=tmp_path).strip()
    assert Path(source) == (tmp_path / "my_bundle" if copied else installed.package / "bundles" / "gbdl")
