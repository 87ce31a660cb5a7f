"""MC dropout is a mode: dropout layers sample, norms do not learn, and afterwards everything is as it was."""

import pytest
import torch
from torch import nn

from medssl.networks import mc_dropout


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
