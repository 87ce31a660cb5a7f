"""The number of steps that a method has taken, for weights that change with time."""

from typing import Any

import torch
from torch import Tensor

from medssl.methods.method import Method


class CountsSteps(Method):
    """A method that counts the optimiser's steps in the buffer `step`, so that a resumed run goes on counting.

    Stands before other bases: `class MeanTeacher(CountsSteps, AveragedMethod)`.
    """

    step: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    @property
    def steps_taken(self) -> int:
        """How many steps of the optimiser lie behind."""
        return int(self.step)

    def after_step(self) -> None:
        super().after_step()
        self.step += 1
