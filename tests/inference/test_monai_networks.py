"""Any MONAI network is trained, exported and predicted as our own: VNet by name, others with and without dropout."""

import json
import logging

import numpy as np
import pytest
import torch
from monai.networks import nets

from medssl.core.errors import ConfigError
from medssl.core.prediction_options import MODES
from medssl.core.run_folder import RunFolder
from medssl.data import Pipeline, facts_from_json
from medssl.data.volumes import write_nifti
from medssl.engine import MethodTrainer
from medssl.inference import MCDropoutInferer, Predictor, export_bundle, load_predictor
from medssl.losses import DiceCE
from medssl.methods import Supervised
from medssl.networks import MCDropoutUNet3D, check_network
from medssl.security import check_config

WINDOW, STRIDE = (16, 16, 16), (8, 8, 8)
FACTS = {
    "name": "folder",
    "window": [-100, 250],
    "slice_size": None,
    "region_size": None,
    "patch_size": list(WINDOW),
    "label_map": {"1": 1},
    "structures": {"1": "bright"},
}
VNET = {"_target_": "monai.networks.nets.VNet", "spatial_dims": 3, "in_channels": 1, "out_channels": 2}


def small_unet():
    return nets.UNet(3, 1, 2, channels=(4, 8), strides=(2,), dropout=0.2)


def small_segresnet():
    return nets.SegResNet(3, 8, 1, 2, blocks_down=(1, 1), blocks_up=(1,))


def small_dynunet():
    return nets.DynUNet(3, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2], filters=[4, 8, 8], dropout=0.2)


def small_swin_unetr():
    size = {"depths": (1, 1, 1, 1), "feature_size": 12, "norm_name": "batch"}
    return nets.SwinUNETR(1, 2, **size, drop_rate=0.2, attn_drop_rate=0.2)


def statistics(network, image, mode, samples, window=WINDOW, **settings):
    torch.manual_seed(3)
    return MCDropoutInferer(window, window, samples, mode=mode, **settings).statistics(image, network)


