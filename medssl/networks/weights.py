"""A name for the weights of a network."""

import hashlib

from torch import Tensor, nn


def weights_digest(network: nn.Module) -> str:
    """16 hex digits that change with any weight or buffer of `network`."""
    digest = hashlib.sha256()
    for name, value in network.state_dict().items():
        if isinstance(value, Tensor):
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]
