"""Signs in a run's history that its training went wrong, in words."""

import math

from medssl.report.figures.health import health_records
from medssl.report.run import Run

# v.v adds up over the latent dimensions D. Measured on hippocampus with D = 32: 4.4 after 500 steps at the thesis'
# learning rate, 1e-4, and 15,400 to 63,000 at 5e-3, where the latents are noise. At the first step it is about D / 4.
# So these lie above all that the thesis' rate gives, and far below all that was seen to explode.
LARGEST_V_SQUARED = 100.0
LARGEST_V_SQUARED_PER_DIMENSION = 3.0  # takes over where there are more than 33 dimensions; the thesis has 256
LATENT_DIMENSIONS = "latent::network_def::latent_dim"


def health_warnings(run: Run) -> list[str]:
    """What is wrong with the latents of GBDL's first stage; empty where nothing is, or the run has none."""
    records = health_records(run).get("v_squared", [])
    measured = [record for record in records if math.isfinite(record["v_squared"])]
    if not measured:
        return []
    largest = max(measured, key=lambda record: record["v_squared"])
    limit = largest_v_squared(run)
    if largest["v_squared"] <= limit:
        return []
    return [
        f"v.v reached {largest['v_squared']:,.0f} at step {largest.get('step', '?')}. At the thesis' learning rate of "
        f"1e-4 it stays below {limit:g}. Samples of latents this long are mostly noise. The KL of the product is flat "
        "in the length of v and does not bring it back. Train with a smaller --latent_learning_rate, such as 0.0001."
    ]


def largest_v_squared(run: Run) -> float:
    """The v.v above which a run is warned of, by the number of its latent dimensions."""
    dimensions = str((run.facts.get("config") or {}).get(LATENT_DIMENSIONS, ""))
    per_dimension = LARGEST_V_SQUARED_PER_DIMENSION * int(dimensions) if dimensions.isdecimal() else 0.0
    return max(LARGEST_V_SQUARED, per_dimension)
