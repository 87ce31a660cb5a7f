"""A training does not slow down where gradients become too small to matter."""

import torch
from methods.stages import all_stages, built, trainer_of


def test_a_step_takes_denormals_for_zero_and_leaves_the_process_as_it_was():
    name, build = all_stages()["supervised"]
    method = built(build)
    seen = []
    method.register_forward_hook(lambda *_: seen.append((torch.full((2,), 1e-40) * 0.5)[0].item()))
    trainer_of(name, method, epochs=1).run()
    assert set(seen) == {0.0}
    assert (torch.full((2,), 1e-40) * 0.5)[0].item() > 0
