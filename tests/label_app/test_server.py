"""The label server over HTTP, as a viewer uses it and as an attacker would."""

import gzip
import http.client
import io
import json
import shutil
import threading
import time
from pathlib import Path
from urllib.parse import quote, urlsplit

import nibabel as nib
import numpy as np
import pytest
import requests
import SimpleITK
from filelock import FileLock

from medssl.core.errors import ConfigError
from medssl.core.files import FolderLock
from medssl.data.voxel_grid import LPS_TO_RAS
from medssl.inference import load_predictor

MODEL = "mcdropout_unet3d"

TRAVERSALS = [
    *("..", ".", "...", "../x", "../../x", "../../../../tmp/x", "/etc/passwd", "//etc/passwd", "/tmp/x", "./x"),
    *("a/../../x", "a/b", "..\\x", "..\\..\\x", "C:\\x", "\\\\host\\x", "....//x", "..;/x", "~/x", "$HOME/x"),
    *("%2e%2e%2fx", "%2e%2e/x", "..%2fx", "..%5cx", "%252e%252e%252fx", "x\0", "x\n../y", "x y", "file:///etc/passwd"),
    *("x" * 65, "..%c0%afx", "|id"),
]


@pytest.fixture(scope="module")
def scored(label_server):
    """The server once all five studies are scored."""
    label_server.wait_until(lambda: next_sample(label_server).get("unscored") == 0, "scores of all studies")
    return label_server


def next_sample(server, strategy="uncertain", **params):
    return server.post(f"/activelearning/{strategy}", json=params).json()


def infer(server, model=MODEL, image="phantom_000", output="all", **params):
    return server.post(
        f"/infer/{model}", params={"image": image, "output": output}, data={"params": json.dumps(params)}
    )


def multipart(response):
    """JSON and image of an answer that holds both."""
    boundary = response.headers["content-type"].split("boundary=")[1].encode()
    parts = [part.split(b"\r\n\r\n", 1) for part in response.content.split(b"--" + boundary) if b"\r\n\r\n" in part]
    found = {b"params" in head.split(b"\r\n")[1]: body[:-2] for head, body in parts}
    return json.loads(found[True]), found[False]


def nifti(content):
    return nib.Nifti1Image.from_bytes(gzip.decompress(content))


def test_info_lists_both_models_the_trainer_and_the_strategies(label_server):
    found = label_server.get("/info/").json()
    assert found["models"][MODEL]["labels"] == {"kidney": 1}
    assert found["models"][f"{MODEL}_uncertainty"]["labels"] == {
        "low uncertainty": 1,
        "middle uncertainty": 2,
        "high uncertainty": 3,
    }
    assert list(found["strategies"]) == ["uncertain", "structure", "random"] and MODEL in found["trainers"]
    assert found["datastore"]["total"] == 5 and isinstance(found["labels"], list)


def test_inference_returns_the_segmentation_on_the_scans_grid_and_what_is_worth_knowing(label_server, label_bundle):
    response = infer(label_server)
    assert response.status_code == 200
    record, content = multipart(response)
    image, scan = nifti(content), nib.load(label_server.studies / "phantom_000.nii.gz")
    assert image.shape == scan.shape and np.allclose(image.affine, scan.affine)
    expected = load_predictor(label_bundle, samples=2)({"id": "phantom_000", "image": str(scan.get_filename())})
    assert np.array_equal(np.asarray(image.dataobj), expected.segmentation)
    kidney = record["structures"]["kidney"]
    voxel_ml = float(np.prod(scan.header.get_zooms())) / 1000
    assert kidney["volume_ml"] == pytest.approx(expected.segmentation.sum() * voxel_ml, rel=1e-3)
    assert set(kidney) == {"class", "volume_ml", "mean_entropy_bits", "surroundings_entropy_bits"}
    assert record["score"] == pytest.approx(kidney["surroundings_entropy_bits"])
    assert len(record["uncertain_slices"]) == 5 and record["label_names"] == {"kidney": 1}


