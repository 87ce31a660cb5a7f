"""Mean Teacher, PS-MT, U2PL, AugSeg and CPS on a small network: losses by their formulas, and that all learn."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from medssl.errors import ConfigError
from natural_image_ext.methods.segmentation import (
    CPS,
    FRAMEWORKS,
    PSMT,
    U2PL,
    AdaptiveCutMix,
    AugSeg,
    CutMix,
    Learned,
    MeanTeacher,
    Taught,
    build_seg_method,
    seg_recipe,
)
from natural_image_ext.methods.segmentation.cutmix import random_boxes
from natural_image_ext.networks import NPSegHead
from natural_image_ext.networks.segmentation import SegmentationNetwork, build_segmentation

CLASSES = 4


def network(head="plain", seed=0):
    """Convolutions alone: maps of half the image's size."""
    torch.manual_seed(seed)
    body = nn.Conv2d(3, 8, 3, stride=2, padding=1)
    heads = {
        "plain": lambda: nn.Conv2d(8, CLASSES, 1),
        "dropout": lambda: nn.Sequential(nn.Dropout2d(0.3), nn.Conv2d(8, CLASSES, 1)),
        "np": lambda: NPSegHead(8, CLASSES, hidden=4, width=8, bank_size=64, samples=3),
    }
    return SegmentationNetwork(nn.Sequential(body, nn.ReLU()), nn.Identity(), heads[head](), channels=8)


@pytest.fixture
def batch():
    torch.manual_seed(1)
    colours = torch.randn(CLASSES, 3)

    def scene(number):
        label = torch.randint(0, CLASSES, (number, 2, 2)).repeat_interleave(6, 1).repeat_interleave(6, 2)
        return colours[label].movedim(-1, 1) + 0.1 * torch.randn(number, 3, 12, 12), label

    image, label = scene(3)
    label[0, :2] = 255
    hidden, _ = scene(4)
    return {"image": image, "label": label, "weak": hidden, "strong": hidden + 0.2 * torch.randn_like(hidden)}


def built(name, head="plain", **changes):
    options = {"num_classes": CLASSES, "steps_per_epoch": 2, "total_steps": 10, **changes}
    return build_seg_method(
        seg_recipe(name, "voc", head), network(head), second=lambda: network(head, seed=9), **options
    )


