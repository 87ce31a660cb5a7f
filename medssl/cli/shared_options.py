"""Options and arguments that several commands have: said once, so that they are spelt and explained alike."""

from pathlib import Path
from typing import Annotated

import typer

FinishedRun = Annotated[Path, typer.Argument(help="The folder of a finished run.")]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Open a bundle even if check-bundle has findings; it may then run any code."),
]
Samples = Annotated[int | None, typer.Option(help="Number of Monte Carlo samples; 0: one pass. Default: as trained.")]
SomeSamples = Annotated[int | None, typer.Option(min=1, help="Number of Monte Carlo samples; default: as trained.")]
Stride = Annotated[
    str,
    typer.Option(help="Distance between windows in voxels, e.g. 8,8,8; at most the window. Default: as trained."),
]
TestCases = Annotated[
    int | None, typer.Option(min=1, help="Number of test cases to predict, the first ones; default: all.")
]
Overlays = Annotated[
    list[str] | None, typer.Option(help="Overlay of the bundle, e.g. bench, or a JSON file with keys; may be repeated.")
]
