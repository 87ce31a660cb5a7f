"""Yes or no from the command line: `python -m monai.bundle` hands `--resume true` on as the text "true"."""

from medssl.core.errors import ConfigError


def flag(value: bool | str, name: str) -> bool:
    """`value` as True or False; ConfigError names the key if it is neither."""
    if isinstance(value, bool):
        return value
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).strip().lower() not in known:
        raise ConfigError(f"{name} '{value}': expected true or false.")
    return known[str(value).strip().lower()]