@pytest.mark.parametrize("head", ["plain", "dropout", "np"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_learns_with_every_head(batch, name, head):
    method = built(name, head, ema_decay=0.5).train()
    optimizer = torch.optim.Adam([p for p in method.parameters() if p.requires_grad], 0.02)
    losses, kls = [], []
    for _ in range(25):
        torch.manual_seed(len(losses))
        found = method(batch)
        optimizer.zero_grad()
        found["loss"].backward()
        optimizer.step()
        method.after_step()
        losses.append(float(found["labelled"].detach()))
        kls.append(float(found["kl"].detach()))
    assert losses[-1] < 0.8 * losses[0], losses
    assert all(p.grad is None for p in method.average.parameters())
    learning = [p for p in method.parameters() if p.requires_grad]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in learning)
    assert (max(kls) > 0) == (head == "np")


def taught_of(probs):
    return Taught(torch.zeros(len(probs), 3, *probs.shape[2:]), probs, probs.argmax(1))


def learned_of(logits):
    return Learned(torch.zeros(1), torch.zeros(1), logits, torch.zeros(()))


def test_mean_teacher_is_the_squared_error_of_probabilities():
    torch.manual_seed(0)
    logits, probs = torch.randn(2, CLASSES, 3, 3), torch.randn(2, CLASSES, 3, 3).softmax(1)
    found = MeanTeacher(network()).unlabelled_loss(learned_of(logits), taught_of(probs), {})
    assert torch.allclose(found, (logits.softmax(1) - probs).square().mean())


def test_augseg_learns_confident_pixels_and_counts_all():
    torch.manual_seed(0)
    logits, probs = torch.randn(2, CLASSES, 5, 5), (3 * torch.randn(2, CLASSES, 5, 5)).softmax(1)
    found = AugSeg(network(), confidence=0.7).unlabelled_loss(learned_of(logits), taught_of(probs), {})
    total, log_probs = 0.0, logits.log_softmax(1)
    for image in range(2):
        for row in range(5):
            for column in range(5):
                pixel = probs[image, :, row, column]
                if pixel.max() >= 0.7:
                    total -= float(log_probs[image, pixel.argmax(), row, column])
    assert float(found) == pytest.approx(total / 50, rel=1e-5) and total > 0


def test_teacher_is_an_average_without_gradient_and_without_dropout(batch):
    method = MeanTeacher(network("dropout"), ema_decay=0.9).train()
    first, second = (method.teach(batch).probs for _ in range(2))
    assert torch.equal(first, second) and not first.requires_grad and method.average.training
    with torch.no_grad():
        method.network.head[1].bias += 1.0
    method.after_step()
    method.network.head[1].bias.data += 1.0
    method.after_step()
    start = method.network.head[1].bias.data - 2
    assert torch.allclose(method.averaged.head[1].bias, start + 1 + 0.1, atol=1e-6)


def test_warm_up_learns_from_labels_alone(batch):
    method = MeanTeacher(network(), unlabelled_weight=5.0, warm_up=1)
    first = method(batch)
    assert torch.allclose(first["loss"], first["labelled"])
    method.after_step()
    then = method(batch)
    assert torch.allclose(then["loss"], then["labelled"] + 5 * then["unlabelled"])


def test_ignored_pixels_have_no_part_in_the_loss(batch):
    method = MeanTeacher(network(), unlabelled_weight=0.0)
    before = method(batch)["loss"]
    changed = dict(batch, image=batch["image"].clone())
    logits = method.network(changed["image"])
    counted = batch["label"] != 255
    each = F.cross_entropy(logits, batch["label"].clamp_max(CLASSES - 1), reduction="none")
    assert torch.allclose(before, each[counted].mean(), atol=1e-6)


def test_ps_mt_updates_its_teachers_in_turn(batch):
    method = PSMT(network(), steps_per_epoch=2, ema_decay=0.0)
    seen = []
    for _ in range(6):
        method.network.head.bias.data += 1.0
        teachers = (method.averaged, method.assistant.module)
        before = [teacher.head.bias.clone() for teacher in teachers]
        method.after_step()
        seen.append([not torch.equal(b, t.head.bias) for b, t in zip(before, teachers, strict=True)])
    assert seen == [[True, False]] * 2 + [[False, True]] * 2 + [[True, False]] * 2


@pytest.mark.parametrize("head", ["plain", "np"])
def test_ps_mt_moves_features_where_teachers_change_most(batch, head):
    method = PSMT(network(head), radius=0.1)
    features = method.network.features(batch["strong"]).detach()
    if head == "np":
        method.network.head.condition(features, torch.randint(0, CLASSES, (4, 6, 6)), features, torch.zeros(4, 6, 6))
        method.after_step()
    torch.manual_seed(0)
    moved = method.perturbation(features)
    lengths = moved.flatten(1).norm(dim=1) / features.flatten(1).norm(dim=1)
    assert torch.allclose(lengths, torch.full((4,), 0.1), atol=1e-4)

    def change(by):
        with torch.no_grad():
            both = [method.averaged.eval().head(x) for x in (features, features + by)]
            if head == "np":
                both = [method.averaged.head(x, 0).mean_logits for x in (features, features + by)]
            return float(F.kl_div(both[1].log_softmax(1), both[0].softmax(1), reduction="batchmean"))

    random = torch.randn_like(features)
    random = (
        random * moved.flatten(1).norm(dim=1)[:, None, None, None] / random.flatten(1).norm(dim=1)[:, None, None, None]
    )
    assert change(moved) > 2 * change(random)


@pytest.mark.parametrize("head", ["plain", "np"])
def test_ps_mt_moves_features_in_the_same_direction_under_autocast(batch, head):
    method = PSMT(network(head))
    features = method.network.features(batch["strong"]).detach()
    if head == "np":
        method.network.head.condition(features, torch.randint(0, CLASSES, (4, 6, 6)), features, torch.zeros(4, 6, 6))
        method.after_step()
    torch.manual_seed(0)
    exact = method.perturbation(features)
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16):
        found = method.perturbation(features.bfloat16())
    assert found.dtype == torch.bfloat16
    assert float(F.cosine_similarity(exact.flatten(1), found.float().flatten(1)).min()) > 0.9