def test_entropy_map_is_kept_under_its_tag_on_the_scans_grid(label_server, label_bundle):
    infer(label_server, output="json")
    response = label_server.get("/datastore/label", params={"label": "phantom_000", "tag": "uncertainty"})
    image, scan = nifti(response.content), nib.load(label_server.studies / "phantom_000.nii.gz")
    assert image.shape == scan.shape and np.allclose(image.affine, scan.affine)
    expected = load_predictor(label_bundle, samples=2)({"id": "phantom_000", "image": str(scan.get_filename())})
    assert np.allclose(image.get_fdata(), expected.entropy, atol=1e-5)


def test_second_model_shows_bands_of_uncertainty(label_server):
    record, content = multipart(infer(label_server, f"{MODEL}_uncertainty"))
    entropy = label_server.get("/datastore/label", params={"label": "phantom_000", "tag": "uncertainty"})
    bits, bands = nifti(entropy.content).get_fdata(), np.asarray(nifti(content).dataobj)
    assert np.array_equal(bands, np.digitize(bits.astype(np.float32), (0.2, 0.5, 0.8)))
    assert record["label_names"]["high uncertainty"] == 3 and record["volumes_ml"]["high uncertainty"] > 0


def test_viewers_get_nrrd_in_the_scans_place_if_they_ask_for_it(label_server, tmp_path):
    response = infer(label_server, output="image", result_extension=".nrrd", result_compress=False)
    (tmp_path / "result.nrrd").write_bytes(response.content)
    image, (_, content) = SimpleITK.ReadImage(str(tmp_path / "result.nrrd")), multipart(infer(label_server))
    expected = nifti(content)
    assert np.array_equal(SimpleITK.GetArrayFromImage(image).T, np.asarray(expected.dataobj))
    origin = (LPS_TO_RAS @ expected.affine)[:3, 3]
    assert np.allclose(image.GetOrigin(), origin, atol=1e-4)


def test_scan_that_is_sent_along_is_segmented_and_not_kept(label_server):
    scan = label_server.studies / "phantom_001.nii.gz"
    with scan.open("rb") as file:
        response = label_server.post(f"/infer/{MODEL}", params={"output": "image"}, files={"file": ("a.nii.gz", file)})
    assert nifti(response.content).shape == nib.load(scan).shape
    temporary = label_server.studies / ".medssl_label" / "tmp"
    label_server.wait_until(lambda: not list(temporary.glob("*.nii.gz")), "removal of what was sent", 30)
    assert len(label_server.get("/datastore/?output=all").json()["objects"]) == 5


@pytest.mark.parametrize("content", [b"not a scan", b""])
def test_bad_scans_get_a_clear_error(label_server, content):
    files = {"file": ("a.nii.gz", io.BytesIO(content))}
    response = label_server.post(f"/infer/{MODEL}", params={"output": "image"}, files=files)
    assert response.status_code == 422 and "expected" in response.json()["detail"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/infer/{MODEL}?image=nobody", 404),
        ("/infer/other?image=phantom_000", 400),
        ("/activelearning/best", 400),
        (f"/infer/{MODEL}?image=phantom_000&output=dicom_seg", 500),
        ("/reload", 404),
        (f"/model/{MODEL}", 404),
    ],
)
def test_unknown_things_are_refused(label_server, path, status):
    assert label_server.post(path).status_code == status


def test_studies_are_scored_unasked_and_offered_by_their_uncertainty(scored):
    facts = scored.get("/datastore/?output=all").json()["objects"]
    scores = {name: entry["image"]["info"]["medssl"]["record"]["score"] for name, entry in facts.items()}
    assert len(scores) == 5
    found = next_sample(scored)
    assert found["id"] == max(scores, key=scores.get) and found["score"] == max(scores.values())
    assert Path(found["path"]).is_file() and found["medssl"]["made_by"]["samples"] == 2
    assert next_sample(scored, "structure", structure="kidney")["id"] == found["id"]
    assert next_sample(scored, "structure", structure="liver")["detail"].startswith("structure 'liver'")
    assert next_sample(scored, "random")["id"] == next_sample(scored, "random")["id"]


