"""CPS: what its two networks learn from each other, what both see, and where they begin."""

import pytest
import torch
from torch.nn import functional as F

from medssl.engine import save_tensors
from natural_image_ext.methods.segmentation import CPS, build_seg_method, seg_recipe
from natural_image_ext.networks.segmentation import build_segmentation


def test_networks_learn_from_each_other(batch, network):
    torch.manual_seed(0)
    method = CPS(network(), lambda: network(seed=5), unlabelled_weight=1.5, mixer=lambda taught, batch: taught)
    found = method(batch)
    ours, theirs = method.network, method.other
    labelled = crossed = 0.0
    for student, teacher in ((ours, theirs), (theirs, ours)):
        labelled = labelled + F.cross_entropy(student(batch["image"]), batch["label"], ignore_index=255)
        crossed = crossed + F.cross_entropy(student(batch["strong"]), teacher(batch["weak"]).argmax(1))
        crossed = crossed + F.cross_entropy(student(batch["image"]), teacher(batch["image"]).argmax(1))
    assert torch.allclose(found["loss"], labelled + 1.5 * crossed, atol=1e-5)
    found["loss"].backward()
    assert all(p.grad is not None for net in (ours, theirs) for p in net.parameters())
    for _ in range(2):  # the first update of an average copies whatever its decay is
        method.after_step()
        ours.head.weight.data += 1.0
    method.after_step()
    assert torch.equal(method.averaged.head.weight, ours.head.weight)


def test_labels_alone_count_while_it_warms_up(batch, network):
    method = CPS(network(), lambda: network(seed=5), unlabelled_weight=3.0, warm_up=1)
    first = method(batch)
    assert torch.allclose(first["loss"], first["labelled"])
    method.after_step()
    then = method(batch)
    assert torch.allclose(then["loss"], then["labelled"] + 3 * then["unlabelled"])


def test_both_networks_see_the_same_mixed_images(batch, network):
    method = CPS(network(), lambda: network(seed=5))
    seen = {}
    for name, net in (("first", method.network), ("second", method.other)):
        net.encoder.register_forward_pre_hook(lambda _, given, name=name: seen.update({name: given[0]}))
    assert method.mixer.boxes == 3
    torch.manual_seed(0)
    method(batch)
    mixed = seen["first"][len(batch["image"]) :]
    assert torch.equal(seen["second"], seen["first"])
    assert not torch.equal(mixed, batch["strong"])


def pair_of(network):
    options = {"num_classes": 3, "steps_per_epoch": 1, "total_steps": 1}
    return build_seg_method(seg_recipe("cps", "voc", "plain"), network, **options)


def begins_alike(pair, part):
    ours, theirs = (getattr(net, part).state_dict() for net in (pair.network, pair.other))
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_networks_without_weights_have_a_beginning_of_their_own():
    pair = pair_of(build_segmentation("resnet18", 3, "plain", channels=8))
    assert not begins_alike(pair, "encoder") and not begins_alike(pair, "decoder") and not begins_alike(pair, "head")


@pytest.mark.parametrize("given", ["as the encoder's weights", "as weights of a whole network"])
def test_networks_share_a_pretrained_encoder_alone(tmp_path, given):
    trained = build_segmentation("resnet18", 3, "plain", channels=8)
    if given == "as the encoder's weights":
        save_tensors(trained.encoder.state_dict(), tmp_path / "resnet18.pt")
        started = build_segmentation(**{**trained.arguments, "encoder_weights": str(tmp_path / "resnet18.pt")})
    else:
        started = build_segmentation(**trained.arguments)
        started.load_state_dict(trained.state_dict())
    pair = pair_of(started)
    assert begins_alike(pair, "encoder") and not begins_alike(pair, "decoder") and not begins_alike(pair, "head")