def test_ps_mt_weights_pixels_by_their_confidence():
    torch.manual_seed(0)
    method = PSMT(network(), confidence=0.5, radius=0.0)
    features, probs = torch.randn(2, 8, 3, 3), (2 * torch.randn(2, CLASSES, 6, 6)).softmax(1)
    learned = Learned(features, torch.zeros(1), torch.zeros(1), torch.zeros(()))
    found = method.unlabelled_loss(learned, taught_of(probs), {"image": torch.zeros(0, 3, 6, 6)})
    logits = F.interpolate(method.network.head(features), (6, 6), mode="bilinear", align_corners=True)
    highest, labels = probs.max(1)
    each = F.cross_entropy(logits, labels, reduction="none")
    assert torch.allclose(found, (each * highest * (highest >= 0.5)).mean())


def test_u2pl_drops_the_least_sure_pixels_and_fewer_of_them_later(batch):
    torch.manual_seed(0)
    method = U2PL(network(), num_classes=CLASSES, total_steps=10, unreliable=0.2, contrast_weight=0.0)
    probs, logits = torch.randn(2, CLASSES, 10, 10).softmax(1), torch.randn(2, CLASSES, 10, 10)
    learned = Learned(torch.randn(3, 8, 5, 5), torch.randn(1, CLASSES, 10, 10), logits, torch.zeros(()))
    label = torch.zeros(1, 10, 10, dtype=torch.long)
    for step, dropped in ((0, 40), (5, 20), (10, 0)):
        method.step.fill_(step)
        found = method.unlabelled_loss(learned, taught_of(probs), {"label": label})
        entropy = -(probs * probs.log()).sum(1).flatten()
        kept = entropy.argsort()[: 200 - dropped]
        each = F.cross_entropy(logits, probs.argmax(1), reduction="none").flatten()[kept]
        assert float(found) == pytest.approx(float(each.mean()) * 200 / (200 - dropped), rel=0.01)


def test_u2pl_remembers_negatives_of_each_class_and_contrasts_against_them():
    torch.manual_seed(0)
    method = U2PL(network(), num_classes=CLASSES, memory=50, dimension=6, queries=20, negatives=5, ranks=(1, 3))
    features = torch.randn(2, 8, 4, 4)
    certain = torch.full((1, CLASSES, 4, 4), -5.0)
    certain[:, 0] = 5.0  # every labelled pixel is class 0, and then 1, 2, 3 in rank
    certain[:, 1], certain[:, 2] = -1.0, -2.0
    unsure = torch.tensor([0.4, 0.3, 0.2, 0.1])[None, :, None, None].expand(1, -1, 4, 4)
    learned = Learned(features, certain, torch.zeros(1), torch.zeros(()))
    label = torch.zeros(1, 4, 4, dtype=torch.long)
    taught = taught_of(unsure.contiguous())
    nothing = torch.zeros(1, 4, 4, dtype=torch.bool)
    assert float(method.contrast(learned, taught, nothing, label)) == 0, "no memory of negatives of class 0 yet"
    # unreliable pixels are negatives of classes of rank 1 and 2; labelled ones of another label where it ranks first
    assert method.memory.counts.tolist() == [1, 17, 17, 1]
    found = method.contrast(learned, taught, ~nothing, torch.ones(1, 4, 4, dtype=torch.long))
    assert method.memory.counts.tolist() == [17, 17, 17, 1] and float(found) > 0
    found.backward()
    assert all(p.grad.abs().sum() > 0 for p in method.projection.parameters() if p.ndim > 1)


def _contrast_classes_without_negatives(rank, batch):
    method = built("u2pl")
    method.network.head.bias.data[3] -= 100.0  # ranks last everywhere, and at the end no pixel is unreliable:
    method.step.fill_(method.total_steps)  # no process has a negative of that class
    loss = method({**batch, "label": torch.full_like(batch["label"], rank)})["loss"]
    assert loss.isfinite() and int(method.memory.counts[3]) == 1 < int(method.memory.counts[2])


