"""The supervised method: the loss of the network on a labelled batch, and nothing more."""

import torch

from medssl.losses import DiceCE
from medssl.methods import Supervised
from medssl.networks import MCDropoutUNet3D


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(2, 1, 16, 16, 4, generator=generator)
    return {"image": image, "label": (image > 0.5).to(torch.uint8)}


def test_losses_are_those_of_the_network_on_the_batch():
    network, loss = MCDropoutUNet3D(1, 2, (4, 8), dropout=0.0), DiceCE()
    found, expected = Supervised(network, loss)(batch()), loss(network(batch()["image"]), batch()["label"])
    assert found.keys() == expected.keys() == {"loss", "ce", "dice"}
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_only_the_network_is_trained():
    network = MCDropoutUNet3D(1, 2, (4, 8))
    assert list(Supervised(network, DiceCE()).parameters()) == list(network.parameters())


def test_a_few_steps_lower_the_loss():
    torch.manual_seed(0)
    method = Supervised(MCDropoutUNet3D(1, 2, (4, 8), dropout=0.0), DiceCE())
    optimizer = torch.optim.Adam(method.parameters(), lr=0.01)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = method(batch())["loss"]
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
