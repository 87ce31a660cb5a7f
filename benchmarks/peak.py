"""What one core of this machine can do at most, measured in the same run: fused multiply-adds of float32."""

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

SOURCE = Path(__file__).parent / "fma_peak.c"


@functools.cache
def fma_peak_gflops() -> float | None:
    """GFLOP/s of one core by fma_peak.c; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler `cc`: shares of the machine's peak are left out", flush=True)
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "fma_peak")
        options = ["-O3", "-march=native", "-ffp-contract=fast"]
        subprocess.run([compiler, *options, str(SOURCE), "-o", program], check=True)  # noqa: S603  (our own source)
        return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)  # noqa: S603


def least_seconds(call: Callable[[], object]) -> float | None:
    """Seconds that one core needs at least for the convolutions and products of `call`; None if the peak is unknown."""
    peak = fma_peak_gflops()
    return None if peak is None else gflop_of(call) / peak


def gflop_of(call: Callable[[], object]) -> float:
    """Floating-point operations of the convolutions and matrix products in `call`, in 10^9."""
    own = {torch.ops.aten.mkldnn_convolution: _convolution_operations}  # torch counts what it calls by other names
    with FlopCounterMode(display=False, custom_mapping=own) as counter, torch.no_grad():
        call()
    return counter.get_total_flops() / 1e9


def _convolution_operations(x: list[int], weight: list[int], *_: object, out_shape: list[int], **__: object) -> int:
    return conv_flop_count(x, weight, out_shape)
