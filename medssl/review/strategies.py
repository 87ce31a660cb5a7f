"""In which order a human should see cases: the orderings that `medssl review` and the MONAI Label app share.

A record is what `medssl.inference.outputs.describe` says of a prediction; `id`, `score` and, of each of `structures`,
`surroundings_entropy_bits` are looked at.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from medssl.core.errors import ConfigError, DataError

STRATEGIES = {
    "uncertain": "most uncertain first: mean over the structures of the entropy around them",
    "structure": "least certain structure first: the entropy around the least certain structure, or around one named",
    "random": "in an order drawn by a seed",
}


def order(
    records: Sequence[Mapping[str, Any]], strategy: str, seed: int = 0, structure: str | None = None
) -> list[str]:
    """The ids of the records, the one that needs a human most first; of the same need the smaller id first.

    The order does not depend on that of `records`, and a further record leaves the order of the others as it is.
    Raises as need_of does.
    """
    check_strategy(strategy, structure)
    needs = {str(record["id"]): need_of(record, strategy, structure, seed) for record in records}
    return sorted(needs, key=lambda case: (-needs[case], case))


def need_of(record: Mapping[str, Any], strategy: str, structure: str | None = None, seed: int = 0) -> float:
    """How much a case needs a human: entropy in bits, or for `random` a number drawn from [0, 1) by seed and id.

    An entropy that is not a number gives infinity, as nobody can tell how good the prediction is. Raises ConfigError
    for a strategy or structure there is not, and DataError for a record without the scores.
    """
    check_strategy(strategy, structure)
    if strategy == "random":
        return _drawn(str(record["id"]), seed)
    if strategy == "uncertain":
        return _checked(record, record.get("score"))
    around = {
        name: _checked(record, measures.get("surroundings_entropy_bits"))
        for name, measures in record.get("structures", {}).items()
    }
    if structure is not None and structure not in around:
        known = ", ".join(around) or "none"
        raise ConfigError(f"structure '{structure}': not among those of case {record['id']} ({known}).")
    if not around:
        raise DataError(f"case {record['id']}: its record names no structure. Predict it again.")
    return max(around.values()) if structure is None else around[structure]


def check_strategy(strategy: str, structure: str | None = None) -> None:
    """ConfigError for a strategy there is not, and for a structure named where the strategy does not look at one."""
    if strategy not in STRATEGIES:
        raise ConfigError(f"strategy '{strategy}': expected one of {', '.join(STRATEGIES)}.")
    if structure is not None and strategy != "structure":
        raise ConfigError(f"structure '{structure}': strategy '{strategy}' looks at all of them. Use 'structure'.")


def _checked(record: Mapping[str, Any], value: Any) -> float:
    if value is None:
        raise DataError(f"case {record['id']}: its record has no score (it is of an older version). Predict it again.")
    return float(value) if math.isfinite(value) else math.inf


def _drawn(case: str, seed: int) -> float:
    digest = hashlib.sha256(f"{seed}:{case}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
