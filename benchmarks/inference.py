"""MC-dropout inference with the thesis' 3D-UNet (9.6 M parameters), T = 20, against plain MONAI loops; one thread.

The peer calls MONAI's sliding_window_inference T times. What would take days is told from its parts: a whole pass, an
encoder pass and a decoder sample of a full-size window are timed, and multiplied with the numbers of each plan.
"""

import importlib.util
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence

import torch
from monai.inferers import sliding_window_inference
from peak import least_seconds
from timing import alternating_medians, cpu_seconds, one_thread
from torch import Tensor

from medssl.inference import MCDropoutInferer
from medssl.inference.backends import Backend, open_backend
from medssl.inference.backends.openvino import OpenVINOBackend
from medssl.inference.int8_calibration import quantised_models
from medssl.inference.windows import grid_plan, overlap_plan
from medssl.networks import MCDropoutUNet3D, mc_dropout

T = 20
THESIS_SCAN, THESIS_WINDOW, THESIS_STRIDE = (256, 256, 64), (128, 128, 32), (8, 8, 8)
HALF_STRIDE = (64, 64, 16)
AT_PEAK = "its convolutions at FMA peak"
EXACT_TARGET, FEWER_TARGET, HALF_TARGET = 1.45, 100.0, 2.0
MOST_MEMORY = 1.5  # of what one deterministic pass takes
PEAK_MEMORY = """
import resource, torch
from medssl.inference import MCDropoutInferer
from medssl.networks import MCDropoutUNet3D
torch.set_num_threads(1)
inferer = MCDropoutInferer({window}, {window}, {samples}, window_batch=1, mode="{mode}")
inferer(torch.zeros(1, 1, *{scan}), MCDropoutUNet3D(1, 2))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def measure() -> Iterator[tuple]:
    with one_thread():
        torch.manual_seed(0)
        network = MCDropoutUNet3D(1, 2).eval()
        yield exact_row(network)
        yield passes_row()
        yield from full_size_rows(network)
        yield small_scan_row()
        yield memory_row()
        yield from backend_rows(network)


def exact_row(
    network: MCDropoutUNet3D, scan: Sequence[int] = (96, 64, 32), window: Sequence[int] = (64, 64, 32), samples: int = T
) -> tuple:
    """`exact` against T times sliding_window_inference over the same windows."""
    image, stride = torch.rand(1, 1, *scan), (window[0] // 2, *window[1:])
    inferer = MCDropoutInferer(window, stride, samples, mode="exact")
    limit = least_seconds(lambda: inferer(image, network))
    ours_s = cpu_seconds(lambda: inferer(image, network))
    peer_s = cpu_seconds(lambda: plain_loop(image, network, window, stride, samples))
    claim = f"exact, T = {samples}, {size_of(window)} windows"
    return claim, "sliding_window_inference T times", ours_s, peer_s, EXACT_TARGET, limit, AT_PEAK


def passes_row() -> tuple:
    """The number of passes, not seconds: every voxel gets at least T samples, which 20 in each of 8 windows do, too."""
    ours, thesis = (
        sum(plan(THESIS_SCAN, THESIS_WINDOW, stride, T).values())
        for plan, stride in ((overlap_plan, HALF_STRIDE), (grid_plan, THESIS_STRIDE))
    )
    least = T * math.prod(length // w for length, w in zip(THESIS_SCAN, THESIS_WINDOW, strict=True))
    claim = f"number of passes, fast, {size_of(THESIS_SCAN)}, stride {size_of(HALF_STRIDE)}"
    return claim, "thesis' protocol", ours, thesis, FEWER_TARGET, least, f"{T} samples at every voxel"


def full_size_rows(network: MCDropoutUNet3D, window: Sequence[int] = THESIS_WINDOW) -> Iterator[tuple]:
    """`fast` at 256x256x64 against the thesis' protocol and against T passes at half overlap, from timed windows."""
    backend, x = open_backend("eager", network, window), torch.rand(1, 1, *window)
    with torch.inference_mode():
        features = backend.encode(x)
        parts = (lambda: backend.encode(x), lambda: backend.decode(features, 0))
        whole_s, encode_s, decode_s = alternating_medians(
            lambda: plain_loop(x, network, window, window, 1), *parts, repeats=2
        )
        limits = [least_seconds(part) for part in parts]
    for stride, peers in (
        (THESIS_STRIDE, {"thesis' protocol": (THESIS_STRIDE, None)}),
        (
            HALF_STRIDE,
            {"thesis' protocol": (THESIS_STRIDE, FEWER_TARGET), "T passes at overlap 0.5": (HALF_STRIDE, HALF_TARGET)},
        ),
    ):
        plan = overlap_plan(THESIS_SCAN, THESIS_WINDOW, stride, T)
        counts = len(plan), sum(plan.values())
        ours_s = counts[0] * encode_s + counts[1] * decode_s
        limit = None if None in limits else sum(n * s for n, s in zip(counts, limits, strict=True))  # type: ignore[operator]
        claim = f"fast, {size_of(THESIS_SCAN)}, stride {size_of(stride)}, {counts[1]} passes, from timed windows"
        for name, (peers_stride, target) in peers.items():
            theirs = sum(grid_plan(THESIS_SCAN, THESIS_WINDOW, peers_stride, T).values())
            yield claim, f"{name}, {theirs} passes", ours_s, theirs * whole_s, target, limit, AT_PEAK


