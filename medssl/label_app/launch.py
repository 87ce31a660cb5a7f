"""Starts the label server: checks what it is given, sets MONAI Label up for this machine alone, serves until Ctrl-C."""

import importlib.util
import ipaddress
import json
import logging
import os
import shutil
import socket
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError, DataError, MedsslError
from medssl.core.files import FolderLock
from medssl.core.flags import flag
from medssl.core.prediction_options import checked_sampling
from medssl.core.run_folder import read_facts
from medssl.data.datasets import dataset_facts
from medssl.data.dicom_folders import dicom_files
from medssl.label_app import shim
from medssl.label_app.model import trained_bundle
from medssl.label_app.series_map import map_series, write_map
from medssl.label_app.workspace import EXTENSIONS, Workspace, default_workspace, holds_scans, is_address
from medssl.report.tasks import task_of
from medssl.review.strategies import check_strategy
from medssl.security.gate import require_harmless

ANY = "any"
SIGN_ON = "MONAI_LABEL_AUTH_ENABLE"
_EXTRA = "Install it with pip install 'medssl[label]'."


@dataclass(frozen=True)
class LabelServer:
    """A label server that can be started. studies: a folder of scans or DICOM series, or a DICOMweb archive's address.

    bundle: a trained bundle or the folder of a run; by default the run that was finished last below `runs`. samples:
    Monte Carlo samples, as trained by default. strategy: the one that viewers propose first. modality: of the series
    that are served, by default what the model was trained on. workspace: where models, logs and, of DICOM series, scans
    and labels are kept. proposals: store what is segmented for a viewer in the archive, for OHIF to correct.
    trust: serve a bundle even if it could do harm.
    """

    studies: str
    bundle: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    samples: int | None = None
    strategy: str = "uncertain"
    modality: str | None = None
    workspace: Path | None = None
    seed: int = 0
    proposals: bool = False
    trust: bool = False

    def serve(self) -> None:
        """Serve until the process is told to end. Raises ConfigError, DataError and CheckpointError before."""
        environment = self.environment()
        workspace = Workspace(Path(environment["MONAI_LABEL_APP_DIR"]))
        with FolderLock(workspace.root):
            workspace.prepare()
            logging.getLogger("pydicom").setLevel(logging.ERROR)  # its warnings quote files, and so perhaps persons
            warnings.filterwarnings("ignore", module="pydicom")
            self._map_series(workspace, json.loads(environment["MONAI_LABEL_APP_CONF"]))
            os.environ.update(environment)
            tempfile.tempdir = str(workspace.temporary)  # what is sent here is nobody else's to read
            _alias_pydicom_module()
            import uvicorn  # noqa: PLC0415  (an extra, and the settings must stand before it)

            from medssl.label_app.server import build  # noqa: PLC0415

            hosts = ["*"] if _auth_is_on() else ["127.0.0.1", "localhost", self.host]
            print(self.told_places(workspace), flush=True)
            print(f"http://{self.host}:{self.port} serves {self.studies} (Ctrl-C ends it)", flush=True)
            uvicorn.run(
                build(hosts),
                host=self.host,
                port=self.port,
                log_config=_logging(workspace.log),
                access_log=False,  # addresses hold the ids of studies
            )

    def told_places(self, workspace: Workspace) -> str:
        """Where the server writes: labels beside scans, where MONAI Label looks for them, all else in the workspace."""
        if is_address(self.studies) or not holds_scans(Path(self.studies)):
            return f"labels, models and logs are written to {workspace.root}"
        folder = Path(self.studies).resolve()
        return (
            f"labels are written to {folder / 'labels'}, what is known of each scan to {folder / 'datastore_v2.json'} "
            f"(.lock beside it keeps two servers apart), models and logs to {workspace.root}"
        )

    def environment(self) -> dict[str, str]:
        """The settings of MONAI Label and of the processes it starts."""
        require_extra()
        self._check_host()
        check_strategy(self.strategy)
        checked_sampling({"samples": self.samples})
        bundle = trained_bundle(self.bundle or newest_run()).resolve()
        require_harmless(bundle, self.trust)
        studies = self._checked_studies()
        workspace = (self.workspace or default_workspace(self.studies)).resolve()
        _require_writable(workspace)
        conf = {"bundle": str(bundle), "strategy": self.strategy, "seed": str(self.seed)}
        if self.samples is not None:
            conf["samples"] = str(self.samples)
        if self.trust:
            conf["trust"] = "true"
        if not is_address(studies) and not holds_scans(Path(studies)):
            conf["series"] = self.modality or _modality_of(bundle) or ANY
        if self.proposals:
            if not is_address(studies):
                raise ConfigError(f"--proposals: {studies} is a folder. Leave it out, or give a DICOMweb address.")
            conf["proposals"] = "true"
        programs = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        modules = [str(Path(shim.__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = {
            "PATH": os.pathsep.join(part for part in programs if part),
            "PYTHONPATH": os.pathsep.join(part for part in modules if part),
            "MONAI_LABEL_APP_DIR": str(workspace),
            "MONAI_LABEL_STUDIES": studies,
            "MONAI_LABEL_APP_CONF": json.dumps(conf),
            "MONAI_LABEL_SERVER_PORT": str(self.port),
            SIGN_ON: str(_auth_is_on()).lower(),
            "MONAI_LABEL_AUTO_UPDATE_SCORING": "false",
            "MONAI_LABEL_DATASTORE": "",
            "MONAI_LABEL_SESSION_PATH": str(Workspace(workspace).sessions),
        }
        return environment | (self._archive_settings(bundle) if is_address(studies) else {})

    def _check_host(self) -> None:
        try:
            is_private = self.host == "localhost" or ipaddress.IPv4Address(self.host).is_loopback
        except ValueError:
            is_private = False
        if not is_private and not _auth_is_on():
            raise ConfigError(
                f"--host {self.host}: others could read and change the studies. Keep 127.0.0.1, or switch on MONAI "
                f"Label's sign-on ({SIGN_ON}=true and MONAI_LABEL_AUTH_REALM_URI)."
            )
        with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                reason = error.strerror or str(error)
                raise ConfigError(
                    f"--port {self.port}: {reason}. End the other server, or give another port."
                ) from error

    def _checked_studies(self) -> str:
        if is_address(self.studies):
            return self.studies.rstrip("/")
        folder = Path(self.studies)
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder. Give a folder of scans, or the address of a DICOMweb archive.")
        if not holds_scans(folder) and next(dicom_files(folder), None) is None:
            kinds = ", ".join(pattern.removeprefix("*") for pattern in EXTENSIONS)
            raise DataError(f"{folder}: no scans found, expected {kinds}, or DICOM series in it or below.")
        return str(folder.resolve())

    def _map_series(self, workspace: Workspace, conf: dict[str, str]) -> None:
        """Look for the series of a folder; DataError if there is none of the modality."""
        if "series" in conf:
            modality = None if conf["series"] == ANY else conf["series"]
            series = map_series(Path(self.studies).resolve(), modality, workspace.root)
            write_map(workspace.series_map, series)

    def _archive_settings(self, bundle: Path) -> dict[str, str]:
        if shutil.which("itkimage2segimage", path=str(Path(sys.executable).parent)) is None:
            raise ConfigError(f"itkimage2segimage (dcmqi) is missing: no DICOM SEG can be written. {_EXTRA}")
        modality = self.modality or _modality_of(bundle)
        if modality is None:
            raise ConfigError(f"{bundle}: does not say which scans it is for. Give --search-filter CT or MR.")
        return {
            "MONAI_LABEL_DICOMWEB_SEARCH_FILTER": json.dumps({"Modality": modality}),
            "MONAI_LABEL_DICOMWEB_CACHE_EXPIRY": "1",
            "MONAI_LABEL_DICOMWEB_CONVERT_TO_NIFTI": "true",
        }


def require_extra() -> None:
    """ConfigError unless MONAI Label is installed."""
    if importlib.util.find_spec("monailabel") is None:
        raise ConfigError(f"MONAI Label is not installed. {_EXTRA}")


def newest_run(runs: Path = Path("runs")) -> Path:
    """The run below `runs` with a trained bundle of 3-D scans that was finished last; ConfigError if there is none."""
    finished = []
    for weights in runs.glob("**/bundle/models/model.pt"):
        run = weights.parents[2]
        try:
            facts = read_facts(run)
            is_of_scans = task_of(facts, run / "run.json").of_scans
        except (MedsslError, ValueError):
            continue
        if facts.get("status") == "finished" and is_of_scans:
            finished.append((str(facts.get("finished", "")), run))
    if not finished:
        raise ConfigError(
            f"no finished run in {runs}: give a trained model with --bundle, or make one with `make demo`."
        )
    return max(finished)[1]


def _require_writable(folder: Path) -> None:
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    if not os.access(there, os.W_OK):
        raise ConfigError(f"{there}: cannot be written. Give another folder with --workspace.")


def _modality_of(bundle: Path) -> str | None:
    facts = json.loads((bundle / "configs" / "inference.json").read_text()).get("data_facts", {})
    modality = dataset_facts(str(facts.get("name", "folder"))).modality
    return modality if modality != "any" else None


def _auth_is_on() -> bool:
    """Whether MONAI Label's sign-on is asked for; ConfigError for a value that says neither."""
    return flag(os.environ.get(SIGN_ON) or "false", SIGN_ON)


def _alias_pydicom_module() -> None:
    from medssl.label_app.shim import sitecustomize  # noqa: F401, PLC0415  (as in the processes below this one)


def _logging(file: Path) -> dict[str, Any]:
    """Our own lines, and errors of MONAI Label, on the terminal and in `file`; its other lines name studies."""
    handlers = {
        "terminal": {"class": "logging.StreamHandler", "formatter": "line"},
        "file": {
            "class": "logging.handlers.RotatingFileHandler",
            "formatter": "line",
            "filename": str(file),
            "maxBytes": 5_000_000,
            "backupCount": 3,
        },
    }
    # the lines of tasks name cases; GET /train/ and outcome.json have them
    tasks = [f"task_{name}" for name in ("train", "scoring", "batch_infer")]
    silent, quiet = (
        ["monailabel", "pydicom", "dicomweb_client"],
        ["highdicom", "timeloop", "schedule", "urllib3", *tasks],
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
        "handlers": handlers,
        "root": {"level": "INFO", "handlers": list(handlers)},
        "loggers": {
            name: {"level": level} for level, names in (("ERROR", silent), ("WARNING", quiet)) for name in names
        },
    }
