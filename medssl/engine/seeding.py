"""Seeds that make a run repeatable: everything random in an epoch follows from (seed, epoch, process)."""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive_seed(*parts: int | str) -> int:
    """A 32-bit seed that depends on every part and on nothing else."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def seed_everything(*parts: int | str) -> None:
    """Seed Python, NumPy and torch with one seed derived from `parts`."""
    seed = derive_seed(*parts)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (MONAI's transforms draw from the global generator)
    torch.manual_seed(seed)


@contextmanager
def seeded(*parts: int | str) -> Iterator[None]:
    """Torch's random numbers follow from `parts` inside the block; the state from before comes back after it."""
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(*parts))
        yield
