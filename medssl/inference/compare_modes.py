"""Is `fast` the same as `reference`? A run's test cases by several modes and strides, compared case by case."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medssl.core.csv_files import write_rows
from medssl.core.distributed import local_device
from medssl.core.errors import ConfigError
from medssl.core.options import make_options
from medssl.core.prediction_options import MODES, SamplingOptions
from medssl.core.progress import tracked, work
from medssl.core.run_files import MODE_COMPARISON
from medssl.core.run_folder import read_facts
from medssl.data.split import read_split, require_scans
from medssl.inference.comparison import SCORES, ComparedCase, case_rows
from medssl.inference.evaluation import evaluation_folder
from medssl.inference.predictor import Predictor, load_predictor
from medssl.security.gate import require_harmless

KIND = "mode"
AGAIN = ", other seed"


@dataclass(frozen=True)
class Side:
    """A way to predict: a mode, and the stride of its windows if it is not the comparison's."""

    mode: str
    stride: tuple[int, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> "Side":
        """From `fast`, `fast@8,8,8` or `fast@[8,8,8]`; ConfigError for anything else."""
        mode, at, stride = text.partition("@")
        try:
            asked = make_options(SamplingOptions, {"mode": mode, "stride": stride if at else None})
        except ConfigError as error:
            expected = f"expected one of {', '.join(MODES)}, with or without a stride, e.g. fast@8,8,8"
            raise ConfigError(f"side '{text}': {expected} ({error})") from None
        return cls(asked.mode, tuple(asked.stride) if at else None)

    @property
    def name(self) -> str:
        return self.mode if self.stride is None else f"{self.mode} @ {'x'.join(map(str, self.stride))}"

    def predictor(self, run: str | Path, other_seed: bool = False, **settings: Any) -> Predictor:
        """Predicts as this side; `reference` by `exact`, which gives the same numbers in half of the time."""
        mode = "exact" if self.mode == "reference" else self.mode
        own = {} if self.stride is None else {"stride": self.stride}
        predictor = load_predictor(run, mode=mode, **settings | own)
        if other_seed:
            predictor.seed += 1
        return predictor


DEFAULT_SIDES = (Side("reference"), Side("fast"))


def write_mode_comparison(
    run: str | Path,
    sides: Sequence[Side] = DEFAULT_SIDES,
    samples: int | None = None,
    stride: Sequence[int] | None = None,
    limit: int | None = None,
    again: int | None = None,
    *,
    trust: bool = False,
) -> tuple[Path, list[ComparedCase]]:
    """Write modes.csv into the folder of a finished run, and return its path and rows.

    A row for each test case and each of `sides`, once more with another seed (how much chance does; modes share the
    first draws of a window if their seed is the same): its mean Dice over the structures and PAvPU, how far both are
    from the first side's, and the correlation of the voxels' entropies with the first side's. samples and stride: of
    all sides that say no other; None: as trained. limit: only the first cases. again: with another seed only the first
    of these; None for all of them. trust: as in `load_predictor`. Raises ConfigError without test cases.
    """
    require_harmless(run, trust)  # before anything takes long
    cases = read_split(Path(run) / "split.json").role("test")[:limit]
    if not cases:
        raise ConfigError(f"{run}: no test cases to predict. Train with --test above 0, and give --cases above 0.")
    require_scans(Path(run) / "split.json", cases)
    settings: dict[str, Any] = {"samples": samples, "stride": stride, "device": str(local_device())}
    settings |= {"paper_crop": read_facts(run)["paper_crop"], "trust": trust}
    seeded_anew = sides if again is None or again > 0 else ()
    with work("opening the network"):
        predictors = {side.name: side.predictor(run, **settings) for side in sides}
        chance = {side.name + AGAIN: side.predictor(run, other_seed=True, **settings) for side in seeded_anew}
    path, rows = Path(run) / MODE_COMPARISON, list[ComparedCase]()
    for number, case in enumerate(tracked(cases, "comparison", "cases")):
        compared = predictors | chance if again is None or number < again else predictors
        rows += case_rows(KIND, compared, case, evaluation_folder(run))
        write_rows(path, ("case", KIND, *SCORES), rows)  # after each: a comparison may take hours
    return path, rows
