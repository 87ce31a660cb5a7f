"""Back ends compute the same passes: each against eager, with the same seeds."""

import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

from medssl.core.errors import ConfigError
from medssl.inference import MCDropoutInferer
from medssl.inference.backends import openvino
from medssl.inference.backends.eager import EagerBackend
from medssl.inference.backends.one_window import OneWindowBackend
from medssl.networks import MCDropoutUNet3D

WINDOW, STRIDE = (16, 16, 4), (8, 8, 2)
COMPARE = """
    import torch
    from medssl.inference import MCDropoutInferer
    from medssl.networks import MCDropoutUNet3D

    torch.manual_seed(0)
    network, image = MCDropoutUNet3D(1, 3, widths=(4, 8)), torch.rand(1, 1, 20, 24, 7)
    for samples in (0, 3):
        for mode in ("reference", "exact", "fast"):
            found = []
            for backend in ("eager", "{backend}"):
                torch.manual_seed(3)
                inferer = MCDropoutInferer((16, 16, 4), (8, 8, 2), samples, mode=mode, backend=backend)
                found.append(inferer.statistics(image, network))
            torch.testing.assert_close(found[0].mean, found[1].mean, atol=1e-4, rtol=0)
            torch.testing.assert_close(found[0].entropy, found[1].entropy, atol=1e-3, rtol=0)
"""


class PlainOneWindow(OneWindowBackend):
    """The shared part with the network itself as the graphs."""

    def encode_window(self, window):
        assert len(window) == 1
        return self.network.encode(window)

    def decode_window(self, features, masks):
        return self.network.decode(features, masks)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return MCDropoutUNet3D(1, 3, widths=(4, 8)).eval()


@torch.inference_mode()
def test_one_window_at_a_time_gives_the_passes_of_eager(network):
    windows = torch.rand(3, 1, *WINDOW)
    plain, eager = PlainOneWindow(network), EagerBackend(network)
    for seeds in ([4, 5, 6], None):
        torch.testing.assert_close(plain.whole(windows, seeds), eager.whole(windows, seeds), atol=1e-5, rtol=0)
    features = [level[1:2] for level in plain.encode(windows)]
    torch.testing.assert_close(plain.decode(features, 5), eager.whole(windows, [4, 5, 6])[1:2], atol=1e-5, rtol=0)


def test_network_without_the_parts_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"Conv3d: has no encode.*eager"):
        PlainOneWindow(nn.Conv3d(1, 2, 1))


def test_missing_openvino_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ConfigError, match=r"medssl\[openvino\]"):
        openvino.import_openvino()


def test_back_end_is_built_again_only_for_other_weights(network, monkeypatch):
    built = []
    monkeypatch.setattr(
        "medssl.inference.mc_dropout.open_backend", lambda name, net, *_: built.append(name) or PlainOneWindow(net)
    )
    inferer = MCDropoutInferer(WINDOW, STRIDE, 1, backend="compile")
    image = torch.rand(1, 1, *WINDOW)
    for _ in range(2):
        inferer(image, network)
    assert built == ["compile"]
    with torch.no_grad():
        network.classifier.bias += 1
    inferer(image, network)
    assert built == ["compile"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["compile", "openvino"])
def test_back_end_agrees_with_eager_in_every_mode(backend):
    if backend == "openvino":
        pytest.importorskip("openvino")
    script = textwrap.dedent(COMPARE.format(backend=backend))
    subprocess.run([sys.executable, "-c", script], check=True, timeout=500)  # a crash in it must not end the tests
