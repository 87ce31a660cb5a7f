"""A first-in-first-out memory of representations, saved with the network."""

import ignite.distributed as idist
import torch
from torch import Tensor, nn


class MemoryBank(nn.Module):
    """The last `size` vectors that were written. It starts with one random vector, as in the thesis.

    Rows, the number of them and the place of the next one are buffers: a checkpoint holds them.
    """

    rows: Tensor
    count: Tensor
    position: Tensor

    def __init__(self, size: int, dimension: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"size {size}: a bank holds at least one vector")
        rows = torch.zeros(size, dimension)
        rows[0] = torch.randn(dimension)
        self.register_buffer("rows", rows)
        self.register_buffer("count", torch.ones((), dtype=torch.long))
        self.register_buffer("position", torch.ones((), dtype=torch.long) % size)

    @torch.no_grad()
    def write(self, vectors: Tensor) -> None:
        """Add (n, dimension) vectors, the oldest ones are forgotten; of more than fit the last ones stay.

        In a process group those of all processes are added, so that every process has the same bank.
        """
        size = len(self.rows)
        vectors = rows_of_all_processes(vectors.detach())[-size:].to(self.rows.dtype)
        places = (self.position + torch.arange(len(vectors), device=self.rows.device)) % size
        self.rows[places] = vectors
        self.position.copy_((self.position + len(vectors)) % size)
        self.count.copy_((self.count + len(vectors)).clamp_max(size))

    def mean(self) -> Tensor:
        """The mean of what is stored, (dimension,): order does not matter."""
        return self.rows.sum(0) / self.count


def rows_of_all_processes(rows: Tensor) -> Tensor:
    """The rows (n, dimension) of every process, in the order of their ranks; n may differ between them."""
    if idist.get_world_size() == 1:
        return rows
    counts: list[int] = idist.all_gather(torch.tensor([len(rows)], device=rows.device)).tolist()  # type: ignore[union-attr]
    if max(counts) == 0:
        return rows
    padded = rows.new_zeros(max(counts), rows.shape[1])
    padded[: len(rows)] = rows
    blocks = idist.all_gather(padded).split(max(counts))  # type: ignore[union-attr]
    return torch.cat([block[:count] for block, count in zip(blocks, counts, strict=True)])
