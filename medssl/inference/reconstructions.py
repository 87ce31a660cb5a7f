"""What LRL reconstructs, beside what it saw: the thesis' figure of reconstructions."""

import io
from pathlib import Path

import numpy as np
import torch
from torch import nn

from medssl.core.files import write_bytes_atomically
from medssl.core.progress import tracked
from medssl.core.run_files import RECONSTRUCTIONS
from medssl.core.run_folder import RunFolder
from medssl.data.mixing import MixedDataset
from medssl.networks.lrl import LRL, reconstruction_target


@torch.no_grad()
def write_reconstructions(folder: RunFolder, network: nn.Module, dataset: MixedDataset, count: int = 8) -> Path | None:
    """Write middle slices of augmented unlabelled patches and their reconstructions to the run's folder.

    The file has `inputs` and `reconstructions`, (count, H, W) in [-1, 1], and `ids`. None where `network` does not
    reconstruct, and in all processes but the first.
    """
    if not folder.is_writer or not isinstance(network, LRL) or network.image_decoder is None:
        return None
    device = next(network.parameters()).device
    network.eval()
    ids, inputs, painted = [], [], []
    with torch.random.fork_rng():
        torch.manual_seed(0)
        places = range(len(dataset.labelled), min(len(dataset), len(dataset.labelled) + count))
        for index in tracked(places, "reconstructions", "patches"):
            sample = dataset[index]
            image = sample["image"].unsqueeze(0).to(device)
            reconstruction = network(image).reconstruction
            wanted = reconstruction_target(image, reconstruction)
            middle = wanted.shape[-1] // 2
            inputs.append(wanted[0, 0, ..., middle].float().cpu().numpy())
            painted.append(reconstruction[0, 0, ..., middle].float().cpu().numpy())
            ids.append(str(sample["id"]))
    target = folder.path / RECONSTRUCTIONS
    buffer = io.BytesIO()
    np.savez_compressed(buffer, inputs=np.stack(inputs), reconstructions=np.stack(painted), ids=np.array(ids))
    write_bytes_atomically(target, buffer.getvalue())
    return target
