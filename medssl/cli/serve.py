"""Commands that serve: studies to MONAI Label, runs to a browser."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import app, console, say
from medssl.cli.trust import Trust


@app.command()
def label(
    studies: Annotated[str, typer.Option(help="A folder of scans or DICOM series, or a DICOMweb archive's address.")],
    bundle: Annotated[Path | None, typer.Option(help="Trained bundle or run's folder; default: newest run.")] = None,
    host: Annotated[str, typer.Option(help="Any other needs MONAI Label's sign-on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 8000,
    samples: Annotated[int | None, typer.Option(min=1, help="Monte Carlo samples; default: as trained.")] = None,
    strategy: Annotated[str, typer.Option(help="Proposed first: uncertain, structure or random.")] = "uncertain",
    search_filter: Annotated[str | None, typer.Option(help="Modality of the DICOM series, e.g. MR.")] = None,
    workspace: Annotated[Path | None, typer.Option(help="For models and logs; default: beside the studies.")] = None,
    proposals: Annotated[
        bool,
        typer.Option(
            "--proposals",
            help="Store each segmentation a viewer asks for in the archive, as a DICOM SEG that OHIF can correct. "
            "DICOMweb cannot delete: they stay until you remove them in the archive.",
        ),
    ] = False,
    trust: Trust = False,
) -> None:
    """Serve studies to viewers with MONAI Label.

    A viewer segments, shows the uncertainty and is given the most uncertain study first. The network learns from what
    was reviewed.
    """
    from medssl.label_app.launch import LabelServer

    server = LabelServer(
        studies, bundle, host, port, samples, strategy, search_filter, workspace, proposals=proposals, trust=trust
    )
    server.serve()


@app.command()
def ui(
    runs_dir: Annotated[Path, typer.Option(help="Folder of the runs, with mlflow.db.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 5000,
) -> None:
    """Show the runs in MLflow, on this machine only."""
    from medssl.core.mlflow_page import serve_page, tracking_store

    store = tracking_store(runs_dir)
    if store.startswith("http"):
        say(f"MLFLOW_TRACKING_URI names a server: open {store}")
        return
    say(f"Starting MLflow for {runs_dir}.")
    serve_page(store, port, lambda address: console.print(f"{address} shows the runs (Ctrl-C ends it)."))
