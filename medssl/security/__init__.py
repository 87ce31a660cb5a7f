"""What a bundle would run, looked at before it runs: `check_bundle` reads its files and executes none of them.

MONAI calls any `_target_` and evaluates any `$` expression of a configuration, and logging.conf is evaluated too. A
bundle without findings names only classes and functions of `ALLOWED` and has expressions too simple to leave them. It
is still no stranger's code to run on patients' data without reading it.

`open_bundle_config` is the only way to a bundle's configuration: what has findings is refused unless it is trusted.
"""

from medssl.security.configs import check_config
from medssl.security.files import check_bundle
from medssl.security.gate import require_harmless, require_harmless_choices
from medssl.security.names import ALLOWED
from medssl.security.opening import open_bundle_config

__all__ = [
    "ALLOWED",
    "check_bundle",
    "check_config",
    "open_bundle_config",
    "require_harmless",
    "require_harmless_choices",
]
