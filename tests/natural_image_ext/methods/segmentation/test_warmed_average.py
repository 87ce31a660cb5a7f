"""AugSeg's teacher: a plain mean at first, a moving average later, and batch norms that are averages, too."""

import pytest
import torch
from torch import nn

from natural_image_ext.methods.segmentation import AugSeg, MeanTeacher
from natural_image_ext.methods.segmentation.warmed_average import warmed_decay
from natural_image_ext.networks import LayeredHead, NPSegHead, SegmentationNetwork


def network(head=None):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    return SegmentationNetwork(encoder, nn.Identity(), head or LayeredHead(nn.Conv2d(4, 3, 1)), 4)


def trained(method, values):
    """The method after steps in which weights, means and variances have these values."""
    norm = method.network.encoder[1]
    for value in values:
        with torch.no_grad():
            for tensor in (norm.weight, norm.running_mean, norm.running_var):
                tensor.fill_(value)
        method.after_step()
    return method.averaged.encoder[1]


def test_decay_warms_up():
    assert [warmed_decay(updates, 0.7) for updates in range(5)] == pytest.approx([0, 1 / 2, 2 / 3, 0.7, 0.7])


def test_teacher_is_at_first_the_mean_of_what_the_student_was():
    norm = trained(AugSeg(network(), ema_decay=0.999), [1.0, 2.0, 6.0])
    for tensor in (norm.weight, norm.running_mean, norm.running_var):
        assert tensor.tolist() == pytest.approx([3.0] * 4)


def test_teacher_follows_by_its_decay_later():
    norm = trained(AugSeg(network(), ema_decay=0.5), [1.0, 2.0, 6.0])
    assert norm.weight.tolist() == norm.running_var.tolist() == pytest.approx([3.75] * 4)


def test_other_frameworks_take_the_students_batch_norms():
    norm = trained(MeanTeacher(network(), ema_decay=0.5), [1.0, 2.0, 6.0])
    assert norm.running_var.tolist() == [6.0] * 4 and norm.weight.tolist() == pytest.approx([3.75] * 4)


def test_memory_banks_and_counts_are_no_averages():
    method = AugSeg(network(NPSegHead(4, 3, hidden=4, width=4, bank_size=2)), ema_decay=0.9)
    for value in (1.0, 5.0):
        method.network.head.latent_banks.rows.fill_(value)
        method.network.encoder[1].num_batches_tracked.fill_(int(value))
        method.after_step()
    assert (method.averaged.head.latent_banks.rows == 5).all()
    assert int(method.averaged.encoder[1].num_batches_tracked) == 5
