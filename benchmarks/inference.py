"""MC-dropout inference with the thesis' 3D-UNet (9.6 M parameters), T = 20, against plain MONAI loops; one thread.

The peer calls MONAI's sliding_window_inference T times. What would take days is told from its parts: a whole pass, an
encoder pass and a decoder sample of a full-size window are timed, and multiplied with the numbers of each plan.
"""

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import torch
from monai.inferers import sliding_window_inference
from torch import Tensor

from medssl.inference import MCDropoutInferer
from medssl.inference.backends import Backend, open_backend
from medssl.inference.windows import grid_plan, overlap_plan
from medssl.networks import MCDropoutUNet3D, mc_dropout

Row = tuple[str, str, float, float]
T = 20
THESIS_SCAN, THESIS_WINDOW, THESIS_STRIDE = (256, 256, 64), (128, 128, 32), (8, 8, 8)
PEAK_MEMORY = """
import resource, torch
from medssl.inference import MCDropoutInferer
from medssl.networks import MCDropoutUNet3D
torch.set_num_threads(1)
inferer = MCDropoutInferer({window}, {window}, {samples}, window_batch=1, mode="{mode}")
inferer(torch.zeros(1, 1, *{scan}), MCDropoutUNet3D(1, 2))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def measure() -> Iterator[Row]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(0)
        network = MCDropoutUNet3D(1, 2).eval()
        yield exact_row(network)
        yield from full_size_rows(network)
        yield small_scan_row()
        yield memory_row()
        yield from backend_rows(network)
    finally:
        torch.set_num_threads(threads)


def exact_row(
    network: MCDropoutUNet3D, scan: Sequence[int] = (96, 64, 32), window: Sequence[int] = (64, 64, 32), samples: int = T
) -> Row:
    """`exact` against T times sliding_window_inference over the same windows."""
    image, stride = torch.rand(1, 1, *scan), (window[0] // 2, *window[1:])
    inferer = MCDropoutInferer(window, stride, samples, mode="exact")
    ours_s = cpu_seconds(lambda: inferer(image, network))
    peer_s = cpu_seconds(lambda: plain_loop(image, network, window, stride, samples))
    return f"exact, T = {samples}, {size_of(window)} windows", "sliding_window_inference T times", ours_s, peer_s


def full_size_rows(network: MCDropoutUNet3D, window: Sequence[int] = THESIS_WINDOW) -> Iterator[Row]:
    """`fast` at 256x256x64 against the thesis' protocol and against T passes at half overlap, from timed windows."""
    whole_s, encode_s, decode_s = pass_seconds(network, window)
    plan = overlap_plan(THESIS_SCAN, THESIS_WINDOW, T)
    ours_s, passes = len(plan) * encode_s + sum(plan.values()) * decode_s, sum(plan.values())
    claim = f"fast, {size_of(THESIS_SCAN)}, {passes} passes, from timed windows of {size_of(window)}"
    half = [length // 2 for length in THESIS_WINDOW]
    for name, stride in (("thesis' protocol", THESIS_STRIDE), ("T passes at overlap 0.5", half)):
        theirs = sum(grid_plan(THESIS_SCAN, THESIS_WINDOW, stride, T).values())
        yield claim, f"{name}, {theirs} passes", ours_s, theirs * whole_s


def small_scan_row(widths: Sequence[int] = (8, 16, 32), window: Sequence[int] = (48, 48, 8), steps: int = 16) -> Row:
    """Both in full on a small scan with a small network: twice the window along every axis, stride window / `steps`."""
    torch.manual_seed(0)
    network = MCDropoutUNet3D(1, 2, widths=widths)
    scan = [2 * length for length in window]
    stride = (window[0] // steps, window[1] // steps, max(1, 4 * window[2] // steps))
    image = torch.rand(1, 1, *scan)
    inferer = MCDropoutInferer(window, stride, T, mode="fast")
    ours_s = cpu_seconds(lambda: inferer(image, network))
    peer_s = cpu_seconds(lambda: plain_loop(image, network, window, stride, T))
    passes = sum(inferer.plan(scan, T).values()), sum(grid_plan(scan, window, stride, T).values())
    return (
        f"fast, {size_of(scan)}, small network, {passes[0]} passes",
        f"thesis' protocol, {passes[1]} passes",
        ours_s,
        peer_s,
    )


def memory_row(scan: Sequence[int] = (80, 64, 32), window: Sequence[int] = (64, 64, 32)) -> Row:
    """Peak memory of a process in GiB, not seconds: T samples in the default mode, and one deterministic pass."""
    ours, peer = (peak_gib(scan, window, samples, "fast") for samples in (T, 0))
    return f"GiB at the peak, fast, T = {T}, {size_of(window)} windows", "one deterministic pass", ours, peer


def backend_rows(network: MCDropoutUNet3D, window: Sequence[int] = (64, 64, 32)) -> Iterator[Row]:
    """A pass and three samples on every back end that is installed, against eager."""
    names = ["compile", *(["openvino"] if importlib.util.find_spec("openvino") else [])]
    with torch.inference_mode():
        eager = open_backend("eager", network, window)
        for name in names:
            other = open_backend(name, network, window)
            samples_of(other, window)  # builds the graphs
            ours_s, peer_s = (cpu_seconds(lambda of=of: samples_of(of, window)) for of in (other, eager))
            yield (
                f"{name}, encoder once, 3 samples, {size_of(window)}",
                "eager with dropped channels left out",
                ours_s,
                peer_s,
            )
            ours_s, peer_s = (cpu_seconds(lambda of=of: whole_pass(of, window)) for of in (other, eager))
            yield f"{name}, one pass, {size_of(window)}", "eager", ours_s, peer_s


def plain_loop(
    image: Tensor, network: MCDropoutUNet3D, window: Sequence[int], stride: Sequence[int], samples: int
) -> Tensor:
    """The mean of T calls of MONAI's sliding_window_inference with dropout on."""
    overlap = [max(0.0, 1 - (s + 0.5) / w) for s, w in zip(stride, window, strict=True)]
    at_a_time = 1 if window[0] * window[1] >= 64 * 64 else 4  # what is faster
    with torch.inference_mode(), mc_dropout(network):
        total = torch.zeros(())
        for _ in range(samples):
            probs = sliding_window_inference(image, window, at_a_time, lambda x: network(x).softmax(1), overlap=overlap)
            assert isinstance(probs, Tensor)
            total = total + probs
    return total / samples


@torch.inference_mode()
def pass_seconds(network: MCDropoutUNet3D, window: Sequence[int], repeats: int = 2) -> tuple[float, float, float]:
    """CPU seconds of a whole pass with dropout, of an encoder pass and of a decoder sample."""
    backend, x = open_backend("eager", network, window), torch.rand(1, 1, *window)
    features = backend.encode(x)
    rounds = [
        (
            cpu_seconds(lambda: plain_loop(x, network, window, window, 1)),
            cpu_seconds(lambda: backend.encode(x)),
            cpu_seconds(lambda seed=seed: backend.decode(features, seed)),
        )
        for seed in range(repeats)
    ]
    whole_s, encode_s, decode_s = (statistics.median(column) for column in zip(*rounds, strict=True))
    return whole_s, encode_s, decode_s


def samples_of(backend: Backend, window: Sequence[int]) -> Tensor:
    features = backend.encode(torch.zeros(1, 1, *window))
    return torch.cat([backend.decode(features, seed) for seed in range(3)])


def whole_pass(backend: Backend, window: Sequence[int]) -> Tensor:
    return backend.whole(torch.zeros(1, 1, *window), [0])


def peak_gib(scan: Sequence[int], window: Sequence[int], samples: int, mode: str) -> float:
    script = PEAK_MEMORY.format(scan=tuple(scan), window=tuple(window), samples=samples, mode=mode)
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)  # noqa: S603


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def size_of(voxels: Sequence[int]) -> str:
    return "x".join(map(str, voxels))
