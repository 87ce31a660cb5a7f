"""FixMatch, FlexMatch, UDA and NP-Match on a small network: losses against plain formulas, and that they learn."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from natural_image_ext.losses import gaussian_kl
from natural_image_ext.methods.classification import UDA, UPS, FixMatch, MixMatch, NPMatch, Selection, Supervised
from natural_image_ext.methods.classification.ups import negative_loss
from natural_image_ext.networks import Classifier, ConditionedOutput, LinearHead, NPHead

CLASSES = 3


class Pooled(nn.Module):
    """Images (B, 3, 4, 4) to 8 features."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(48, 8)

    def forward(self, images):
        return torch.tanh(self.layer(images.flatten(1)))


@pytest.fixture
def batch():
    torch.manual_seed(0)
    prototypes = 2 * torch.randn(CLASSES, 3, 4, 4)
    label, hidden = torch.tensor([0, 1, 2, 0]), torch.randint(0, CLASSES, (12,))
    unlabelled = prototypes[hidden]
    return {
        "image": prototypes[label] + 0.1 * torch.randn(4, 3, 4, 4),
        "label": label,
        "weak": unlabelled + 0.1 * torch.randn(12, 3, 4, 4),
        "strong": unlabelled + 0.5 * torch.randn(12, 3, 4, 4),
        "index": torch.arange(12),
    }


def deterministic(method=FixMatch, confidence=0.5, num_unlabelled=None, **options):
    torch.manual_seed(1)
    network = Classifier(Pooled(), LinearHead(8, CLASSES))
    return method(network, Selection(CLASSES, confidence, num_unlabelled=num_unlabelled), **options)


def neural_process(confidence=0.4, uncertainty=None, **options):
    torch.manual_seed(1)
    network = Classifier(Pooled(), NPHead(8, CLASSES, hidden=4, samples=6, bank_size=16))
    return NPMatch(network, Selection(CLASSES, confidence, uncertainty), **options)


def with_dropout(confidence=0.4, deviation=None, **options):
    torch.manual_seed(1)
    network = Classifier(nn.Sequential(Pooled(), nn.Dropout(0.3)), LinearHead(8, CLASSES))
    return UPS(network, Selection(CLASSES, confidence, deviation), **options)


def mixmatch(**options):
    torch.manual_seed(1)
    return MixMatch(Classifier(Pooled(), LinearHead(8, CLASSES)), CLASSES, **options)


def test_fixmatch_is_its_formula(batch):
    method = deterministic(unlabelled_weight=0.7)
    found = method(batch)
    logits = {name: method.network(batch[name]) for name in ("image", "weak", "strong")}
    highest, pseudo = F.softmax(logits["weak"], -1).max(-1)
    each = F.cross_entropy(logits["strong"], pseudo, reduction="none") * (highest >= 0.5)
    expected = F.cross_entropy(logits["image"], batch["label"]) + 0.7 * each.sum() / 12
    assert found["loss"].item() == pytest.approx(expected.item(), rel=1e-5)
    assert found["accepted"].item() == pytest.approx((highest >= 0.5).float().mean().item())