def test_others_do_not_wait_for_a_prediction(scored):
    answers = []
    asking = threading.Thread(target=lambda: answers.append(infer(scored, output="json")))
    with FileLock(scored.studies / ".medssl_label" / "predicting.lock"):
        asking.start()
        time.sleep(0.5)
        assert scored.get("/info/").status_code == 200 and next_sample(scored)["id"]
        assert not answers
    asking.join(60)
    assert answers[0].json()["id"] == "phantom_000"


def test_scan_that_is_added_to_the_folder_is_scored_and_offered(scored, phantom_dir):
    (scored.studies / "labels" / "original" / "Jane_Doe.nii.gz").write_bytes(b"")  # MONAI Label warns of it by name
    shutil.copy(phantom_dir / "images" / "phantom_007.nii.gz", scored.studies / "late.nii.gz")
    scored.wait_until((scored.studies / "labels" / "uncertainty" / "late.nii.gz").is_file, "its score")
    assert scored.get("/info/").json()["datastore"]["total"] == 6


def test_submitted_label_is_kept_and_its_study_not_offered_again(scored, phantom_dir):
    first = next_sample(scored)["id"]
    response = submit(scored, first, scored.studies / "labels" / "original" / f"{first}.nii.gz")
    assert response.status_code == 200 and response.json()["label"] == first
    assert next_sample(scored)["id"] != first
    stored = scored.get("/datastore/label", params={"label": first, "tag": "final"})
    original = scored.get("/datastore/label", params={"label": first, "tag": "original"})
    assert np.array_equal(nifti(stored.content).get_fdata(), nifti(original.content).get_fdata())
    assert scored.get("/info/").json()["datastore"]["completed"] == 1


def test_label_of_another_scan_is_refused(scored, phantom_dir):
    response = submit(scored, "phantom_000", phantom_dir / "labels" / "phantom_001.nii.gz")
    assert response.status_code == 422 and "phantom_000" in response.json()["detail"]


def submit(server, study, file, tag="final", name="label.nii.gz"):
    with file.open("rb") as opened:
        return server.put(
            "/datastore/label",
            params={"image": study, "tag": tag},
            data={"params": "{}"},
            files={"label": (name, opened)},
        )


def raw(server, method, path, body=None, headers=None):
    """The status of a request that no library has tidied up."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
    connection.putrequest(method, path, skip_host=bool(headers and "Host" in headers))
    for name, value in {**(headers or {}), "Content-Length": str(len(body or b""))}.items():
        connection.putheader(name, value)
    connection.endheaders(body or b"")
    status = connection.getresponse().status
    connection.close()
    return status


def files_of_strangers(server):
    """Files outside of the server's own folders that one of TRAVERSALS could have made."""
    above = [path for folder in server.studies.parents for path in (*folder.glob("x*"), *folder.glob("y*"))]
    own = server.studies / ".medssl_label"
    return {*above, *(path for path in server.studies.rglob("*") if own not in path.parents)}


def test_thirty_ways_out_of_the_folder_are_closed(scored):
    assert len(TRAVERSALS) >= 30
    scan = (scored.studies / "phantom_000.nii.gz").read_bytes()
    before = files_of_strangers(scored)
    for text in TRAVERSALS:
        encoded, by_params = quote(text, safe=""), f"/infer/{MODEL}?image=phantom_000"
        label, image = {"label": ("l.nii.gz", scan)}, {"file": ("x.nii.gz", scan)}
        saved = {"save_label": True, "label_tag": text}
        answers = {
            "tag": scored.put(f"/datastore/label?image=phantom_000&tag={encoded}", files=label),
            "image of a label": scored.put(f"/datastore/label?image={encoded}", files=label),
            "new image": scored.put(f"/datastore/image?image={encoded}", files=image),
            "fetched label": scored.get(f"/datastore/label?label=phantom_000&tag={encoded}"),
            "fetched image": scored.get(f"/datastore/image?image={encoded}"),
            "facts": scored.put(f"/datastore/image/info?image={encoded}", data={"info": "{}"}),
            "inference": scored.post(f"/infer/{MODEL}?image={encoded}"),
            "image in params": scored.post(by_params, data={"params": json.dumps({"image": text})}),
            "tag in params": scored.post(by_params, data={"params": json.dumps(saved)}),
            "session of inference": scored.post(f"/infer/{MODEL}?session_id={encoded}"),
            "strategy": scored.post("/activelearning/uncertain", json={"strategy": text}),
            "batch": scored.post(f"/batch/infer/{MODEL}", json={"images": [text]}),
        }
        statuses = {what: answer.status_code for what, answer in answers.items()}
        statuses["model"] = raw(scored, "POST", f"/infer/{encoded}?image=phantom_000")
        statuses["session"] = raw(scored, "GET", f"/session/{encoded}")
        if text not in ("a/b", "x" * 65):  # the viewer's own pages may be called so
            statuses["page"] = raw(scored, "GET", f"/ohif/{encoded}")
        assert {what: status for what, status in statuses.items() if not 400 <= status < 500} == {}, text
    assert files_of_strangers(scored) == before


