"""How tests train a bundle: in this process, with small overlays, on phantoms."""

from collections.abc import Callable, Sequence
from pathlib import Path

from medssl.bundle import run_bundle


def training_of(bundle: Path, names: Sequence[str], phantoms: Path) -> Callable[..., Path]:
    """Runs the bundle's `training`, with configs of these names, into a folder, as the command line does."""

    def train(output_dir: Path, run_id: str = "training", **overrides) -> Path:
        keys = {
            "dataset_name": "phantom",
            "dataset_dir": str(phantoms),
            "labelled": 3,
            "validation": 2,
            "test": 3,
            "output_dir": str(output_dir),
            "runs_dir": str(output_dir.parent),
            "mlflow": False,
            **overrides,
        }
        run_bundle(run_id, [bundle / "configs" / f"{name}.json" for name in names], **keys)
        return output_dir

    return train