def assert_same(first, second):
    for name in ("mean", "entropy", "mutual_information"):
        torch.testing.assert_close(getattr(first, name), getattr(second, name), atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def vnet():
    """A VNet after two steps of supervised training."""
    torch.manual_seed(0)
    network = nets.VNet(3, 1, 2)
    images = torch.rand(2, 2, 1, *WINDOW, generator=torch.Generator().manual_seed(1))
    batches = [{"image": image, "label": (image > 0.6).to(torch.uint8), "id": ["a", "b"]} for image in images]
    method = Supervised(network, DiceCE())
    before = network.out_tr.conv2.weight.detach().clone()
    optimizer = torch.optim.SGD(method.parameters(), lr=0.1)
    MethodTrainer(method, optimizer, torch.utils.data.DataLoader(batches, batch_size=None), 1, "cpu").run()
    assert not torch.equal(network.out_tr.conv2.weight, before)
    return network


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / "scan.nii.gz"
    voxels = np.random.default_rng(0).integers(-100, 250, (20, 16, 16)).astype(np.int16)
    write_nifti(path, voxels, np.eye(4), np.int16)
    return {"id": "scan", "image": str(path)}


def predictor_of(network, samples=2, mode="fast"):
    return Predictor(network, Pipeline(facts_from_json(**FACTS)), MCDropoutInferer(WINDOW, STRIDE, samples, mode=mode))


def test_trained_vnet_predicts_the_same_after_its_export(vnet, case, bundle_dir, tmp_path):
    trained = predictor_of(vnet)
    trained.inferer.require_network(vnet)
    bundle = export_bundle(RunFolder(tmp_path / "run"), bundle_dir, trained, {**VNET, "dropout_prob_up": (0.5, 0.5)})
    stored = json.loads((bundle / "configs" / "inference.json").read_text())
    assert stored["network_def"] == {**VNET, "dropout_prob_up": [0.5, 0.5]}
    assert (stored["samples"], stored["stride"], stored["mode"], stored["backend"]) == (2, [8, 8, 8], "fast", "eager")
    assert check_config({"network_def": stored["network_def"]}) == []
    expected, found = trained(case), load_predictor(tmp_path / "run", device="cpu")(case)
    assert np.array_equal(found.probs, expected.probs) and np.array_equal(found.entropy, expected.entropy)
    assert found.mutual_information.max() > 0, "dropout samples"


def test_exact_is_reference_for_vnet_whatever_windows_are_beside_a_pass(vnet):
    image = torch.rand(1, 1, 24, 16, 16, generator=torch.Generator().manual_seed(1))
    assert_same(statistics(vnet, image, "reference", 2, window_batch=1), statistics(vnet, image, "exact", 2))


def test_fast_makes_fewer_whole_passes_at_the_same_windows():
    rows, network = dict.fromkeys(MODES, 0), small_unet()
    for mode in MODES:
        inferer = MCDropoutInferer(WINDOW, (4, 4, 4), 3, mode=mode, window_batch=4)
        counting = network.register_forward_pre_hook(
            lambda _, inputs, mode=mode: rows.update({mode: rows[mode] + len(inputs[0])})
        )
        inferer.statistics(torch.rand(1, 1, 24, 24, 24), network)
        counting.remove()
        assert rows[mode] == sum(inferer.plan((24, 24, 24), 3).values())
    assert rows["reference"] == rows["exact"] == 27 * 3 and 27 <= rows["fast"] < 27 * 3


@pytest.mark.parametrize(
    ("make", "window", "samples"),
    [
        (small_unet, WINDOW, 2),
        (small_segresnet, WINDOW, 0),
        (small_dynunet, WINDOW, 2),
        (small_swin_unetr, (32, 32, 32), 2),
    ],
)
def test_other_networks_pass_the_check_and_predict_the_same_in_exact_and_reference(make, window, samples):
    torch.manual_seed(0)
    network = make()
    check_network(network, window, num_classes=2, in_channels=1)
    MCDropoutInferer(window, window, samples).require_network(network)
    image = torch.rand(1, 1, *window, generator=torch.Generator().manual_seed(1))
    exact, reference = (statistics(network, image, mode, samples, window) for mode in ("exact", "reference"))
    assert_same(exact, reference)
    assert exact.mean.shape == (1, 2, *image.shape[2:]) and torch.allclose(exact.mean.sum(1), torch.ones(()), atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_without_samples_one_window_has_the_entropy_of_its_softmax_and_no_mutual_information(mode):
    torch.manual_seed(0)
    network, image = small_segresnet().eval(), torch.rand(1, 1, *WINDOW)
    found = statistics(network, image, mode, samples=0)
    with torch.no_grad():
        probs = network(image).softmax(1)
    torch.testing.assert_close(found.mean, probs, atol=1e-6, rtol=0)
    torch.testing.assert_close(found.entropy, -(probs * probs.log2()).sum(1), atol=1e-5, rtol=0)
    assert found.mutual_information.abs().max() < 1e-6


def test_network_that_gives_a_list_is_predicted_by_its_main_output():
    torch.manual_seed(0)
    network = nets.BasicUNetPlusPlus(3, 1, 2, features=(4, 4, 4, 4, 4, 4)).eval()
    image = torch.rand(1, 1, 32, 32, 32)
    found = statistics(network, image, "reference", samples=0, window=(32, 32, 32))
    with torch.no_grad():
        torch.testing.assert_close(found.mean, network(image)[0].softmax(1), atol=1e-6, rtol=0)


def test_samples_without_dropout_are_refused_before_a_training_and_told_of_at_a_prediction(tmp_path, caplog):
    inferer = MCDropoutInferer(WINDOW, STRIDE, samples=5)
    with pytest.raises(ConfigError, match="network SegResNet has no dropout"):
        inferer.require_network(small_segresnet())
    with caplog.at_level(logging.WARNING):
        inferer.prepare(small_segresnet(), tmp_path)
    assert "SegResNet has no dropout" in caplog.text and "--samples 0" in caplog.text


@pytest.mark.parametrize("backend", ["compile", "openvino", "int8"])
def test_back_ends_of_fixed_graphs_name_a_network_that_they_cannot_take(backend):
    inferer = MCDropoutInferer(WINDOW, STRIDE, samples=0, backend=backend)
    with pytest.raises(ConfigError, match=r"network SegResNet: has no draw_masks.*--backend eager"):
        inferer.require_network(small_segresnet())
    inferer.require_network(MCDropoutUNet3D(1, 2, widths=(4, 8)))


def test_network_that_does_not_say_how_it_was_built_is_not_exported(bundle_dir, tmp_path):
    with pytest.raises(ConfigError, match=r"SegResNet: how it was built is not known"):
        export_bundle(RunFolder(tmp_path), bundle_dir, predictor_of(small_segresnet(), samples=0))


def test_another_inferer_says_its_own_settings_for_the_bundle(bundle_dir, tmp_path):
    class Slices(MCDropoutInferer):
        def bundle_settings(self):
            return {"samples": 7, "slice_batch": 3}

    predictor = Predictor(
        MCDropoutUNet3D(1, 2, widths=(4, 8)), Pipeline(facts_from_json(**FACTS)), Slices(WINDOW, STRIDE)
    )
    bundle = export_bundle(RunFolder(tmp_path), bundle_dir, predictor)
    stored = json.loads((bundle / "configs" / "inference.json").read_text())
    template = json.loads((bundle_dir / "configs" / "inference.json").read_text())
    assert (stored["samples"], stored["slice_batch"], stored["stride"]) == (7, 3, template["stride"])
