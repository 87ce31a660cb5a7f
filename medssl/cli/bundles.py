"""Commands about bundles: which there are, and whether one could do harm."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import EXIT_BAD_DATA, app, console, say
from medssl.core.errors import ConfigError
from medssl.core.progress import work


@app.command()
def bundles(
    path: Annotated[str | None, typer.Option(metavar="NAME", help="Print only the path of this bundle.")] = None,
    copy: Annotated[
        tuple[str, Path] | None,
        typer.Option(metavar="NAME FOLDER", help="Copy a bundle to a new folder, where you can edit it."),
    ] = None,
) -> None:
    """List the bundles that come with medssl, or copy one."""
    from medssl.core.shipped_bundles import bundle_path, bundles_table, copy_bundle

    if path is not None and copy is not None:
        raise ConfigError("--path and --copy: only one at a time. Give one of them.")
    if path is not None:
        typer.echo(bundle_path(path))
    elif copy is not None:
        target = copy_bundle(*copy)
        say(f"{copy[0]} is in {target}. Train it: medssl train {target}")
    else:
        console.print(bundles_table())


@app.command("check-bundle")
def check_bundle(
    folder: Annotated[Path, typer.Argument(help="The folder of a bundle or of a run.")],
) -> None:
    """List what in a bundle could do harm.

    The configurations are read, not run. The exit code is 1 if there is a finding.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder. Expected the folder of a bundle or of a run.")
    say(f"Checking {folder}.")
    with work("opening MONAI's names"):
        from medssl.security import check_bundle as findings_of

        findings = findings_of(folder)
    for finding in findings:
        say(finding)
    say(f"{len(findings)} finding{'' if len(findings) == 1 else 's'} in {folder}.")
    if findings:
        raise typer.Exit(EXIT_BAD_DATA)
