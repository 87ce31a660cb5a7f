"""The moving average: its weights, its buffers, its names in a checkpoint; how a teacher teaches."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from medssl.methods.method import Schedule
from medssl.methods.parts import AveragedMethod, CountsSteps, moving_average, teacher_probs


class Averaging(AveragedMethod[nn.Module]):
    def forward(self, batch):
        return {"loss": self.network(batch["image"]).mean()}


class Counting(CountsSteps, Averaging):
    @dataclass(frozen=True)
    class Options:
        strength: float = 2.0


def network_of(axes, dropout=0.0):
    torch.manual_seed(0)
    convolution, norm = (nn.Conv2d, nn.BatchNorm2d) if axes == 2 else (nn.Conv3d, nn.BatchNorm3d)
    return nn.Sequential(convolution(1, 3, 1), norm(3), nn.Dropout(dropout))


def test_weights_follow_the_formula_and_buffers_are_the_live_ones():
    network = network_of(2)
    method = Averaging(network, ema_decay=0.9)
    expected = None
    for step in range(4):
        with torch.no_grad():
            network[0].weight += step + 1.0
            network[1].running_mean += step + 1.0
        method.after_step()
        weight = network[0].weight.detach().clone()
        expected = weight if expected is None else 0.9 * expected + 0.1 * weight
        torch.testing.assert_close(method.averaged[0].weight, expected)
        assert torch.equal(method.averaged[1].running_mean, network[1].running_mean)


def test_names_in_a_checkpoint_stay_what_they_were():
    names = set(Counting(network_of(3)).state_dict())
    parts = ["0.weight", "0.bias", *(f"1.{name}" for name in ("weight", "bias", "running_mean", "running_var"))]
    parts.append("1.num_batches_tracked")
    expected = {f"{place}.{name}" for place in ("network", "average.module") for name in parts}
    assert names == expected | {"average.n_averaged", "step"}


def test_average_is_evaluated_and_gets_no_gradient():
    method = Averaging(network_of(2))
    assert method.evaluated is method.averaged is method.average.module
    assert method.teachers == ()
    assert not any(parameter.requires_grad for parameter in method.average.parameters())
    assert all(parameter.requires_grad for parameter in method.network.parameters())


def test_loss_options_and_schedule_reach_the_method():
    loss, schedule = nn.MSELoss(), Schedule(10, 5)
    method = Counting(network_of(2), loss, Counting.Options(3.0), schedule, ema_decay=0.5)
    assert (method.loss, method.options.strength, method.schedule) == (loss, 3.0, schedule)
    assert Counting(network_of(2)).options.strength == 2.0


def test_steps_are_counted_beside_the_average_and_kept_in_a_checkpoint():
    method = Counting(network_of(2))
    for _ in range(3):
        method.after_step()
    assert (method.steps_taken, int(method.average.n_averaged)) == (3, 3)
    resumed = Counting(network_of(2))
    resumed.load_state_dict(method.state_dict())
    assert resumed.steps_taken == 3


@pytest.mark.parametrize("axes", [2, 3])
def test_teacher_teaches_in_evaluation_mode_without_gradient_and_keeps_its_mode(axes):
    network = network_of(axes, dropout=0.5).train()
    images = torch.randn(2, 1, *[4] * axes)
    statistics = network[1].running_mean.clone()
    first, again = teacher_probs(network, images), teacher_probs(network, images)
    assert torch.equal(first, again) and not first.requires_grad
    assert torch.equal(network[1].running_mean, statistics)
    assert all(module.training for module in network.modules())
    torch.testing.assert_close(first, network.eval()(images).softmax(1).detach())
    torch.testing.assert_close(first.sum(1), torch.ones(2, *[4] * axes))


def test_decay_zero_is_the_network_itself():
    network = network_of(2)
    average = moving_average(network, 0.0)
    for _ in range(3):
        network[0].weight.data += 1.0
        average.update_parameters(network)
    assert torch.equal(average.module[0].weight, network[0].weight)
