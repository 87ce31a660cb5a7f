"""The same program in one process or many: torchrun starts them, these functions fit each into the group."""

import datetime
import os

import torch
import torch.distributed as dist

from medssl.core.errors import ConfigError


def is_launched_by_torchrun() -> bool:
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def start_process_group(timeout_minutes: float = 30.0) -> None:
    """Join the group that torchrun describes: NCCL with GPUs, gloo without. Nothing to do outside of torchrun."""
    if not is_launched_by_torchrun() or dist.is_initialized():
        return
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend, timeout=datetime.timedelta(minutes=timeout_minutes))


def stop_process_group() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def local_device() -> torch.device:
    """This process's GPU, or the CPU where there is none."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def require_device(name: str) -> None:
    """ConfigError if `name` is no device of torch, or a GPU that this machine does not have."""
    way_out = "Expected cpu, cuda or cuda:0. Leave --device out to use a GPU if there is one."
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device '{name}': no such kind of device. {way_out}") from error
    gpus = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= gpus:
        raise ConfigError(f"device '{name}': this machine has {gpus} GPUs that torch can use. {way_out}")
