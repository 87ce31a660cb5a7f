"""The option that opens what check-bundle finds something in."""

from typing import Annotated

import typer

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Open a bundle even if check-bundle has findings; it may then run any code."),
]
