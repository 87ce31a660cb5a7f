"""What a network of any kind is expected to give out, and the check that it does, before a training begins."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from medssl.core.errors import ConfigError
from medssl.networks.mc_dropout import mc_dropout

# MONAI's attributes of networks with further outputs for deep supervision, and the argument that goes without them
_DEEP_SUPERVISION = {"deep_supervision": False, "dsdepth": 1}
_TRIED_MULTIPLES = (2, 4, 8, 16, 32, 64)


def main_output(output: Any) -> Any:
    """The logits among what a network gave out: a tensor as it is, the first of a list or tuple."""
    return output[0] if isinstance(output, list | tuple) else output


def give_main_output(network: nn.Module) -> nn.Module:
    """`network` itself, whose calls give `main_output` from now on; names of weights stay, copies do the same."""
    if _main_output_hook not in network._forward_hooks.values():
        network.register_forward_hook(_main_output_hook)
    return network


def check_network(network: nn.Module, patch_size: Sequence[int], num_classes: int, in_channels: int = 1) -> None:
    """ConfigError unless a patch (in_channels, *patch_size) gives logits of `num_classes` channels and the same size.

    Only sizes are computed; a network that looks at numbers gets one patch of zeros in evaluation mode. Neither the
    network nor any random state is changed.
    """
    name = type(network).__name__
    _refuse_deep_supervision(network)
    try:
        output = main_output(_output_for(network, in_channels, patch_size))
    except Exception as error:  # networks raise anything where sizes do not fit
        raise ConfigError(_unfit_patch(network, patch_size, in_channels, error)) from error
    if not isinstance(output, Tensor):
        raise ConfigError(
            f"network {name}: gives a {type(output).__name__}, expected logits (B, {num_classes}, ...) or a list that "
            "begins with them. Give another network_def."
        )
    channels, size = output.shape[1] if output.ndim > 1 else 0, tuple(output.shape[2:])
    if channels != num_classes:
        raise ConfigError(
            f"network {name}: gives {channels} channels, the data have {num_classes} classes with the background. "
            f"Set its out_channels to {num_classes} in network_def."
        )
    if size != tuple(patch_size):
        raise ConfigError(
            f"network {name}: gives {size} voxels for a patch_size of {tuple(patch_size)}, expected the same size. "
            "Give a patch_size that its strides divide, and a network_def whose first stride is 1."
        )


def _main_output_hook(_network: nn.Module, _inputs: object, output: Any) -> Any:
    return main_output(output)


def _refuse_deep_supervision(network: nn.Module) -> None:
    """Further outputs would get no loss: their weights would stay as they are, and several processes would fail."""
    for argument, without in _DEEP_SUPERVISION.items():
        value = getattr(network, argument, without)
        if isinstance(value, int) and value > without:
            raise ConfigError(
                f"network {type(network).__name__}: {argument} {value} adds outputs that no loss here trains. "
                f"Set {argument} to {str(without).lower()} in network_def."
            )


def _output_for(network: nn.Module, in_channels: int, size: Sequence[int]) -> Any:
    """What the network gives for one patch: sizes alone where it does not look at numbers."""
    try:
        return _sizes_for(network, in_channels, size)
    except Exception:  # numbers are looked at, or the size does not fit: a real pass says which
        weight = next(network.parameters(), torch.zeros(()))
        patch = torch.zeros(1, in_channels, *size, device=weight.device)
        devices = [weight.device] if weight.is_cuda else []
        with torch.random.fork_rng(devices), torch.no_grad(), mc_dropout(network, enabled=False):
            return network(patch)


def _sizes_for(network: nn.Module, in_channels: int, size: Sequence[int]) -> Any:
    """The same on torch's device for sizes, by a copy."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        return copy.deepcopy(network).to("meta").eval()(torch.zeros(1, in_channels, *size, device="meta"))


def _unfit_patch(network: nn.Module, patch_size: Sequence[int], in_channels: int, error: Exception) -> str:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    fitting = _fitting_size(network, patch_size, in_channels)
    way_out = (
        f"Give --patch_size {list(fitting)}, or other strides in network_def."
        if fitting
        else f"Set its in_channels to {in_channels} and its spatial_dims to {len(patch_size)} in network_def."
    )
    return (
        f"network {type(network).__name__}: a patch of {in_channels} channels and {tuple(patch_size)} voxels does not "
        f"pass it ({reason}). {way_out}"
    )


def _fitting_size(network: nn.Module, patch_size: Sequence[int], in_channels: int) -> tuple[int, ...] | None:
    """The nearest larger size that passes, its lengths multiples of one power of two; None if there is none."""
    for multiple in _TRIED_MULTIPLES:
        size = tuple(-(-length // multiple) * multiple for length in patch_size)
        try:
            _sizes_for(network, in_channels, size)
        except Exception:  # noqa: S112  (the next size may pass)
            continue
        return size
    return None
