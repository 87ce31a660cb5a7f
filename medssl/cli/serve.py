"""Commands that serve: studies to MONAI Label, runs to a browser."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import app, console, say
from medssl.cli.shared_options import Samples, Trust
from medssl.core.prediction_options import checked_sampling
from medssl.core.progress import work


@app.command()
def label(
    studies: Annotated[str, typer.Option(help="A folder of scans or DICOM series, or a DICOMweb archive's address.")],
    bundle: Annotated[
        Path | None, typer.Option(help="A trained bundle, or the folder of a run; default: the newest run.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address of the server; one other than 127.0.0.1 needs MONAI Label's sign-on.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 8000,
    samples: Samples = None,
    strategy: Annotated[
        str, typer.Option(help="Which study is offered first: uncertain, structure or random.")
    ] = "uncertain",
    search_filter: Annotated[
        str | None, typer.Option(help="Modality of the DICOM series to serve, e.g. MR; default: the model's.")
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(help="Folder for models and logs; default: .medssl_label in the studies, or runs/label."),
    ] = None,
    proposals: Annotated[
        bool,
        typer.Option(
            "--proposals",
            help="Store each segmentation in the archive as a DICOM SEG, so that OHIF can correct it. "
            "DICOMweb cannot delete: remove these files in the archive yourself.",
        ),
    ] = False,
    trust: Trust = False,
) -> None:
    """Serve studies to viewers with MONAI Label.

    The server segments studies, shows the uncertainty and offers the most uncertain study first. The network can be
    trained on what was reviewed.
    """
    checked_sampling({"samples": samples})
    say(f"Opening MONAI Label for {studies}.")
    with work("opening MONAI Label"):
        from medssl.label_app.launch import LabelServer

        server = LabelServer(
            studies, bundle, host, port, samples, strategy, search_filter, workspace, proposals=proposals, trust=trust
        )
    server.serve()


@app.command()
def ui(
    runs_dir: Annotated[Path, typer.Option(help="Folder of the runs; it holds mlflow.db.")] = Path("runs"),
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
