"""The bundle keeps MONAI's contract: schema, properties, network shapes, export, run ids."""

import itertools
import json
from pathlib import Path

import pytest
import torch
from monai.bundle import ConfigParser, ConfigWorkflow, ckpt_export, verify_metadata, verify_net_in_out

from medssl.bundle import Command
from medssl.bundle.command import started
from medssl.bundle.provenance import flatten

BUNDLES = sorted(path for path in (Path(__file__).parents[2] / "bundles").iterdir() if path.is_dir())
EACH_BUNDLE = pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
OF_SCANS = [bundle for bundle in BUNDLES if bundle.name in ("gbdl", "mcdropout_unet3d", "teacher_student")]
EACH_OF_SCANS = pytest.mark.parametrize("bundle", OF_SCANS, ids=lambda path: path.name)


@EACH_BUNDLE
def test_bundle_has_configs_card_and_licence_and_no_python(bundle):
    configs = {"metadata", "train", "evaluate", "inference", "ddp", "smoke", "bench"}
    assert configs <= {path.stem for path in (bundle / "configs").glob("*.json")}
    assert (bundle / "docs" / "README.md").is_file() and (bundle / "LICENSE").is_file()
    assert not list(bundle.rglob("*.py"))


@EACH_BUNDLE
@pytest.mark.realdata
def test_metadata_follows_monais_schema(bundle, shared_data, tmp_path):
    schema = tmp_path / "schema.json"  # verify_metadata reads it instead of downloading if it is there
    schema.write_bytes((shared_data / "monai_schema" / "meta_schema_20240725.json").read_bytes())
    verify_metadata(meta_file=str(bundle / "configs" / "metadata.json"), filepath=str(schema))


@EACH_BUNDLE
def test_metadata_without_a_required_key_is_refused(bundle, shared_data, tmp_path):
    schema, broken = tmp_path / "schema.json", tmp_path / "metadata.json"
    schema.write_bytes((shared_data / "monai_schema" / "meta_schema_20240725.json").read_bytes())
    content = json.loads((bundle / "configs" / "metadata.json").read_text())
    del content["network_data_format"]
    broken.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="network_data_format"):
        verify_metadata(meta_file=str(broken), filepath=str(schema))


@EACH_BUNDLE
def test_network_has_the_shapes_the_metadata_states(bundle):
    verify_net_in_out(
        net_id="network_def",
        meta_file=str(bundle / "configs" / "metadata.json"),
        config_file=str(bundle / "configs" / "inference.json"),
        device="cpu",
    )


def test_trained_bundle_has_the_shapes_its_metadata_states(trained_run):
    configs = trained_run / "bundle" / "configs"
    verify_net_in_out(
        net_id="network_def",
        meta_file=str(configs / "metadata.json"),
        config_file=str(configs / "inference.json"),
        device="cpu",
    )


@EACH_BUNDLE
def test_train_config_has_monais_required_properties(bundle, phantom_dir, picture_dir, scene_dir, tmp_path):
    of_scans = bundle in OF_SCANS
    natural = {"np_match": picture_dir, "np_semiseg": scene_dir}
    files = [str(bundle / "configs" / name) for name in ("train.json", "smoke.json")]
    keys = {
        "dataset_name": "phantom" if of_scans else "folder",
        "dataset_dir": str(phantom_dir if of_scans else natural[bundle.name]),
        "output_dir": str(tmp_path / "run"),
        "mlflow": False,
        "labelled": 2 if of_scans else 6,
    }
    with started(Command(tuple(files), keys)):
        workflow = ConfigWorkflow(config_file=files, workflow_type="train", **keys)
        workflow.initialize()
        assert workflow.check_properties() == []


@EACH_BUNDLE
def test_train_config_holds_choices_and_little_wiring(bundle):
    text = (bundle / "configs" / "train.json").read_text()
    assert len(text.splitlines()) <= 150 and text.count('"$') <= 15


@pytest.mark.parametrize(("first", "second"), itertools.combinations(BUNDLES, 2), ids=lambda path: path.name)
def test_two_bundles_say_alike_only_what_monai_asks_of_each(first, second):
    said = [json.loads((bundle / "configs" / "train.json").read_text()) for bundle in (first, second)]
    alike = set(flatten(said[0]).items()) & set(flatten(said[1]).items())
    wiring = {leaf for leaf in alike if leaf[1].startswith(("@", "$", "%", '["', "medssl.", "SimpleInferer"))}
    assert len(alike - wiring) <= 16, "choices that several bundles share have a default in Python"


def test_inference_config_has_monais_required_properties(trained_run, phantom_dir):
    root = trained_run / "bundle"
    workflow = ConfigWorkflow(
        config_file=str(root / "configs" / "inference.json"),
        workflow_type="infer",
        bundle_root=str(root),
        dataset_dir=str(phantom_dir),
    )
    workflow.initialize()
    assert workflow.check_properties() == []


def test_checkpoint_exports_to_torchscript_with_the_same_output(trained_run, tmp_path):
    root = trained_run / "bundle"
    exported = tmp_path / "model.ts"
    ckpt_export(
        net_id="network_def",
        filepath=str(exported),
        ckpt_file=str(root / "models" / "model.pt"),
        meta_file=str(root / "configs" / "metadata.json"),
        config_file=str(root / "configs" / "inference.json"),
    )
    parser = ConfigParser()
    parser.read_config(str(root / "configs" / "inference.json"))
    network = parser.get_parsed_content("network_def")
    network.load_state_dict(torch.load(root / "models" / "model.pt", weights_only=True))
    image = torch.rand(1, 1, 32, 32, 8)
    scripted = torch.jit.load(str(exported)).eval()
    assert torch.allclose(scripted(image), network.eval()(image), atol=1e-5)


@EACH_BUNDLE
@pytest.mark.parametrize(
    ("file", "ids"),
    [
        ("train.json", {"initialize", "run", "training", "finalize"}),
        ("evaluate.json", {"run", "evaluating"}),
        ("inference.json", {"run", "predicting"}),
    ],
)
def test_documented_run_ids_are_there(bundle, file, ids):
    assert ids <= set(json.loads((bundle / "configs" / file).read_text()))


@EACH_OF_SCANS
def test_defaults_are_the_thesis_full_size(bundle):
    config = json.loads((bundle / "configs" / "train.json").read_text())
    assert config["network_def"]["widths"] == [32, 64, 96, 192, 384]
    assert config["network_def"]["dropout"] == 0.3
    assert (config["learning_rate"], config["batch_size"], config["samples"]) == (1e-4, 4, 20)
    assert config["stride"] == [8, 8, 8] and config["paper_crop"] is False


@pytest.mark.parametrize("file", ["inference.json", "evaluate.json", "ddp.json", "logging.conf"])
def test_bundles_that_predict_with_the_same_network_share_their_files(file):
    first, *others = ((bundle / "configs" / file).read_text().replace(bundle.name, "NAME") for bundle in OF_SCANS)
    assert all(other == first for other in others)