def small_scan_row(
    widths: Sequence[int] = (8, 16, 32), window: Sequence[int] = (48, 48, 8), steps: Sequence[int] = (16, 16, 4)
) -> tuple:
    """Both in full on a small scan with a small network: scan, window and strides in the proportions of the thesis.

    The scan is twice the window; the peer's windows stand a window / `steps` apart, ours half a window.
    """
    torch.manual_seed(0)
    network = MCDropoutUNet3D(1, 2, widths=widths)
    scan = [2 * length for length in window]
    dense = [length // n for length, n in zip(window, steps, strict=True)]
    sparse = [length // 2 for length in window]
    image = torch.rand(1, 1, *scan)
    inferer = MCDropoutInferer(window, sparse, T, mode="fast")
    limit = least_seconds(lambda: inferer(image, network))
    ours_s = cpu_seconds(lambda: inferer(image, network))
    peer_s = cpu_seconds(lambda: plain_loop(image, network, window, dense, T))
    passes = sum(inferer.plan(scan, T).values()), sum(grid_plan(scan, window, dense, T).values())
    claim = f"fast, {size_of(scan)}, stride {size_of(sparse)}, small network, {passes[0]} passes, in full"
    peer = f"thesis' protocol, stride {size_of(dense)}, {passes[1]} passes, in full"
    return claim, peer, ours_s, peer_s, FEWER_TARGET, limit, AT_PEAK


def memory_row(scan: Sequence[int] = (80, 64, 32), window: Sequence[int] = (64, 64, 32)) -> tuple:
    """Peak memory of a process in GiB, not seconds: T samples, and one deterministic pass."""
    ours, peer = (peak_gib(scan, window, samples, "fast") for samples in (T, 0))
    claim = f"GiB at the peak, fast, T = {T}, {size_of(window)} windows"
    return claim, "one deterministic pass", ours, peer, 1 / MOST_MEMORY


def backend_rows(network: MCDropoutUNet3D, window: Sequence[int] = (64, 64, 32)) -> Iterator[tuple]:
    """A pass and three samples on every back end that is installed, against eager."""
    with torch.inference_mode():
        eager = open_backend("eager", network, window)
        limits = [least_seconds(lambda: samples_of(eager, window)), least_seconds(lambda: whole_pass(eager, window))]
        for name, other in graph_backends(network, window):
            at_most = [None, None] if name == "int8" else limits  # the peak is that of float32
            sides = [lambda of=of: samples_of(of, window) for of in (other, eager)]
            ours_s, peer_s = alternating_medians(*sides, repeats=2)
            claim, peer = f"{name}, encoder once, 3 samples, {size_of(window)}", "eager with dropped channels left out"
            yield claim, peer, ours_s, peer_s, None, at_most[0], AT_PEAK
            sides = [lambda of=of: whole_pass(of, window) for of in (other, eager)]
            ours_s, peer_s = alternating_medians(*sides, repeats=2)
            yield f"{name}, one pass, {size_of(window)}", "eager", ours_s, peer_s, None, at_most[1], AT_PEAK


def graph_backends(network: MCDropoutUNet3D, window: Sequence[int]) -> Iterator[tuple[str, Backend]]:
    """The back ends with fixed graphs that are installed; int8 is calibrated on noise, which does for its speed."""
    yield "compile", open_backend("compile", network, window)
    if importlib.util.find_spec("openvino"):
        yield "openvino", open_backend("openvino", network, window)
    if importlib.util.find_spec("nncf"):
        noise = [torch.rand(1, 1, *window) * 2 - 1 for _ in range(2)]
        yield "int8", OpenVINOBackend(network, *quantised_models(network, noise))


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


def samples_of(backend: Backend, window: Sequence[int]) -> Tensor:
    features = backend.encode(torch.zeros(1, 1, *window))
    return torch.cat([backend.decode(features, seed) for seed in range(3)])


def whole_pass(backend: Backend, window: Sequence[int]) -> Tensor:
    return backend.whole(torch.zeros(1, 1, *window), [0])


def peak_gib(scan: Sequence[int], window: Sequence[int], samples: int, mode: str) -> float:
    script = PEAK_MEMORY.format(scan=tuple(scan), window=tuple(window), samples=samples, mode=mode)
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)  # noqa: S603


def size_of(voxels: Sequence[int]) -> str:
    return "x".join(map(str, voxels))
