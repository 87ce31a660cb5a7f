"""What the edge lets through, by a small application behind it; the same over HTTP is in test_server.py."""

import json

import pytest

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
import medssl.label_app.shim.sitecustomize  # noqa: F401, I001
from fastapi import Depends, FastAPI, File, Form, UploadFile
from fastapi.testclient import TestClient

from medssl.label_app.edge import check_request


@pytest.fixture(scope="module")
def client():
    app = FastAPI(dependencies=[Depends(check_request)])

    @app.post("/json")
    def read_json(params: dict | None = None):
        return params

    @app.put("/form")
    def read_form(params: str = Form("{}"), file: UploadFile = File(None)):  # noqa: B008
        return [params, file and file.filename]

    return TestClient(app)


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON", "application/x+json", "application/JSON;charset=utf-8", ""]
)
def test_json_of_any_spelling_is_checked(client, kind):
    def status(content):
        return client.post("/json", content=content, headers={"content-type": kind}).status_code

    assert status(json.dumps({"images": ["../../x"]})) == status(json.dumps({"bundle_path": "/tmp"})) == 400
    assert status(json.dumps({"images": ["../../x"]}).encode("utf-16")) == 400
    assert not kind or status(json.dumps({"images": ["x"]})) == 200


@pytest.mark.parametrize("kind", ["multipart/form-data", "Multipart/Form-Data"])
def test_forms_of_any_spelling_are_checked(client, kind):
    def sent(params):
        parts = [
            f'--b\r\nContent-Disposition: form-data; name="params"\r\n\r\n{json.dumps(params)}\r\n',
            '--b\r\nContent-Disposition: form-data; name="file"; filename="/home/me/x.nii.gz"\r\n\r\nx\r\n--b--\r\n',
        ]
        return client.put("/form", content="".join(parts), headers={"content-type": f"{kind}; boundary=b"})

    assert sent({"image": "../../x"}).status_code == 400
    assert sent({"medssl": {"record": {}}}).status_code == 400
    assert sent({"image": "x"}).json() == ['{"image": "x"}', "x.nii.gz"]


@pytest.mark.parametrize(
    "content",
    [
        {"bundle_path": "/tmp"},
        {"bundle_path": ""},
        {"some_model": {"bundle_path": "/tmp"}},
        {"gpus": "0\0"},
        {"gpus": ["0"]},
        {"some_model": {"gpus": "../x"}},
        {"some_model": [["bundle_path", "/tmp"]]},
        {"some_model": [{"bundle_path": 0, "/tmp": 0}]},
        {"a": [{"b": [["gpus", "../x"]]}]},
        {"some_model": {"model": "../x"}},
        {"medssl": "x"},
        {"a": {"b": {"medssl": "x"}}},
        {"medssl:files": "x"},
    ],
)
def test_what_would_reach_other_processes_or_our_own_facts_is_refused(client, content):
    answer = client.post("/json", json=content)
    assert answer.status_code == 400 and not str(answer.json()["detail"]).startswith("expected")


@pytest.mark.parametrize("content", [{"gpus": "all"}, {"gpus": "0,1"}, {"gpus": None}, {"m": {"max_epochs": 1}}, {}])
def test_what_viewers_send_is_let_through(client, content):
    assert client.post("/json", json=content).json() == content


@pytest.mark.parametrize("params", [[["image", "x"]], "x", 3, None])
def test_parameters_of_a_form_are_an_object(client, params):
    assert client.put("/form", data={"params": json.dumps(params)}).status_code == 400


@pytest.mark.parametrize("text", [r'{"client_id": "\ud800"}', r'{"\udfff": 1}', '{"a": ' + "[" * 25 + "]" * 25 + "}"])
def test_json_that_could_not_be_read_again_once_stored_is_refused(client, text):
    answer = client.post("/json", content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and "levels" in answer.json()["detail"]
    fine = client.post(
        "/json", content=r'{"client_id": "\ud83d\ude00 ü"}', headers={"content-type": "application/json"}
    )
    assert fine.status_code == 200
