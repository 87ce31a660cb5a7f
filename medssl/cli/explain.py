"""What the keys of bundles mean."""

from typing import Annotated

import typer

from medssl.cli.app import app


@app.command()
def explain(
    key: Annotated[str, typer.Argument(help="A key of a bundle, e.g. labelled.")],
    bundle: Annotated[
        str | None, typer.Option(help="Only this bundle: its name, or the folder of a copy; default: all.")
    ] = None,
) -> None:
    """Say what a key of a bundle means.

    Its default, its limits and the bundles that have it are printed, too.
    """
    from medssl.core.key_facts import explanation, find_key, key_facts
    from medssl.core.stock_command import bundle_name, find_bundle

    folder = None if bundle is None else find_bundle(bundle)
    facts = key_facts(None if folder is None else {bundle_name(folder): folder})
    typer.echo(explanation(find_key(key, facts)))
