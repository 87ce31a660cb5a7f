"""Two sets of features that tell each other what they know, as graphs of a few nodes."""

import torch
from torch import Tensor, nn


class GraphExchange(nn.Module):
    """Two sets of features (B, channels, *spatial), each with what the nodes of the other one told its own.

    A node is a weighted mean over all voxels; it hears from the other graph's nodes the more, the more alike they are.
    What it has heard goes back to the voxels that it stands for.
    """

    def __init__(self, channels: int, axes: int, nodes: int = 16) -> None:
        super().__init__()
        kind = nn.Conv3d if axes == 3 else nn.Conv2d
        self.to_nodes = nn.ModuleList(kind(channels, nodes, 1) for _ in range(2))
        self.messages = nn.ModuleList(nn.Linear(channels, channels) for _ in range(2))

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        scores = [layer(features).flatten(2) for layer, features in zip(self.to_nodes, (first, second), strict=True)]
        ours, theirs = (node_features(*pair) for pair in zip((first, second), scores, strict=True))
        told_us = self.messages[0](heard(ours, theirs)).relu()
        told_them = self.messages[1](heard(theirs, ours)).relu()
        return with_messages(first, scores[0], told_us), with_messages(second, scores[1], told_them)


def node_features(features: Tensor, scores: Tensor) -> Tensor:
    """(B, nodes, channels): means of features over voxels, by scores (B, nodes, voxels)."""
    return scores.softmax(2) @ features.flatten(2).transpose(1, 2)


def heard(listeners: Tensor, speakers: Tensor) -> Tensor:
    """(B, nodes, channels): means of the speakers' nodes, which count by their likeness with each listener."""
    likeness = listeners @ speakers.transpose(1, 2) / listeners.shape[2] ** 0.5
    return likeness.softmax(2) @ speakers


def with_messages(features: Tensor, scores: Tensor, messages: Tensor) -> Tensor:
    """Features plus what the nodes (B, nodes, channels) of each voxel were told."""
    told = torch.einsum("bnv,bnc->bcv", scores.softmax(1), messages)
    return features + told.view_as(features)