@pytest.mark.parametrize("name", ["..", "x.nii.gz\0", "a%2f..%2fx.nii.gz", "a..nii.gz", "C:x:.nii.gz"])
def test_names_of_files_do_not_lead_out_either(scored, name):
    for path in ("/datastore/image", "/session/", "/datastore/label?image=phantom_000&tag=other"):
        assert 400 <= sent(scored, path, name) < 500


@pytest.mark.parametrize("name", ["../x.nii.gz", "..\\x.nii.gz", "/home/me/x.nii.gz", "C:\\Users\\me\\x.nii.gz"])
def test_of_the_path_that_3d_slicer_sends_as_a_name_only_the_end_is_used(scored, name):
    before = files_of_strangers(scored)
    scan = (scored.studies / "phantom_000.nii.gz").read_bytes()
    assert sent(scored, "/datastore/label?image=phantom_000&tag=other", name, "label", scan) == 200
    new = files_of_strangers(scored) - before
    assert new <= {scored.studies / "labels" / "other", scored.studies / "labels" / "other" / "phantom_000.nii.gz"}


def sent(server, path, name, field="file", content=b"x"):
    """The status of a file that is sent under a name no library would send."""
    head = f'--b\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'.encode()
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    return raw(server, "PUT", path, head + content + b"\r\n--b--\r\n", kind)


@pytest.mark.parametrize("path", [f"/train/{MODEL}", "/train/", "/scoring/uncertainty", f"/batch/infer/{MODEL}"])
def test_requests_bring_no_code_into_the_processes_that_the_server_starts(scored, tmp_path, path):
    (tmp_path / "pydicom.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")  # which every such process imports
    own = {"bundle_path": str(tmp_path)}
    pairs = [list(pair) for pair in own.items()]
    keys = [{"bundle_path": 0, str(tmp_path): 0}]  # which dict.update takes for a pair, too
    for content in (own, *({name: form} for name in (MODEL, "uncertainty") for form in (own, pairs, keys))):
        assert scored.post(path, json=content).status_code == 400
    assert scored.post(path, json={"gpus": "x\0"}).status_code == 400
    kind = {"Content-Type": "Application/JSON"}
    assert scored.post(path, data=json.dumps(own), headers=kind).status_code == 400
    tasks = [scored.get(path) for path in ("/train/", "/scoring/", "/batch/infer")]
    assert [task.status_code for task in tasks] == [404, 404, 404] and not (tmp_path / "ran").exists()


def test_what_the_model_said_of_a_study_cannot_be_overwritten(scored):
    for info in ({"medssl": "x"}, {"medssl": {"record": {"score": 9}}}):
        answer = scored.put("/datastore/image/info?image=phantom_001", data={"info": json.dumps(info)})
        assert answer.status_code == 400
    elsewhere = json.dumps({"path": "/etc/passwd"})  # which would be in the answer to the next sample
    assert scored.put("/datastore/image/info?image=phantom_001", data={"info": elsewhere}).status_code == 422
    assert scored.put("/datastore/image/info?image=phantom_001", data={"info": '{"ward": "3"}'}).status_code == 200
    said = {tag: scored.studies / "labels" / tag / "phantom_001.nii.gz" for tag in ("original", "uncertainty")}
    before = {tag: file.read_bytes() for tag, file in said.items()}
    for tag in said:
        assert submit(scored, "phantom_001", scored.studies / "phantom_001.nii.gz", tag).status_code == 422
        label = f"{scored.url}/datastore/label"
        assert requests.delete(label, params={"id": "phantom_001", "tag": tag}, timeout=60).status_code == 422
        weights = {"info": '{"weights": "x"}'}
        assert scored.put(f"/datastore/label/info?label=phantom_001&tag={tag}", data=weights).status_code == 422
    assert {tag: file.read_bytes() for tag, file in said.items()} == before
    assert next_sample(scored)["id"]