def test_uda_learns_sharpened_probabilities(batch):
    method = deterministic(UDA, confidence=0.0, temperature=0.5)
    probs = F.softmax(method.network(batch["weak"]), -1).detach()
    sharp = probs**2 / (probs**2).sum(-1, keepdim=True)
    expected = -(sharp * F.log_softmax(method.network(batch["strong"]), -1)).sum(-1).mean()
    assert method(batch)["unlabelled"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_flexmatch_accepts_more_at_first(batch):
    strict, flexible = deterministic(confidence=0.99), deterministic(confidence=0.99, num_unlabelled=12)
    assert flexible(batch)["accepted"] > strict(batch)["accepted"]


def test_weak_views_get_no_gradient(batch):
    for method in (deterministic(), neural_process()):
        batch["weak"].requires_grad_().grad = None
        method(batch)["loss"].backward()
        assert batch["weak"].grad is None or not batch["weak"].grad.any()


@pytest.mark.parametrize("divergence", ["kl", "js", "dual_js"])
def test_np_match_has_three_terms_and_the_banks_are_written_once(batch, divergence):
    method = neural_process(divergence=divergence, divergence_weight=0.01, confidence=0.0).train()
    found = method(batch)
    expected = found["labelled"] + found["unlabelled"] + found["divergence"]
    assert found["loss"].item() == pytest.approx(expected.item()) and found["divergence"] >= 0
    assert method.head.deterministic_bank.count == 1 + 4 and method.head.latent_bank.count == 16
    method.eval()(batch)
    assert method.head.deterministic_bank.count == 5


def test_np_match_without_accepted_samples_is_supervised(batch):
    found = neural_process(confidence=1.1)(batch)
    assert found["unlabelled"] == 0 and found["divergence"] == 0 and found["loss"] == found["labelled"]


def test_uncertainty_threshold_refuses_what_confidence_accepts(batch):
    assert neural_process(confidence=0.0)(batch)["accepted"] == 1
    assert neural_process(confidence=0.0, uncertainty=0.0)(batch)["accepted"] == 0


def test_kl_is_that_of_the_target_from_the_context(batch, monkeypatch):
    method, seen = neural_process(divergence="kl", confidence=0.0), []
    condition = method.head.condition
    monkeypatch.setattr(method.head, "condition", lambda *args: seen.append(condition(*args)) or seen[-1])
    found = method(batch)
    context, target = seen
    expected = gaussian_kl(target.mean, target.variance, context.mean, context.variance)
    assert found["divergence"].item() == pytest.approx(0.01 * expected.item(), rel=1e-5)


@pytest.mark.parametrize("build", [deterministic, lambda: deterministic(UDA), neural_process, mixmatch])
def test_every_method_learns_and_its_average_follows(batch, build):
    method = build()
    trained = [p for p in method.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    before = method.average.module.backbone.layer.weight.clone()
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = method.train()(batch)["labelled"]
        loss.backward()
        optimizer.step()
        method.after_step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert not torch.equal(method.average.module.backbone.layer.weight, before)
    assert any(name.startswith("average.") for name in method.state_dict())


def test_average_is_the_exponential_one():
    method = deterministic(ema_decay=0.9)
    method.after_step()  # the first call copies
    start = method.network.head.bias.detach().clone()
    with torch.no_grad():
        method.network.head.bias += 1
    method.after_step()
    assert torch.allclose(method.average.module.head.bias, start + 0.1, atol=1e-6)


def test_average_reads_the_banks_as_they_are(batch):
    method = neural_process(confidence=0.0).train()
    for _ in range(2):
        method(batch)
        method.after_step()
    assert torch.equal(method.average.module.head.latent_bank.rows, method.head.latent_bank.rows)


def test_unknown_divergence_is_refused():
    with pytest.raises(ConfigError, match="'wasserstein' is unknown"):
        neural_process(divergence="wasserstein")


def test_ups_refuses_labels_that_dropout_disagrees_on(batch):
    assert with_dropout(confidence=0.0)(batch)["accepted"] == 1
    assert with_dropout(confidence=0.0, deviation=0.0)(batch)["accepted"] == 0


def test_ups_samples_with_dropout_only_and_leaves_the_mode_as_it_was(batch):
    method = with_dropout(samples=4).train()
    opinion = method.predict(batch["weak"], torch.empty(0))
    assert method.network.training and torch.allclose(opinion.probs.sum(-1), torch.ones(12), atol=1e-5)
    assert opinion.uncertainty.shape == (12,) and (opinion.uncertainty > 0).all()
    with pytest.raises(ConfigError, match="at least 2 passes"):
        with_dropout(samples=1)


def test_ups_labels_are_the_mean_and_deviation_of_its_passes(batch):
    method = with_dropout(samples=5, negative_confidence=0.3, negative_deviation=0.2, negative_temperature=3.0)
    torch.manual_seed(3)
    opinion = method.predict(batch["weak"], torch.empty(0))
    torch.manual_seed(3)
    method.network.backbone[1].train()
    logits = torch.stack([method.network(batch["weak"]) for _ in range(5)]).detach()
    for row in range(12):
        draws, softer = logits[:, row].softmax(-1), (logits[:, row] / 3).softmax(-1)
        best = int(draws.mean(0).argmax())
        assert torch.allclose(opinion.probs[row], draws.mean(0), atol=1e-6)
        assert float(opinion.uncertainty[row]) == pytest.approx(float(draws[:, best].std()), rel=1e-4)
        for label in range(CLASSES):
            surely = softer[:, label].mean() < 0.3 and softer[:, label].std() < 0.2 and label != best
            assert bool(opinion.wrong[row, label]) == bool(surely)
    assert opinion.wrong.any() and not opinion.wrong.all()


def test_supervised_learns_the_same_whatever_is_unlabelled(batch):
    torch.manual_seed(1)
    network = Classifier(nn.Sequential(Pooled(), nn.BatchNorm1d(8)), LinearHead(8, CLASSES))
    method = Supervised(network).train()
    found = method(batch)["loss"]
    assert torch.equal(found, method({**batch, "weak": batch["weak"] + 5, "strong": batch["strong"] - 5})["loss"])
    assert torch.allclose(found, F.cross_entropy(network(batch["image"]), batch["label"]))


def test_negative_learning_is_its_formula():
    torch.manual_seed(3)
    logits, wrong = torch.randn(12, CLASSES), torch.rand(12, CLASSES) > 0.5
    probs, total = logits.softmax(-1), 0.0
    for row in range(12):
        classes = [c for c in range(CLASSES) if wrong[row, c]]
        total += sum(-torch.log(1 - probs[row, c]).item() for c in classes) / max(1, len(classes))
    assert negative_loss(logits, wrong).item() == pytest.approx(total / 12, rel=1e-4)


def test_mixmatch_guesses_are_sharpened_means(batch):
    method = mixmatch(temperature=0.5)
    mean = sum(torch.softmax(method.network(batch[view]), -1) for view in ("weak", "strong")) / 2
    expected = mean**2 / (mean**2).sum(-1, keepdim=True)
    assert torch.allclose(method.guess(batch["weak"], batch["strong"]), expected, atol=1e-6)


def test_mixed_images_keep_the_larger_share_and_labels_follow():
    torch.manual_seed(0)
    images = torch.eye(6).view(6, 6, 1, 1)
    mixed, targets = mixmatch().mixed(images, torch.eye(6))
    assert torch.allclose(mixed.flatten(1), targets) and (targets.diagonal() >= 0.5).all()
    assert torch.allclose(targets.sum(-1), torch.ones(6))


def test_unlabelled_weight_of_mixmatch_warms_up():
    method = mixmatch(unlabelled_weight=10.0, warm_up=4)
    weights = []
    for _ in range(6):
        weights.append(method.current_weight())
        method.after_step()
    assert weights == [0.0, 2.5, 5.0, 7.5, 10.0, 10.0]


class PlainHead(nn.Module):
    """A linear classifier with the interface of a neural process: no latent, no memory."""

    def __init__(self, features, classes):
        super().__init__()
        self.classifier = nn.Linear(features, classes)

    def forward(self, features):
        return self.condition(None, None, features, None)

    def condition(self, context, context_labels, target, target_labels):
        still = torch.zeros(1)
        return ConditionedOutput(self.classifier(target)[None], still, still + 1, "softmax", still[None], still[None])

    def remember(self, context, target):
        pass


@pytest.mark.parametrize("confidence", [0.0, 0.45])
def test_np_match_without_its_head_and_uncertainty_threshold_is_fixmatch(batch, confidence):
    torch.manual_seed(3)
    plain = Classifier(Pooled(), LinearHead(8, CLASSES))
    bare = Classifier(plain.backbone, PlainHead(8, CLASSES))
    bare.head.classifier = plain.head
    ours = NPMatch(bare, Selection(CLASSES, confidence))(batch)
    peer = FixMatch(plain, Selection(CLASSES, confidence))(batch)
    assert float(peer["accepted"]) > 0 and (confidence == 0) == (float(peer["accepted"]) == 1)
    assert torch.allclose(ours["labelled"], peer["labelled"]) and torch.equal(ours["accepted"], peer["accepted"])
    # the thesis averages over accepted pictures, FixMatch over all
    assert torch.allclose(ours["unlabelled"] * ours["accepted"], peer["unlabelled"])
    assert float(ours["divergence"]) == 0


def test_pseudo_labels_are_averaged_over_the_accepted_or_over_all_pictures(batch):
    torch.manual_seed(2)
    accepted = neural_process(confidence=0.45)(batch)
    torch.manual_seed(2)
    every = neural_process(confidence=0.45, normalise="all")(batch)
    share = float(accepted["accepted"])
    assert 0 < share < 1
    assert float(every["unlabelled"]) == pytest.approx(share * float(accepted["unlabelled"]), rel=1e-5)
    assert torch.equal(every["divergence"], accepted["divergence"]), "the divergence is no mean over pictures"
    with pytest.raises(ConfigError, match=r"normalise 'batch' is unknown\. Known: accepted, all"):
        neural_process(normalise="batch")


def test_np_match_of_independent_classes_learns_by_binary_cross_entropies(batch):
    torch.manual_seed(1)
    head = NPHead(8, CLASSES, hidden=4, samples=6, bank_size=16, activation="sigmoid")
    method = NPMatch(Classifier(Pooled(), head), Selection(CLASSES, 1.1))
    seen = []
    head.condition = lambda *args, given=head.condition: seen.append(given(*args)) or seen[-1]
    found = method(batch)["labelled"]
    probs = torch.sigmoid(seen[0].logits)
    of_label = F.one_hot(batch["label"], CLASSES).bool().expand_as(probs)
    expected = -torch.where(of_label, probs.log(), (1 - probs).log()).sum(-1).mean()
    assert float(found) == pytest.approx(float(expected), rel=1e-4)
