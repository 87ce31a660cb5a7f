"""Keys whose value decides whether code runs, whoever reads them."""

import re
from typing import Any

from medssl.security.names import check_target

CLASS_KEYS = ("reader", "writer", "merger_cls")  # MONAI imports the class that they name
SWITCHES = ("_target_", "_mode_", "_debug_", "allow_pickle", "weights_only", "trust", "pretrained")
_KEY = re.compile(r"\+?(?:[\w\- ]*|\d+(?:\.\d+)*)")


def check_special_key(key: str, value: Any) -> str | None:
    """What is wrong with the value of a key that MONAI, or medssl, gives a meaning to."""
    if key == "_target_":
        return check_target(value)
    if key == "_mode_" and value != "default":
        return f"_mode_ {value!r}: only 'default' may be used."
    if key == "_debug_" and value is not False:
        return "starts a debugger."
    if key in CLASS_KEYS and isinstance(value, str) and not re.fullmatch(r"\w+", value):
        return f"{value!r}: MONAI would import and call it. Name a class of MONAI."
    if key.startswith("pretrained") and value is not False and value is not None:
        return f"{value!r}: MONAI would download or read weights. Expected false."
    return _check_switch(key, value)


def _check_switch(key: str, value: Any) -> str | None:
    if (key == "allow_pickle" and value is not False) or (key == "weights_only" and value is not True):
        return "lets a file run code when it is read."
    if key == "trust" and value is not False and value != "@trust":
        return "would open a bundle whatever is in it. Only who starts a command can trust a bundle."
    return None


def check_key_text(key: str) -> str | None:
    """What is wrong with a key itself: MONAI writes it into expressions and macros that have relative ids."""
    if all(_KEY.fullmatch(part) for part in re.split(r"#|::", key)):
        return None
    return "the key holds more than letters, digits, '_', '-' and spaces."
