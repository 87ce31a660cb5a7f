"""What check-bundle finds is refused, unless the user trusts it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medssl.core.bundle_folder import bundle_folder
from medssl.core.errors import ConfigError
from medssl.core.flags import flag
from medssl.security.configs import check_config
from medssl.security.files import check_bundle

_SHOWN = 5


def require_harmless(folder: str | Path, trust: bool | str = False) -> None:
    """ConfigError with the findings about the bundle in `folder`, or in the run there; none if the user trusts it.

    trust: True or False, or a text that says so, as MONAI's command line hands it on.
    """
    if flag(trust, "trust"):
        return
    root = bundle_folder(folder)
    if not (root / "configs").is_dir():
        raise ConfigError(
            f"{root}: no bundle, it has no folder configs. Give a bundle, or the folder of a finished run."
        )
    refuse(root, check_bundle(root), f"'medssl check-bundle {root}' lists them. ")


def require_harmless_choices(file: str | Path, choices: Mapping[str, Any], trust: bool | str = False) -> None:
    """ConfigError with the findings about keys and values from `file`, which go on top of a bundle's configuration.

    They may hold paths, which are those of somebody's data.
    """
    if not flag(trust, "trust"):
        refuse(Path(file), check_config(dict(choices), with_paths=False))


def refuse(place: Path, findings: Sequence[str], more: str = "") -> None:
    """ConfigError that names the first findings about `place` and how to open it all the same; none without any."""
    if not findings:
        return
    listed = " ".join(f"({number}) {finding}" for number, finding in enumerate(findings[:_SHOWN], 1))
    rest = f" And {len(findings) - _SHOWN} more." if len(findings) > _SHOWN else ""
    raise ConfigError(
        f"{place}: not opened, it could do harm. Found: {listed}{rest} {more}"
        "--trust opens it all the same: then it can run any code."
    )
