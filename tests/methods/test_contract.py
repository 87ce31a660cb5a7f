"""What every registered method keeps, without a line of its own: a new method passes by being there."""

import copy
import dataclasses
import io

import nibabel as nib
import numpy as np
import pytest
import torch
from methods.stages import (
    PATCH,
    all_stages,
    built,
    first_batch,
    loader_of,
    patches,
    trainer_of,
)
from methods.stages import STAGES as SEVERAL_STAGES
from torch import Tensor

from medssl.core.errors import ConfigError
from medssl.core.options import make_options
from medssl.core.seeding import seed_everything
from medssl.data import Pipeline, dataset_facts
from medssl.data.sampling import Draw
from medssl.engine import RunFolder
from medssl.inference import MCDropoutInferer, Predictor, export_bundle, load_predictor
from medssl.methods.facts import MethodFacts
from medssl.methods.method import Method
from medssl.methods.registry import facts_of_title, find_method, method_names

STAGES = all_stages()
EVERY_STAGE = pytest.mark.parametrize("stage", STAGES)
EVERY_METHOD = pytest.mark.parametrize("name", method_names())


def same(first, second) -> bool:
    if isinstance(first, Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    return first == second


def losses_of(method, batch, seed=11) -> dict[str, Tensor]:
    seed_everything(seed)
    method.train()
    return method(batch)


@EVERY_STAGE
def test_losses_have_names_and_are_finite_scalars(stage):
    name, build = STAGES[stage]
    losses = losses_of(built(build), first_batch(name))
    assert "loss" in losses and losses["loss"].requires_grad
    for title, value in losses.items():
        assert isinstance(title, str) and value.ndim == 0 and torch.isfinite(value), title


@EVERY_STAGE
def test_labels_of_unlabelled_patches_are_never_read(stage):
    name, build = STAGES[stage]
    batch = first_batch(name)
    if not find_method(name).facts.learns_from_unlabelled:
        assert "is_labelled" not in batch, "a method of labels alone is given labelled patches alone"
        return
    poisoned = copy.deepcopy(batch)
    poisoned["label"][~batch["is_labelled"]] = 255  # no class: a method that reads it fails or changes
    results = []
    for each in (batch, poisoned):
        method = built(build)
        losses = losses_of(method, each)
        losses["loss"].backward()
        results.append((losses["loss"].item(), [p.grad for p in method.parameters() if p.grad is not None]))
    assert results[0][0] == results[1][0]
    assert all(torch.equal(first, second) for first, second in zip(results[0][1], results[1][1], strict=True))


@EVERY_STAGE
def test_teachers_get_no_gradient(stage):
    name, build = STAGES[stage]
    method = built(build)
    before = [copy.deepcopy(teacher.state_dict()) for teacher in method.teachers]
    losses_of(method, first_batch(name))["loss"].backward()
    for teacher, state in zip(method.teachers, before, strict=True):
        assert all(parameter.grad is None for parameter in teacher.parameters())
        assert same(teacher.state_dict(), state), "a pass changes nothing in a teacher"
    learning = [parameter for parameter in method.network.parameters() if parameter.requires_grad]
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in learning)


@EVERY_STAGE
def test_a_step_changes_the_network_and_what_is_evaluated(stage):
    name, build = STAGES[stage]
    method = built(build)
    networks = {"network": method.network, "evaluated": method.evaluated}
    before = {title: copy.deepcopy(dict(network.named_parameters())) for title, network in networks.items()}
    trainer_of(name, method, epochs=1).run()
    for title, network in networks.items():
        after = dict(network.named_parameters())
        changed = [key for key in after if not torch.equal(after[key], before[title][key])]
        assert len(changed) > len(after) / 2, title


@EVERY_STAGE
def test_a_resumed_training_equals_an_unbroken_one_bit_for_bit(stage):
    name, build = STAGES[stage]
    unbroken = trainer_of(name, built(build))
    unbroken.run()
    first = trainer_of(name, built(build), epochs=1)
    first.run()
    stored = io.BytesIO()
    torch.save(first.state_dict(), stored)
    stored.seek(0)
    resumed = trainer_of(name, build(0.3))  # other first weights: all must come from the checkpoint
    copy_teacher(built(build), resumed.method)
    resumed.load_state_dict(torch.load(stored, weights_only=True))
    resumed.run()
    assert same(resumed.state_dict(), unbroken.state_dict())


def copy_teacher(source, target) -> None:
    """A frozen teacher has a checkpoint of its own: that of the stage before."""
    for theirs, ours in zip(source.teachers, target.teachers, strict=True):
        ours.load_state_dict(theirs.state_dict())


