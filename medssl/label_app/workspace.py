"""Where a label server keeps what belongs to it: models it trained, what it logs, scans that were sent to it."""

import contextlib
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from medssl.core.files import write_text_atomically

EXTENSIONS = ("*.nii.gz", "*.nii", "*.nrrd", "*.mha")
_MAIN = "from medssl.label_app.app import ReviewApp\n\n__all__ = ['ReviewApp']\n"


@dataclass(frozen=True)
class Workspace:
    """The folder MONAI Label calls an app: with main.py and logs/, and what medssl adds."""

    root: Path

    @property
    def temporary(self) -> Path:
        """Scans and results on their way in and out; emptied at every start."""
        return self.root / "tmp"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def archive_cache(self) -> Path:
        """Series of a DICOMweb archive and their labels."""
        return self.root / "dicom"

    @property
    def series(self) -> Path:
        """Scans and labels of a folder of DICOM series."""
        return self.root / "series"

    @property
    def series_map(self) -> Path:
        """Which series are served, and where their files lie: private, as folders may bear names of patients."""
        return self.series / "series.json"

    @property
    def trainings(self) -> Path:
        """A folder per training, and mlflow.db."""
        return self.root / "trainings"

    @property
    def log(self) -> Path:
        return self.root / "logs" / "app.log"  # the name that MONAI Label's /logs looks for

    @property
    def current_model(self) -> Path:
        return self.root / "current_model.json"

    def prepare(self) -> None:
        """Make the folders, readable by their owner alone, and forget what an earlier server left half-done."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.root.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # somebody else's folder, who decides
            self.root.chmod(0o700)
        own = self.temporary, self.sessions, self.archive_cache, self.series, self.trainings, self.log.parent
        for folder in own:
            folder.mkdir(mode=0o700, exist_ok=True)
        write_text_atomically(self.root / "main.py", _MAIN)


def default_workspace(studies: str) -> Path:
    """`.medssl_label` in a folder of studies; for an archive a folder below `runs/label` that its address names."""
    if is_address(studies):
        return Path("runs/label") / hashlib.sha256(studies.rstrip("/").encode()).hexdigest()[:12]
    return Path(studies) / ".medssl_label"


def is_address(studies: str) -> bool:
    """Whether the studies lie in a DICOMweb archive."""
    return studies.startswith(("http://", "https://"))


def holds_scans(folder: Path) -> bool:
    """Whether there are scans of EXTENSIONS in a folder, or in its `images/`; else it may hold DICOM series."""
    images = folder / "images" if (folder / "images").is_dir() else folder
    return any(file for pattern in EXTENSIONS for file in images.glob(pattern))
