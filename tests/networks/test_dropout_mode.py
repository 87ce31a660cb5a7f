"""MC dropout is a mode: dropout layers sample, norms do not learn, and afterwards everything is as it was."""

import pytest
import torch
from monai.networks.layers import DropPath
from monai.networks.nets import SegResNet, VNet
from torch import nn

from medssl.core.errors import ConfigError
from medssl.networks import mc_dropout, require_dropout
from medssl.networks.mc_dropout import seeded_dropout

KINDS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def network() -> nn.Sequential:
    """All kinds of layers whose mode matters, in mixed modes."""
    layers = nn.Sequential(
        nn.Conv3d(1, 4, 1),
        nn.BatchNorm3d(4),
        nn.Dropout3d(0.5),
        nn.InstanceNorm3d(4, track_running_stats=True),
        nn.Sequential(nn.Dropout(0.5), nn.AlphaDropout(0.5)),
    )
    layers.train()
    layers[1].eval()
    layers[4][0].eval()
    return layers


def modes(module: nn.Module) -> list[bool]:
    return [part.training for part in module.modules()]


def test_only_dropout_layers_are_switched_on():
    net = network()
    with mc_dropout(net) as same:
        assert same is net
        on = {type(part).__name__ for part in net.modules() if part.training}
    assert on == {"Dropout3d", "Dropout", "AlphaDropout"}


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("start", ["train", "eval", "mixed"])
def test_modes_come_back(start, enabled):
    net = network()
    if start != "mixed":
        net.train(start == "train")
    before = modes(net)
    with mc_dropout(net, enabled):
        pass
    assert modes(net) == before
    with pytest.raises(RuntimeError, match="out of memory"), mc_dropout(net, enabled):
        raise RuntimeError("out of memory")
    assert modes(net) == before


def test_running_statistics_do_not_move():
    net = network()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with mc_dropout(net), torch.no_grad():
        first, second = (net(torch.ones(2, 1, 4, 4, 2)) for _ in range(2))
    assert not torch.equal(first, second)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_switched_off_it_is_plain_evaluation():
    net = network()
    with mc_dropout(net, enabled=False), torch.no_grad():
        assert not any(modes(net))
        assert torch.equal(net(torch.ones(2, 1, 4, 4, 2)), net(torch.ones(2, 1, 4, 4, 2)))


def test_sampling_inside_of_sampling_comes_back_to_sampling():
    net = network()
    with mc_dropout(net):
        inside = modes(net)
        with mc_dropout(net, enabled=False):
            assert not any(modes(net))
        assert modes(net) == inside


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_dropout_samples_and_follows_its_rows_seed(kind):
    axes = {nn.Dropout1d: 1, nn.Dropout2d: 2}.get(kind, 3)
    layer, x = kind(0.5).eval(), torch.rand(3, 16, *[2] * axes)
    with mc_dropout(layer):
        assert not torch.equal(layer(x), layer(x))
    with seeded_dropout(layer, [5, 6, 7]):
        together = layer(x)
    with seeded_dropout(layer, [7]):
        alone = layer(x[2:])
    assert torch.equal(together[2:], alone) and not torch.equal(together, x)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_seeded_alpha_dropout_gives_the_values_of_torchs(kind, p):
    layer, x = kind(p), torch.full((1, 4000, 1), 0.25)
    theirs = layer(x)
    with seeded_dropout(layer, [1]):
        ours = layer(x)
    assert torch.allclose(ours.unique(), theirs.unique(), atol=1e-6)
    assert ours.mean().item() == pytest.approx(theirs.mean().item(), abs=0.08)


def test_stochastic_depth_is_no_dropout():
    net = nn.Sequential(DropPath(0.5), nn.Dropout(0.0))
    with mc_dropout(net):
        assert not net[0].training
    with pytest.raises(ConfigError, match="network Sequential has no dropout layer"):
        require_dropout(net, 1)


def test_samples_of_a_network_without_dropout_are_refused_with_the_way_out():
    text = r"network SegResNet has no dropout.*samples 20 would all be the same.*--samples 0"
    for silent in (SegResNet(), SegResNet(dropout_prob=0.0)):
        with pytest.raises(ConfigError, match=text):
            require_dropout(silent, 20)
        require_dropout(silent, 0)
    require_dropout(SegResNet(dropout_prob=0.2), 20)
    require_dropout(VNet(), 20)
