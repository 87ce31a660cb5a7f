"""Networks of the natural-image models: backbones with pooled features, and the neural-process head."""

from natural_image_ext.networks.memory_bank import MemoryBank
from natural_image_ext.networks.np_head import ConditionedOutput, NPHead, NPOutput
from natural_image_ext.networks.wide_resnet import WideResNet, wrn_28_2, wrn_28_8, wrn_37_2

__all__ = ["ConditionedOutput", "MemoryBank", "NPHead", "NPOutput", "WideResNet", "wrn_28_2", "wrn_28_8", "wrn_37_2"]