def test_u2pl_goes_on_where_no_process_has_negatives_of_a_class(run_in_group, batch):
    assert run_in_group(_contrast_classes_without_negatives, batch) == [0, 0]


def test_cps_networks_learn_from_each_other(batch):
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


def test_cps_warms_up_and_its_second_network_has_the_first_ones_encoder(batch):
    method = CPS(network(), lambda: network(seed=5), unlabelled_weight=3.0, warm_up=1)
    first = method(batch)
    assert torch.allclose(first["loss"], first["labelled"])
    method.after_step()
    then = method(batch)
    assert torch.allclose(then["loss"], then["labelled"] + 3 * then["unlabelled"])
    pretrained = build_segmentation("resnet18", 3, "plain", channels=8)
    options = {"num_classes": 3, "steps_per_epoch": 1, "total_steps": 1}
    pair = build_seg_method(seg_recipe("cps", "voc", "plain"), pretrained, **options)
    assert torch.equal(pair.other.encoder.conv1.weight, pretrained.encoder.conv1.weight)
    assert not torch.equal(pair.other.head[0].weight, pretrained.head[0].weight)


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name != "supervised"])
def test_padding_has_no_part_in_what_is_learned_from_unlabelled_images(batch, name):
    batch["valid"] = torch.ones(4, 12, 12, dtype=torch.bool)
    batch["valid"][:, 6:] = False
    found = []
    for change in (0.0, 3.0):
        torch.manual_seed(5)
        method = built(name)
        method.mixer = None if name != "cps" else lambda taught, batch: taught
        moved = {key: value.clone() for key, value in batch.items()}
        for view in ("weak", "strong"):
            moved[view][:, :, 8:] += change  # further from the seam than a convolution reaches
        torch.manual_seed(6)
        opinion = method.teach(moved) if name != "cps" else None
        assert opinion is None or not opinion.valid[:, 6:].any()
        if name in ("mean_teacher", "augseg"):
            learned = Learned(torch.zeros(1), torch.zeros(1), method.network(moved["strong"]), torch.zeros(()))
            found.append(float(method.unlabelled_loss(learned, opinion, moved)))
        else:
            found.append(float(method(moved)["unlabelled"]) if name == "cps" else 0.0)
    assert found[0] == pytest.approx(found[1], abs=0.05 if name == "cps" else 1e-4)


def test_labelled_batch_without_any_label_costs_nothing(batch):
    batch["label"] = torch.full_like(batch["label"], 255)
    found = MeanTeacher(network())(batch)
    assert float(found["labelled"].detach()) == 0 and found["loss"].isfinite()


@pytest.mark.parametrize("head", ["plain", "np"])
def test_supervised_learns_the_same_whatever_is_unlabelled(batch, head):
    losses = []
    for change in (0.0, 5.0):
        method = built("supervised", head)
        torch.manual_seed(0)
        losses.append(method({**batch, "weak": batch["weak"] + change, "strong": batch["strong"] - change})["loss"])
    assert torch.equal(losses[0], losses[1])


def test_boxes_have_their_share_of_the_area():
    torch.manual_seed(0)
    masks = random_boxes(200, (30, 40), 0.25, 0.5, torch.device("cpu"))
    shares = masks.float().mean((1, 2))
    assert float(shares.min()) > 0.24 and float(shares.max()) < 0.54 and float(shares.std()) > 0.05
    for mask in masks[:20]:
        rows, columns = mask.any(1).nonzero().squeeze(1), mask.any(0).nonzero().squeeze(1)
        assert mask.sum() == len(rows) * len(columns), "one box without holes"


def test_three_boxes_share_the_area():
    torch.manual_seed(0)
    masks = random_boxes(300, (60, 80), 0.25, 0.5, torch.device("cpu"), boxes=3)
    shares = masks.float().mean((1, 2))
    assert float(shares.max()) < 0.55 and 0.2 < float(shares.mean()) < 0.375, "they overlap now and then"
    whole = masks.any(2).sum(1) * masks.any(1).sum(1)
    assert float((masks.sum((1, 2)) < whole).float().mean()) > 0.9, "more than one box"
    assert CPS(network(), network).mixer.boxes == 3


