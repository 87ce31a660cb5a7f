"""Yes or no from the command line: `python -m monai.bundle` hands `--resume true` on as the text "true"."""

from medssl.core.errors import ConfigError

KNOWN = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def flag(value: bool | str, name: str) -> bool:
    """`value` as True or False; ConfigError names the key if it is neither."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in KNOWN:
        raise ConfigError(f"{name} '{value}': expected true or false.")
    return KNOWN[text]
