"""Networks: what they are made of, never how they are trained."""

from medssl.networks.lrl import LRL
from medssl.networks.mc_dropout import mc_dropout, require_dropout
from medssl.networks.network_config import network_config_of
from medssl.networks.outputs import check_network, give_main_output, main_output
from medssl.networks.unet import MCDropoutUNet3D

__all__ = [
    "LRL",
    "MCDropoutUNet3D",
    "check_network",
    "give_main_output",
    "main_output",
    "mc_dropout",
    "network_config_of",
    "require_dropout",
]