@EVERY_STAGE
def test_two_processes_equal_one_or_at_least_each_other(stage, run_in_group, tmp_path):
    name, build = STAGES[stage]
    codes = run_in_group(_train_in_group, stage, tmp_path)
    assert codes == [0, 0]
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    assert same(first, second), "processes of a group have the same weights"
    if _draws_in_a_pass(name, build):
        return  # each process draws its own masks or latents
    alone = _trained_in_double(stage)
    # a bias before an instance norm has no effect and a gradient of rounding alone, which Adam blows up to full steps
    telling = [key for key in first if key.endswith("weight") or "classifier" in key]
    assert len(telling) > 5
    for key in telling:
        assert torch.allclose(alone.evaluated.state_dict()[key], first[key], atol=1e-6), key


def _train_in_group(rank, stage, folder) -> None:
    torch.save(_trained_in_double(stage).evaluated.state_dict(), folder / f"{rank}.pt")


def _trained_in_double(stage) -> Method:
    """The stage after an epoch without dropout, in double precision, where sums of two processes and of one agree."""
    name, build = STAGES[stage]
    method = built(build, dropout=0.0).double()
    for teacher in method.teachers:
        teacher.double()
    trainer = trainer_of(name, method, epochs=1)
    trainer.data_loader = DoubleBatches(trainer.data_loader)
    trainer.run()
    return method


class DoubleBatches:
    """A loader's batches in double precision."""

    def __init__(self, loader) -> None:
        self.loader, self.sampler = loader, loader.sampler

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield {k: v.double() if isinstance(v, Tensor) and v.is_floating_point() else v for k, v in batch.items()}


def _draws_in_a_pass(name, build) -> bool:
    """Whether the losses of a batch depend on chance besides dropout, which is off here.

    Any of them: a term that weighs little yet may change nothing in the digits of the sum.
    """
    batch = first_batch(name)
    first, second = (losses_of(built(build, dropout=0.0), batch, seed) for seed in (1, 2))
    return not same(first, second)


@EVERY_METHOD
def test_the_exported_network_predicts_as_the_evaluated_one(name, bundles_dir, tmp_path):
    _, build = STAGES[list(SEVERAL_STAGES.get(name, {name: None}))[-1]]
    method = built(build)
    trainer_of(name, method, epochs=1).run()
    pipeline = Pipeline(dataset_facts("phantom"), patch_size=PATCH)
    inferer = MCDropoutInferer(window=PATCH, stride=PATCH, samples=2)
    predictor = Predictor(method.evaluated, pipeline, inferer)
    folder = RunFolder(tmp_path / "run", facts={"status": "running"})
    bundle = export_bundle(folder, bundles_dir / "teacher_student", predictor)
    case = {"id": "scan", "image": str(tmp_path / "scan.nii.gz")}
    values = np.random.default_rng(0).uniform(-1000, 1000, (20, 20, 10)).astype(np.float32)
    nib.save(nib.Nifti1Image(values, np.eye(4)), case["image"])
    expected, exported = predictor(case), load_predictor(bundle)(case)
    assert np.array_equal(exported.probs, expected.probs) and np.array_equal(exported.entropy, expected.entropy)


@EVERY_METHOD
def test_options_of_a_wrong_name_type_or_size_are_refused_by_name(name):
    options = find_method(name).Options
    with pytest.raises(ConfigError, match="'no_such_option' is unknown"):
        make_options(options, {"no_such_option": 1})
    for field in dataclasses.fields(options):
        assert field.metadata.get("meaning"), f"{field.name} has no meaning"
        assert make_options(options, {field.name: field.default}) == options()
        with pytest.raises(ConfigError, match=field.name):
            make_options(options, {field.name: ["a list", "of texts"]})
        low, high, choices = (field.metadata[limit] for limit in ("at_least", "at_most", "choices"))
        if low is not None:
            with pytest.raises(ConfigError, match=f"{field.name}.*at least"):
                make_options(options, {field.name: low - 1})
        if high is not None:
            with pytest.raises(ConfigError, match=f"{field.name}.*at most"):
                make_options(options, {field.name: high + 1})
        if choices:
            with pytest.raises(ConfigError, match=field.name):
                make_options(options, {field.name: "no such choice"})


@EVERY_METHOD
def test_facts_are_complete_and_come_back_from_run_json(name):
    facts = find_method(name).facts
    assert facts.title and MethodFacts.from_json(facts.to_json()) == facts
    assert facts_of_title(facts.title) == facts
    assert set(facts.coefficients) <= {field.name for field in dataclasses.fields(find_method(name).Options)}


@EVERY_METHOD
def test_a_method_gets_the_views_it_asks_for(name):
    facts = find_method(name).facts
    sample = patches(name)[Draw(0, 1)]
    assert ("strong" in sample) == ("strong" in facts.views)
    assert len(loader_of(name)) > 0


def test_titles_are_not_shared_by_two_methods():
    titles = [find_method(name).facts.title.casefold() for name in method_names()]
    assert len(set(titles)) == len(titles)
