"""What a training has computed is counted at its networks."""

import pytest
import torch
from methods.stages import all_stages, built, first_batch, trainer_of

from medssl.engine.patch_passes import PatchPasses, counted_passes

LABELLED, UNLABELLED = 2, 2  # of a batch of the contract's loaders
EXPECTED = {
    "supervised": (4, 0),
    "mean_teacher": (4, 2),
    "ua_mt": (4, 2 + 8 * 2),
    "cps": (8, 0),
    "bcp": (4, 2),
    "pseudo_bank": (4, 2),
    "fixmatch": (4, 2),
    "noisy student, round": (4, 2),
    "noisy student, end": (2, 0),
    "double_ua": (4, 8 * 4),
    "tripled_ua": (4, 8 * 4),
    "coranet": (4, 2),
    "mc_net": (12, 0),
    "dtc": (4, 0),
    "sassnet": (4, 0),
    "unimatch": (8, 2),
    "lg_er_mt": (4, 2),
    "reciprocal_learning": (8, 0),
    "graph_s2net": (4, 2),
    "gbdl, latent": (4, 0),
    "gbdl, posterior": (4, 2),
}


@pytest.mark.parametrize("stage", EXPECTED)
def test_a_step_is_counted_as_what_goes_through_networks(stage):
    name, build = all_stages()[stage]
    passes = PatchPasses()
    method = built(build)
    with counted_passes(method, passes):
        method(first_batch(name))
    assert (passes.learnt, passes.taught) == EXPECTED[stage]
    assert passes.units == passes.learnt + passes.taught / 3


def test_counting_ends_with_its_block():
    network = torch.nn.Linear(2, 2)
    method = type("M", (), {"learners": (network,), "teachers": (network,)})()
    passes = PatchPasses()
    with counted_passes(method, passes):
        network(torch.zeros(3, 2))
    network(torch.zeros(3, 2))
    assert passes.learnt == 3, "a network that learns and teaches is counted once a call"


def test_trainer_counts_all_steps_and_goes_on_after_a_checkpoint():
    name, build = all_stages()["mean_teacher"]
    trainer = trainer_of(name, built(build), epochs=1)
    trainer.run()
    assert trainer.passes == PatchPasses(learnt=8, taught=4)
    resumed = trainer_of(name, built(build))
    resumed.load_state_dict(trainer.state_dict())
    resumed.run()
    assert resumed.passes == PatchPasses(learnt=16, taught=8)
