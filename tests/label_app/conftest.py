"""A label server as a reviewer's viewer meets it: its own process, on a free port of this machine, over HTTP."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from label_app.archive_server import STUDIES, TRAINING, Archive, ArchiveServer
from label_app.dicom_studies import Study, write_study
from label_app.memory_archive import Archive as MemoryArchive
from label_app.orthanc import require_orthanc, running_orthanc

START_TIMEOUT_S = 540.0  # importing MONAI Label takes half a minute of processor time


@dataclass
class Server:
    """A running server: `url`, the `process`, and `log`, the file with all that it has printed."""

    url: str
    process: subprocess.Popen
    log: Path

    def get(self, path: str, **options: Any) -> requests.Response:
        return requests.get(self.url + path, timeout=300, **options)

    def post(self, path: str, **options: Any) -> requests.Response:
        return requests.post(self.url + path, timeout=300, **options)

    def put(self, path: str, **options: Any) -> requests.Response:
        return requests.put(self.url + path, timeout=300, **options)

    def wait_until(self, holds: Callable[[], Any], what: str, seconds: float = 300.0) -> Any:
        """What `holds` returns once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := holds():
                return found
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.2)
        raise AssertionError(f"{what}: not within {seconds} s\n{self.log.read_text()[-4000:]}")

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running_server(studies: Path | str, bundle: Path, log: Path, **options: Any) -> Iterator[Server]:
    """`medssl label` on the studies (a folder or a DICOMweb address), ready to answer; ended at the end of the block.

    options: of the command line, e.g. samples=2, search_filter="CT", proposals=True. log: a file to append to.
    """
    port = options.pop("port", None) or free_port()
    given = {"studies": studies, "bundle": bundle, "port": port, **options}
    words = []
    for key, value in given.items():
        words += [f"--{key.replace('_', '-')}", *([] if value is True else [str(value)])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("a") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "medssl", "label", *words], stdout=out, stderr=subprocess.STDOUT, env=environment
        )
    server = Server(f"http://127.0.0.1:{port}", process, log)
    try:
        server.wait_until(lambda: _answers(server), "start of the server", START_TIMEOUT_S)
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(server: Server) -> bool:
    try:
        return server.get("/info/").status_code == 200
    except requests.ConnectionError:
        return False


@pytest.fixture(scope="session")
def label_bundle(trained_run: Path) -> Path:
    """The folder of a tiny trained run; tests that need MONAI Label are skipped where it is missing."""
    require_monailabel()
    return trained_run


def require_monailabel() -> None:
    """Skips the test where MONAI Label is missing."""
    for name in ("highdicom", "monailabel"):
        if importlib.util.find_spec(name) is None:
            pytest.skip("needs MONAI Label: pip install 'medssl[label]'")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A CT series of a phantom."""
    return write_study(tmp_path / "series", 20)


@pytest.fixture
def archive(study: Study) -> MemoryArchive:
    """An archive in memory that holds the study."""
    archive = MemoryArchive()
    archive.add(study.folder)
    return archive


@pytest.fixture(scope="session")
def scans_to_review(phantom_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of five phantom scans without labels."""
    folder = tmp_path_factory.mktemp("studies")
    for index in range(5):
        name = f"phantom_{index:03d}.nii.gz"
        shutil.copy(phantom_dir / "images" / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def label_server(
    scans_to_review: Path, label_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server on a copy of the five scans, shared by the tests of a module."""
    folder = tmp_path_factory.mktemp("served")
    studies = folder / "studies"
    shutil.copytree(scans_to_review, studies)
    with running_server(studies, label_bundle, folder / "server.log", samples=2) as server:
        server.studies = studies
        yield server


@pytest.fixture(scope="package")
def kidney_archive(train_smoke, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Orthanc with three studies, and a model that knows kidneys; skipped where there is no Orthanc."""
    require_orthanc()
    require_monailabel()
    folder = tmp_path_factory.mktemp("archive")
    run = train_smoke(folder / "run", **TRAINING)
    studies = [write_study(folder / "studies", index, **form) for index, form in STUDIES.items()]
    with running_orthanc(folder / "orthanc") as orthanc:
        for study in studies:
            orthanc.store(study.folder)
        yield Archive(orthanc, {study.series_uid: study for study in studies}, run)


@pytest.fixture(scope="package")
def archive_server(kidney_archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArchiveServer]:
    """A server on the archive."""
    with archive_served(kidney_archive, tmp_path_factory.mktemp("served") / "workspace") as served:
        yield served


@pytest.fixture(scope="module")
def proposing_server(kidney_archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArchiveServer]:
    """Another one on the same archive, that stores proposals."""
    workspace = tmp_path_factory.mktemp("proposing") / "workspace"
    with archive_served(kidney_archive, workspace, proposals=True) as served:
        yield served


@contextmanager
def archive_served(archive: Archive, workspace: Path, **options: Any) -> Iterator[ArchiveServer]:
    """A label server on the archive; options as in running_server."""
    given = {"samples": 5, "search_filter": "CT", "workspace": workspace, **options}
    log = workspace.with_name(f"{workspace.name}.log")
    with running_server(archive.orthanc.dicomweb_url, archive.run, log, **given) as server:
        model = next(iter(server.get("/info/").json()["models"]))
        yield ArchiveServer(server, archive, model, workspace)
