"""How the benchmarks take time: CPU seconds of one thread, both sides in turn, the median of some rounds."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch with one thread: with more, CPU time counts threads that spin while they wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def cpu_seconds(call: Callable[[], object]) -> float:
    """CPU seconds of one call, of all threads together."""
    started = time.process_time()
    call()
    return time.process_time() - started


def alternating_medians(*calls: Callable[[], object], repeats: int = 3) -> list[float]:
    """Median CPU seconds of each of `calls`, timed in turn after a first round that only warms up."""
    rounds = [[cpu_seconds(call) for call in calls] for _ in range(repeats + 1)]
    return [statistics.median(times) for times in zip(*rounds[1:], strict=True)]