def test_cutmix_moves_images_and_labels_together(batch):
    torch.manual_seed(0)
    number = torch.arange(4.0)[:, None, None]
    probs = torch.stack([number.expand(4, 6, 6), -number.expand(4, 6, 6)], 1)
    taught = Taught(number[:, None].expand(4, 3, 6, 6), probs, number.long().expand(4, 6, 6))
    mixed = CutMix()(taught, {})
    assert torch.equal(mixed.images[:, 0], mixed.labels.float()) and torch.equal(mixed.probs[:, 0], mixed.images[:, 0])
    for place in range(4):
        assert set(mixed.labels[place].unique().tolist()) == {place, (place - 1) % 4}


def test_adaptive_cutmix_pastes_labelled_boxes_into_unsure_images_only():
    torch.manual_seed(0)
    number = 200
    sure = torch.tensor([[1.0, 0.0]]).repeat(number // 2, 1)
    unsure = torch.tensor([[0.5, 0.5]]).repeat(number // 2, 1)
    probs = torch.cat([sure, unsure])[:, :, None, None].expand(-1, -1, 8, 8)
    taught = Taught(torch.zeros(number, 3, 8, 8), probs, torch.zeros(number, 8, 8, dtype=torch.long))
    label = torch.ones(2, 8, 8, dtype=torch.long)
    label[:, 0] = 255
    mixer = AdaptiveCutMix(0.25, 0.5)
    mixed = mixer(taught, {"image": torch.ones(2, 3, 8, 8), "label": label})
    assert not (mixed.labels == 255).any()
    given = (mixed.labels == 1).flatten(1).any(1)
    assert torch.equal(mixed.labels == 1, mixed.images[:, 0] == 1)
    assert torch.equal(mixed.probs[:, 1][mixed.labels == 1], torch.ones_like(mixed.probs[:, 1][mixed.labels == 1]))
    # a sure image may only have part of a box of the unsure one before it
    assert int(given[1 : number // 2].sum()) == 0 and 0.3 < float(given[number // 2 :].float().mean()) <= 0.9


def test_recipes_are_those_of_the_thesis():
    voc, city = seg_recipe("u2pl", "voc", "np"), seg_recipe("u2pl", "cityscapes", "dropout")
    assert (voc.crop, voc.batch_size, voc.learning_rate, voc.epochs) == (480, 12, 1e-3, 80)
    assert (city.crop, city.batch_size, city.learning_rate, city.weight_decay) == (580, 8, 5e-3, 5e-4)
    assert voc.title == "U2PL w/ NP-SemiSeg" and city.title == "U2PL w/ MC dropout"
    assert seg_recipe("mean_teacher", "camvid", "plain").title == "MT"
    assert seg_recipe("augseg", "cityscapes").epochs == 240
    assert (voc.evaluation, voc.crop_to) == ("whole", 480) and (city.evaluation, city.crop_to) == ("sliding", None)
    own = seg_recipe("u2pl", "camvid")
    assert (own.evaluation, own.crop_to, own.crop) == ("whole", None, 480)
    assert (voc.warm_up_epochs, seg_recipe("mean_teacher", "voc").warm_up_epochs) == (1, 0)
    for name, weights in {"ps_mt": (0.6, 1.5, 3.0), "cps": (1.0, 1.0, 6.0), "mean_teacher": (100, 100, 100)}.items():
        sets = ("voc", "voc_blender", "cityscapes")
        assert tuple(seg_recipe(name, data_set).unlabelled_weight for data_set in sets) == weights
    for name in FRAMEWORKS:
        classic, blender = seg_recipe(name, "voc"), seg_recipe(name, "voc_blender")
        assert replace(classic, unlabelled_weight=blender.unlabelled_weight) == blender
    with pytest.raises(ConfigError, match="'fixmatch' is unknown"):
        seg_recipe("fixmatch", "voc")
    with pytest.raises(ConfigError, match="head 'linear' is unknown"):
        seg_recipe("u2pl", "voc", "linear")
