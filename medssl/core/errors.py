"""The errors medssl raises on purpose. Each text names the file, what was found, what was expected and the way out."""


class MedsslError(Exception):
    """Base of every error a user of medssl can mend; the command line prints it without a traceback."""


class DataError(MedsslError):
    """A scan, a label or a split is not what it should be."""


class ConfigError(MedsslError):
    """A bundle's configuration or a command's arguments do not fit together."""


class CheckpointError(MedsslError):
    """A checkpoint is missing, damaged or belongs to another network."""


class DiskFullError(MedsslError):
    """There is no space left for what was to be written; nothing else can be written either."""


def error_behind(error: BaseException) -> MedsslError | None:
    """The medssl error that MONAI or Ignite wrapped into `error`, `error` itself if it is one, or None."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, MedsslError):
        cause = cause.__cause__
    return cause
