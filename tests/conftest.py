"""Shared by all tests: one small phantom set and one trained run, made once a session."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUNDLE = ROOT / "bundles" / "mcdropout_unet3d"


@pytest.fixture(scope="session")
def bundles_dir() -> Path:
    return ROOT / "bundles"


@pytest.fixture(scope="session")
def bundle_dir() -> Path:
    return BUNDLE


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real scans: MEDSSL_DATA, or ../shared/data beside the repository; tests are skipped without it."""
    folder = Path(os.environ.get("MEDSSL_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set MEDSSL_DATA")
    return folder


@pytest.fixture(scope="session")
def phantom_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve phantom scans of 64x64x24 voxels with labels."""
    from medssl.data.phantom import write_phantoms

    root = tmp_path_factory.mktemp("phantom")
    write_phantoms(root, count=12)
    return root


@pytest.fixture(scope="session")
def train_smoke(phantom_dir: Path):
    """A function that runs the bundle's `training` with the smoke overlay into a folder, as the command line does."""
    from monai.bundle import run

    def train(output_dir: Path, **overrides) -> Path:
        keys = {
            "bundle_root": str(BUNDLE),
            "dataset_name": "phantom",
            "dataset_dir": str(phantom_dir),
            "labelled": 3,
            "validation": 2,
            "test": 3,
            "output_dir": str(output_dir),
            "runs_dir": str(output_dir.parent),
            "mlflow": False,
            **overrides,
        }
        configs = [str(BUNDLE / "configs" / name) for name in ("train.json", "smoke.json")]
        run(run_id="training", config_file=configs, **keys)
        return output_dir

    return train


@pytest.fixture(scope="session")
def trained_run(train_smoke, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished smoke training, tracked in its own SQLite file."""
    return train_smoke(tmp_path_factory.mktemp("runs") / "smoke", mlflow=True)
