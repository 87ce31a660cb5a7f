"""Where the bundle that is being run lies."""

from medssl.bundle.command import current_command
from medssl.core.shipped_bundles import bundle_path


def bundle_root(name: str) -> str:
    """The folder of the bundle whose train.json is run: a copy of it, or the one that medssl ships under `name`."""
    command = current_command()
    folder = None if command is None else command.bundle_root
    if folder is not None and (folder / "configs" / "metadata.json").is_file():
        return str(folder)
    return str(bundle_path(name))
