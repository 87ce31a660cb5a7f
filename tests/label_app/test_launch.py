"""`medssl label` says what is wrong before it starts, and sets MONAI Label up for this machine alone."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from label_app.dicom_studies import write_study
from typer.testing import CliRunner

from medssl.cli import app
from medssl.core.errors import CheckpointError, ConfigError, DataError
from medssl.data.layouts import scans_in
from medssl.label_app.launch import LabelServer, newest_run
from medssl.label_app.workspace import Workspace, default_workspace


@pytest.fixture(autouse=True)
def without_sign_on(monkeypatch):
    monkeypatch.delenv("MONAI_LABEL_AUTH_ENABLE", raising=False)


@pytest.fixture
def server(label_bundle, scans_to_review):
    def made(**options):
        given = {"studies": str(scans_to_review), "bundle": label_bundle, "port": 0, **options}
        return LabelServer(**given)

    return made


def test_settings_are_safe_and_reach_every_process(server, scans_to_review):
    found = server(samples=3, strategy="structure").environment()
    assert found["MONAI_LABEL_AUTO_UPDATE_SCORING"] == "false" and found["MONAI_LABEL_AUTH_ENABLE"] == "false"
    assert found["PATH"].split(":")[0] == str(Path(sys.executable).parent)
    assert (Path(found["PYTHONPATH"].split(":")[0]) / "sitecustomize.py").is_file()
    conf = json.loads(found["MONAI_LABEL_APP_CONF"])
    assert conf["samples"] == "3" and conf["strategy"] == "structure" and Path(conf["bundle"], "models").is_dir()
    assert found["MONAI_LABEL_APP_DIR"] == str(scans_to_review.resolve() / ".medssl_label")


def test_python_processes_below_the_server_know_the_module_pydicom_seg_asks_for(server):
    environment = {"PYTHONPATH": server().environment()["PYTHONPATH"]}
    code = "from pydicom._storage_sopclass_uids import SegmentationStorage"
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "::1", "example.org"])
def test_other_machines_are_kept_out_unless_there_is_a_sign_on(server, host):
    with pytest.raises(ConfigError, match="MONAI_LABEL_AUTH_ENABLE"):
        server(host=host).environment()


def test_with_a_sign_on_another_host_is_taken(server, monkeypatch):
    monkeypatch.setenv("MONAI_LABEL_AUTH_ENABLE", "true")
    assert server(host="0.0.0.0").environment()["MONAI_LABEL_AUTH_ENABLE"] == "true"


def test_a_sign_on_that_is_neither_on_nor_off_is_refused_by_its_name(server, monkeypatch):
    monkeypatch.setenv("MONAI_LABEL_AUTH_ENABLE", "perhaps")
    with pytest.raises(ConfigError, match="MONAI_LABEL_AUTH_ENABLE 'perhaps': expected true or false"):
        server().environment()
    monkeypatch.setenv("MONAI_LABEL_AUTH_ENABLE", "")
    assert server().environment()["MONAI_LABEL_AUTH_ENABLE"] == "false"


def test_missing_folder_empty_folder_and_folder_of_series_are_refused(server, tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        server(studies=str(tmp_path / "none")).environment()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="or DICOM series"):
        server(studies=str(tmp_path / "empty")).environment()


def test_folder_of_dicom_series_is_served_by_the_modality_of_the_model_or_the_one_given(server, tmp_path, monkeypatch):
    write_study(tmp_path / "below", 20)
    found = json.loads(server(studies=str(tmp_path)).environment()["MONAI_LABEL_APP_CONF"])
    assert found["series"] == "CT"
    found = json.loads(server(studies=str(tmp_path), modality="MR").environment()["MONAI_LABEL_APP_CONF"])
    assert found["series"] == "MR"
    monkeypatch.setattr("medssl.label_app.launch._modality_of", lambda bundle: None)
    assert json.loads(server(studies=str(tmp_path)).environment()["MONAI_LABEL_APP_CONF"])["series"] == "any"
    assert "series" not in json.loads(server().environment()["MONAI_LABEL_APP_CONF"])


def test_workspace_that_cannot_be_written_is_named_before_the_start(server, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(ConfigError, match="--workspace"):
        server().environment()


def test_bundle_without_weights_and_models_of_pictures_are_refused(server, bundle_dir, bundles_dir, tmp_path):
    with pytest.raises(CheckpointError, match=r"model\.pt"):
        server(bundle=bundle_dir).environment()
    with pytest.raises(ConfigError, match="3-D scans"):
        server(bundle=bundles_dir / "np_match").environment()
    with pytest.raises(ConfigError, match=r"inference\.json"):
        server(bundle=tmp_path).environment()


def test_unknown_strategy_is_refused(server):
    with pytest.raises(ConfigError, match="strategy 'best'"):
        server(strategy="best").environment()


def test_port_that_is_taken_is_refused(server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="--port"):
            server(port=taken.getsockname()[1]).environment()


def test_archive_is_asked_for_the_modality_of_the_model_or_the_one_given(server, monkeypatch):
    archive = "http://127.0.0.1:8042/dicom-web"
    found = server(studies=archive).environment()
    assert found["MONAI_LABEL_DICOMWEB_SEARCH_FILTER"] == '{"Modality": "CT"}'
    assert found["MONAI_LABEL_STUDIES"] == archive and "runs/label" in found["MONAI_LABEL_APP_DIR"]
    found = server(studies=archive + "/", modality="MR").environment()
    assert found["MONAI_LABEL_DICOMWEB_SEARCH_FILTER"] == '{"Modality": "MR"}'
    monkeypatch.setattr("medssl.label_app.launch._modality_of", lambda bundle: None)
    with pytest.raises(ConfigError, match="--search-filter"):
        server(studies=archive).environment()


def test_proposals_are_stored_only_if_asked_for_and_only_in_an_archive(server):
    archive = "http://127.0.0.1:8042/dicom-web"
    conf = [server(studies=archive, proposals=asked).environment()["MONAI_LABEL_APP_CONF"] for asked in (True, False)]
    assert [json.loads(text).get("proposals") for text in conf] == ["true", None]
    with pytest.raises(ConfigError, match="--proposals"):
        server(proposals=True).environment()


def test_missing_extra_is_named(server, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"medssl\[label\]"):
        server().environment()


def test_newest_finished_run_on_scans_is_the_default(trained_run, tmp_path):
    facts = json.loads((trained_run / "run.json").read_text())
    for name, changes in {
        "old": {"finished": "2026-01-01", "status": "finished"},
        "new": {"finished": "2026-02-01", "status": "finished"},
        "x": {"finished": "9", "status": "failed"},
        "scenes": {"finished": "9", "status": "finished", "task": "scenes"},
        "foreign": {"finished": "9", "status": "finished", "task": "of another package"},
    }.items():
        shutil.copytree(trained_run / "bundle", tmp_path / name / "bundle")
        (tmp_path / name / "run.json").write_text(json.dumps({**facts, **changes}))
    assert newest_run(tmp_path) == tmp_path / "new"
    with pytest.raises(ConfigError, match="make demo"):
        newest_run(tmp_path / "none")


def test_command_line_prints_the_error_alone(label_bundle, tmp_path):
    result = CliRunner().invoke(app, ["label", "--studies", str(tmp_path / "none"), "--bundle", str(label_bundle)])
    assert isinstance(result.exception, DataError)


def test_places_that_are_written_to_are_told(server, scans_to_review, tmp_path):
    folder = scans_to_review.resolve()
    told = server().told_places(Workspace(tmp_path / "own"))
    assert (
        str(folder / "labels") in told and str(folder / "datastore_v2.json") in told and str(tmp_path / "own") in told
    )
    of_archive = server(studies="http://127.0.0.1:8042/dicom-web").told_places(Workspace(tmp_path / "own"))
    assert of_archive == f"labels, models and logs are written to {tmp_path / 'own'}"


def test_workspace_is_private_emptied_of_uploads_and_no_scan(tmp_path):
    workspace = Workspace(default_workspace(str(tmp_path)))
    workspace.prepare()
    (workspace.temporary / "sent.nii.gz").write_bytes(b"x")
    (workspace.trainings / "0001").mkdir()
    workspace.prepare()
    assert not list(workspace.temporary.iterdir()) and (workspace.trainings / "0001").is_dir()
    assert workspace.temporary.stat().st_mode & 0o077 == workspace.root.stat().st_mode & 0o077 == 0
    (tmp_path / "a.nii.gz").write_bytes(b"x")
    assert [case["id"] for case in scans_in(tmp_path)] == ["a"]


def test_samples_below_zero_are_refused_before_the_server_starts(server):
    with pytest.raises(ConfigError, match="samples -5: expected at least 0"):
        server(samples=-5).environment()
