"""The one room where MONAI's ConfigParser reads configurations; nobody else calls it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from monai.bundle import ConfigParser

from medssl.core.errors import ConfigError
from medssl.core.flags import flag
from medssl.security.configs import check_config, check_no_training
from medssl.security.gate import refuse, require_harmless

BundleConfig = ConfigParser  # its type, for others


def open_bundle_config(root: Path, file: str = "inference.json", trust: bool | str = False) -> BundleConfig:
    """The configuration `file` of the bundle at `root`, to be executed.

    ConfigError if anything in the bundle could do harm. trust: open it all the same.
    """
    require_harmless(root, trust)
    path = root / "configs" / file
    try:
        content = read_configs([path])
    except (ValueError, OSError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({error}). Expected a JSON object; export the bundle again."
        ) from None
    if not flag(trust, "trust"):
        refuse(path, check_config(content) + check_no_training(content))  # once more, as MONAI has put it together
    return parser_of(content)


def read_configs(files: Sequence[str | Path]) -> dict[str, Any]:
    """The files merged as MONAI does it, as plain values: nothing is executed."""
    return ConfigParser.load_config_files([str(file) for file in files])


def running_config(files: Sequence[str | Path], keys: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration that MONAI is running already, with the command's keys, before references are resolved."""
    parser = ConfigParser()
    parser.read_config(list(files))
    parser.update(pairs=dict(keys))
    parser.parse()
    return {name: value for name, value in parser.get().items() if name != ConfigParser.meta_key}


def parser_of(config: Mapping[str, Any]) -> BundleConfig:
    """A parser of a configuration that was checked, or that is being run."""
    return ConfigParser(dict(config))
