"""Networks: what they are made of, never how they are trained."""

from medssl.networks.lrl import LRL
from medssl.networks.mc_dropout import mc_dropout
from medssl.networks.unet import MCDropoutUNet3D

__all__ = ["LRL", "MCDropoutUNet3D", "mc_dropout"]
