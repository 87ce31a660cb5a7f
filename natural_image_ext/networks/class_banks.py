"""A memory bank for every class: the last feature vectors of its pixels, and their mean, the class's centre."""

import torch
from torch import Tensor, nn

from natural_image_ext.networks.memory_bank import rows_of_all_processes

IGNORED = 255


class ClassBanks(nn.Module):
    """`size` vectors of each class, first in first out.

    Rows, their numbers and the places of the next ones are buffers: a checkpoint holds them. most: how many vectors of
    a class are written at once; of more, some are drawn at random. zeros_first: each begins with one vector of zeros,
    as NP-SemiSeg's released code has it, which is forgotten like any other; else with none.
    """

    rows: Tensor
    counts: Tensor
    positions: Tensor

    def __init__(self, num_classes: int, size: int, dimension: int, most: int = 256, zeros_first: bool = True) -> None:
        super().__init__()
        if min(size, most) < 1:
            raise ValueError(f"size {size}, most {most}: a bank holds and takes at least one vector")
        self.most = most
        self.register_buffer("rows", torch.zeros(num_classes, size, dimension))
        first = int(zeros_first)
        self.register_buffer("counts", torch.full((num_classes,), first))
        self.register_buffer("positions", torch.full((num_classes,), first % size))

    @torch.no_grad()
    def write(self, maps: Tensor, labels: Tensor) -> None:
        """Add the feature vectors of maps (B, dimension, *spatial) to the banks of their labels (B, *spatial).

        Labels that are no class (255) are left out. In a process group those of all processes are added, in the order
        of their ranks, so that every process has the same banks.
        """
        vectors, classes = self._drawn(maps.detach().movedim(1, -1).flatten(0, -2), labels.flatten())
        tagged = torch.cat([vectors, classes.unsqueeze(1).to(vectors.dtype)], dim=1)
        tagged = rows_of_all_processes(tagged)
        vectors, classes = tagged[:, :-1], tagged[:, -1].long()
        size = self.rows.shape[1]
        for label in classes.unique().tolist():
            new = vectors[classes == label][-size:]
            places = (self.positions[label] + torch.arange(len(new), device=new.device)) % size
            self.rows[label, places] = new.to(self.rows.dtype)
            self.positions[label] = (self.positions[label] + len(new)) % size
            self.counts[label] = (self.counts[label] + len(new)).clamp_max(size)

    def centres(self) -> Tensor:
        """The mean of what is stored of each class, (num_classes, dimension); zeros where nothing is."""
        return self.rows.sum(1) / self.counts.clamp_min(1).unsqueeze(1)

    def only_centres(self) -> "ClassBanks":
        """Banks of one vector, the centre: all that a prediction needs."""
        classes, _, dimension = self.rows.shape
        small = ClassBanks(classes, 1, dimension, self.most).to(self.rows)
        small.rows.copy_(self.centres().unsqueeze(1))
        return small

    def _drawn(self, vectors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """At most `most` vectors of each class, by chance, and their classes; those of one class stand together."""
        chosen = []
        for label in labels.unique().tolist():
            if 0 <= label < len(self.rows):
                places = (labels == label).nonzero().squeeze(1)
                chosen.append(places[torch.randperm(len(places), device=places.device)[: self.most]])
        places = torch.cat(chosen) if chosen else labels.new_zeros(0, dtype=torch.long)
        return vectors[places], labels[places]