def test_prediction_does_not_become_a_review(scored):
    reviewed = scored.get("/info/").json()["datastore"]["completed"]
    answer = infer(scored, image="phantom_001", output="json", save_label=True, label_tag="final")
    assert answer.status_code == 422 and "no review" in answer.json()["detail"]
    assert infer(scored, image="phantom_001", output="json", save_label=True, label_tag="kept").status_code == 200
    assert (scored.studies / "labels" / "kept" / "phantom_001.nii.gz").is_file()
    assert scored.get("/info/").json()["datastore"]["completed"] == reviewed


def test_archives_are_not_unpacked_and_scans_not_deleted(scored):
    files = {"files": ("a.tar", b"x")}
    assert scored.put("/session/?uncompress=true", files=files).status_code == 400
    assert requests.delete(f"{scored.url}/datastore/image?id=phantom_000", timeout=60).status_code == 422
    assert (scored.studies / "phantom_000.nii.gz").is_file()


def test_pages_of_other_sites_and_other_names_of_this_machine_are_refused(label_server):
    foreign = {"Origin": "http://evil.example"}
    assert label_server.post("/train/", headers=foreign).status_code == 403
    own = {"Origin": label_server.url}
    assert label_server.post("/activelearning/uncertain", json={}, headers=own).status_code == 200
    assert raw(label_server, "GET", "/info/", headers={"Host": "evil.example"}) == 400
    assert "access-control-allow-origin" not in label_server.get("/info/", headers=foreign).headers


def test_second_server_on_the_same_studies_is_refused(label_server, label_bundle):
    with pytest.raises(ConfigError, match="another process"):
        FolderLock(label_server.studies / ".medssl_label")


def test_next_segment_submit_train_next(scored, phantom_dir, tmp_path):
    """The whole loop, quickly; test_review_loop.py has it with a power cut, test_orthanc_training.py on an archive."""
    reviewed = set()
    for _ in range(2):
        study = next_sample(scored)["id"]
        assert study not in reviewed and infer(scored, image=study, output="json").json()["id"] == study
        label = nib.load(phantom_dir / "labels" / f"{study.replace('late', 'phantom_007')}.nii.gz")
        kidney = (np.asarray(label.dataobj) > 0).astype(np.uint8)
        nib.save(nib.Nifti1Image(kidney, label.affine), tmp_path / "label.nii.gz")
        assert submit(scored, study, tmp_path / "label.nii.gz").status_code == 200
        reviewed.add(study)
    # in the server itself: a process of its own would take twice the time; test_background.py has what that is given
    answer = scored.post(f"/train/{MODEL}?run_sync=true", json={"max_epochs": 1, "bundle": "/x"})
    assert answer.status_code == 200, answer.text
    outcome = answer.json()
    assert outcome == scored.get("/info/").json()["train_stats"][MODEL]
    assert outcome["status"] == ("swapped" if outcome["dice_after"] >= outcome["dice_before"] else "kept")
    assert outcome["held_out"]["reviewed"] and outcome["left_out_segmentations"] == []
    assert next_sample(scored)["id"] not in reviewed


def test_log_has_our_lines_and_no_ids_of_studies(scored):
    text = scored.log.read_text() + (scored.studies / ".medssl_label" / "logs" / "app.log").read_text()
    assert "predicted a study" in text and "Traceback" not in text
    assert "phantom_000" not in text and "Jane_Doe" not in text
