"""What OHIF gets from its server besides what MONAI Label gives it."""

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.config import settings

from medssl.label_app import viewer
from medssl.label_app.viewer import ViewerMiddleware, archive_access

HOST = "127.0.0.1:8123"


@pytest.fixture
def client():
    app = FastAPI()
    app.add_middleware(ViewerMiddleware, strategy="uncertain")
    app.include_router(archive_access)
    app.add_api_route("/ohif/{path:path}", lambda path: path)
    app.add_api_route("/info/", lambda: "info")
    app.add_api_route("/activelearning/{strategy}", lambda strategy: strategy, methods=["POST"])
    return TestClient(app, base_url=f"http://{HOST}")


@pytest.mark.parametrize("asked", ["random", "uncertain", "structure"])
def test_programs_get_the_strategy_they_ask_for(client, asked):
    assert client.post(f"/activelearning/{asked}").json() == asked
    assert client.post(f"/activelearning/{asked}", headers={"Referer": "http://elsewhere/page"}).json() == asked


def test_ohif_which_always_asks_for_a_random_sample_gets_the_servers_strategy(client):
    page = {"Referer": f"http://{HOST}/ohif/monai-label?StudyInstanceUIDs=1.2"}
    assert client.post("/activelearning/random", headers=page).json() == "uncertain"


def test_pages_of_ohif_learn_the_address_and_load_nothing_from_elsewhere(client):
    answer = client.get("/ohif/monai-label")
    name, _, value = answer.headers["set-cookie"].partition("; ")[0].partition("=")
    assert (name, value) == ("MONAILABEL_SERVER_URL", "http%3A%2F%2F127.0.0.1%3A8123%2F")
    assert "Path=/ohif;" in answer.headers["set-cookie"] and "http" not in answer.headers["content-security-policy"]


def test_other_answers_stay_as_they_are(client):
    assert not {"set-cookie", "content-security-policy"} & set(client.get("/info/").headers)


@pytest.mark.parametrize(
    ("asked", "passed_on"),
    [("studies?PatientID=7&limit=2", "studies?PatientID=7&limit=2"), ("studies/1.2/metadata", "studies/1.2/metadata")],
)
def test_the_archive_is_told_what_is_searched_for(client, monkeypatch, asked, passed_on):
    monkeypatch.setattr(viewer, "proxy_dicom", archive)
    assert client.get(f"/proxy/dicom/qido/{asked}").json()["asked"] == f"qido {passed_on}"


DICOM_FILES = 'multipart/related; type="application/dicom"; boundary=x'


async def archive(request, kind, path):
    body = (await request.body()).decode()
    return JSONResponse({"asked": f"{kind} {path}", "body": body, "headers": sorted(request.headers)})


@pytest.mark.parametrize("address", ["wado/studies", "stow/studies/1.2", "studies"])
def test_files_to_be_stored_reach_the_archive_without_headers_for_this_server(client, monkeypatch, address):
    monkeypatch.setattr(viewer, "proxy_dicom", archive)
    own = {
        "Content-Type": DICOM_FILES,
        "Accept": "application/dicom+json",
        "Cookie": "a=b",
        "Authorization": "Bearer c",
    }
    answer = client.post(f"/proxy/dicom/{address}", content=b"files", headers=own).json()
    assert answer["asked"] == f"stow {address.removeprefix('wado/').removeprefix('stow/')}"
    assert answer["body"] == "files"
    assert answer["headers"] == ["accept", "accept-encoding", "content-length", "content-type"]


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"00081199": {"vr": "SQ", "Value": [{}]}}, 200),
        ({"00081198": {"vr": "SQ"}, "00081199": {"vr": "SQ", "Value": [{}]}}, 200),
        ({"00081198": {"vr": "SQ", "Value": [{"00081197": {"vr": "US", "Value": [272]}}]}}, 409),
        ([{"0008119A": {"vr": "SQ", "Value": [{}]}}], 409),
    ],
)
def test_ohif_is_told_if_the_archive_has_not_taken_a_file(client, monkeypatch, told, status):
    async def answering(request, kind, path):
        return JSONResponse(told)

    monkeypatch.setattr(viewer, "proxy_dicom", answering)
    answer = client.post("/proxy/dicom/studies", content=b"files", headers={"Content-Type": DICOM_FILES})
    assert answer.status_code == status and answer.json() == told


def test_only_who_may_submit_labels_may_store_in_the_archive():
    needed = {route.path: [part.call.roles for part in route.dependant.dependencies] for route in archive_access.routes}
    assert needed["/proxy/dicom/{path:path}"] == [settings.MONAI_LABEL_AUTH_ROLE_ANNOTATOR]
    assert needed["/proxy/dicom/{kind}/{path:path}"] == [settings.MONAI_LABEL_AUTH_ROLE_USER]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("wado/studies", "application/json"),
        ("wado/studies/1.2/series", DICOM_FILES),
        ("servers/other/stow", DICOM_FILES),
        ("wado/modalities", DICOM_FILES),
        ("qido/studies", DICOM_FILES),
    ],
)
def test_nothing_else_is_posted_to_the_archive(client, monkeypatch, address, kind):
    monkeypatch.setattr(viewer, "proxy_dicom", archive)
    assert client.post(f"/proxy/dicom/{address}", content=b"{}", headers={"Content-Type": kind}).status_code == 403
