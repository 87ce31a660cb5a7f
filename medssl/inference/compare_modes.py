"""Is a mode of inference the same as `reference`? RUN/modes.csv: the test cases by each, and what chance alone does."""

from collections.abc import Sequence
from pathlib import Path

from medssl.data.cases import read_split
from medssl.engine.distributed import local_device
from medssl.engine.run_folder import read_facts
from medssl.errors import ConfigError
from medssl.inference.comparison import SCORES, Row, case_rows
from medssl.inference.evaluation import evaluation_folder, write_rows
from medssl.inference.predictor import load_predictor
from medssl.run_files import MODES

KIND = "mode"
AGAIN = "reference, other seed"


def write_mode_comparison(
    run: str | Path,
    samples: int | None = None,
    stride: Sequence[int] | None = None,
    limit: int | None = None,
    again: int | None = None,
) -> tuple[Path, list[Row]]:
    """Write modes.csv into the folder of a finished run, and return its path and rows.

    A row for each test case and each of `reference`, `reference` with another seed (how much chance does) and `fast`:
    its mean Dice over the structures and PAvPU, how far both are from the first one's, and the correlation of the
    voxels' entropies with the first one's. `reference` is computed by `exact`: the same numbers in half of the time.
    limit: only the first cases. again: with another seed only the first of these; None for all of them. Raises
    ConfigError without test cases.
    """
    cases = read_split(Path(run) / "split.json").role("test")[:limit]
    if not cases:
        raise ConfigError(f"{run}: no test cases to predict. Train with --test above 0, and give --cases above 0.")
    settings = {"samples": samples, "stride": stride, "device": str(local_device())}
    settings["paper_crop"] = read_facts(run)["paper_crop"]
    reference, fast = (load_predictor(run, mode=mode, **settings) for mode in ("exact", "fast"))
    sides = {"reference": reference, "fast": fast}
    with_chance = {**sides, AGAIN: load_predictor(run, mode="exact", seed=reference.seed + 1, **settings)}
    rows = [
        row
        for number, case in enumerate(cases)
        for row in case_rows(
            KIND, with_chance if again is None or number < again else sides, case, evaluation_folder(run)
        )
    ]
    path = Path(run) / MODES
    write_rows(path, ("case", KIND, *SCORES), rows)
    return path, rows
