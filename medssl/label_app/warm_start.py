"""Called by the overlay of a training after review: begin where the served model is."""

from torch import nn

from medssl.inference.predictor import load_weights


def warm_start(network: nn.Module, checkpoint: str) -> nn.Module:
    """`network` with the weights stored at `checkpoint`; CheckpointError if they are another network's."""
    load_weights(network, checkpoint)
    return network
