"""What the texts on a command line stand for."""

from medssl.core.errors import ConfigError


def pairs_of(extra: list[str]) -> tuple[tuple[str, str], ...]:
    if len(extra) % 2 or not all(key.startswith("--") for key in extra[::2]):
        raise ConfigError(f"{' '.join(extra)}: expected further keys of train.json as --key value pairs.")
    return tuple((key[2:], value) for key, value in zip(extra[::2], extra[1::2], strict=True))


def numbers_of(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"'{text}': expected whole numbers separated by commas, e.g. 4,16.") from None
