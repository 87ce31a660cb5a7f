"""The natural-image models of the thesis (chapters 4 and 5), built on medssl.engine."""

from importlib.util import find_spec

from medssl.core.errors import ConfigError

_MISSING = [name for name in ("torchvision", "timm", "segmentation_models_pytorch") if find_spec(name) is None]
if _MISSING:
    raise ConfigError(f"natural_image_ext needs {', '.join(_MISSING)}. Install it with: pip install 'medssl[natural]'")
