"""Views of a patch that a method may ask for."""

from collections.abc import Sequence

from medssl.core.errors import ConfigError

VIEWS = ("plain", "weak", "strong")
PLAIN = ("plain",)


def checked_views(views: Sequence[str] | str) -> tuple[str, ...]:
    """The views asked for, one name or several; ConfigError for one that there is not."""
    asked = (views,) if isinstance(views, str) else tuple(views)
    for view in asked:
        if view not in VIEWS:
            raise ConfigError(f"views: '{view}' is unknown. Choose from {', '.join(VIEWS)}.")
    return asked
