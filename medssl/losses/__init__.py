"""Losses of the thesis."""

from medssl.losses.segmentation import DiceCE, soft_dice_loss

__all__ = ["DiceCE", "soft_dice_loss"]
