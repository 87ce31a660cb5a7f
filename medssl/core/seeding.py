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


def be_deterministic(seed: int) -> None:
    """Seed everything and let GPUs choose repeatable algorithms where they have them (a warning names the others)."""
    seed_everything(seed)
    if torch.cuda.is_available():
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True, warn_only=True)


@contextmanager
def seeded(*parts: int | str) -> Iterator[None]:
    """Torch's random numbers follow from `parts` inside the block; the state from before comes back after it."""
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(*parts))
        yield
