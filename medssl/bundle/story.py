"""What a training says of itself, in plain lines: at its start what it is going to do, at its end what came of it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import nn

from medssl.core.memory import available_bytes, gigabytes
from medssl.core.progress import is_first_process, say
from medssl.report.health_warnings import health_warnings
from medssl.report.run import Run
from medssl.report.run_page import no_scores_text
from medssl.report.runs import load_run
from medssl.report.tables import summary_table

# weights x voxels of all steps. On a CPU with 2 cores 1e15 take about an hour; overlays for tests stay far below it.
LARGE_ON_CPU = 1e15
SMALL_BYTES = 100_000_000  # nobody needs to know how much less


@dataclass(frozen=True)
class TrainingPlan:
    """What a training is going to do. input: what a step sees, in words. voxels_per_step: of all that it sees.

    memory_bytes: what it needs, by an estimate; None where nobody knows.
    """

    method: str
    data: str
    cases: str
    counts: Mapping[str, int]
    network: nn.Module
    input: str
    voxels_per_step: int
    epochs: int
    steps_per_epoch: int
    device: torch.device
    folder: Path
    memory_bytes: int | None = None

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    def lines(self) -> list[str]:
        """A line a fact, its name in front."""
        roles = ", ".join(f"{count} {role}" for role, count in self.counts.items())
        facts = {
            "method": self.method,
            "data": self.data,
            "split": f"{roles} {self.cases}",
            "network": f"{type(self.network).__name__}, {self.parameters:,} parameters",
            "input": self.input,
            "length": f"{self.epochs} epochs of {self.steps_per_epoch} steps",
            "device": str(self.device),
            "memory": self._memory_text(),
            "folder": str(self.folder),
        }
        return [f"{name:8} {text}" for name, text in facts.items()]

    def hint(self) -> str:
        """A sentence for who trains at full size without a GPU; else empty."""
        size = float(self.parameters) * self.voxels_per_step * self.epochs * self.steps_per_epoch
        if self.device.type != "cpu" or torch.cuda.is_available() or size < LARGE_ON_CPU:
            return ""
        return "No GPU was found. This size takes hours or days here. The overlay bench.json fits a CPU."

    def tell(self) -> None:
        """Print the plan; the first process does."""
        for line in (*self.lines(), self.hint()):
            if line:
                say(line)

    def _memory_text(self) -> str:
        free = f"{gigabytes(available_bytes(self.device))} free"
        if self.memory_bytes is None:
            return free
        is_small = self.memory_bytes < SMALL_BYTES
        need = f"less than {gigabytes(SMALL_BYTES)}" if is_small else f"about {gigabytes(self.memory_bytes)}"
        return f"needs {need} of {free}"


def tell_end(run: Path, commands: Sequence[str]) -> None:
    """Print what came of a finished run: its table, its folder, and what to type next; the first process does."""
    if not is_first_process():
        return
    finished = load_run(run)
    for warning in health_warnings(finished):
        say(f"warning: {warning}")
    if finished.per_case:
        tell_table(finished)
    else:
        say(no_scores_text(finished))
    say(f"The run is in {run}. Next:")
    for command in commands if finished.per_case else [one for one in commands if " review " not in one]:
        say(f"  {command}")


def tell_table(run: Run) -> None:
    """Print the table of a run's evaluation."""
    Console().print(summary_table(run))


def commands_after_scans(run: Path) -> list[str]:
    """What to type after a training on scans."""
    name = shlex.quote(str(run))
    return [f"medssl report {name}", f"medssl review {name}", f"medssl predict SCANS predictions --bundle {name}"]


def size_text(size: Sequence[int]) -> str:
    """`64 x 64 x 16`."""
    return " x ".join(str(length) for length in size)
