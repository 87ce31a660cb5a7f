"""Commands about data: check it, make phantoms."""

from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import EXIT_BAD_DATA, app, console
from medssl.core.progress import work


@app.command("check-data")
def check_data(
    folder: Annotated[Path, typer.Argument(help="The data set's folder, or any folder with images/ and labels/.")],
    dataset_name: Annotated[str, typer.Option(help="Name of the data set; its label ids are checked, too.")] = "folder",
) -> None:
    """Check every scan and label of a folder.

    The command lists what is wrong. The exit code is 1 if there are errors.
    """
    console.print(f"Checking every scan and label in {folder}.", highlight=False, markup=False, soft_wrap=True)
    with work("loading libraries"):
        from medssl.data.dataset_check import check_folder
        from medssl.data.datasets import dataset_facts
        from medssl.data.findings import counts_text, findings_text

    cases, findings = check_folder(dataset_facts(dataset_name), folder)
    if findings:
        console.print(findings_text(findings), soft_wrap=True, end="")
    labelled = sum("label" in case for case in cases)
    console.print(f"{len(cases)} scans, {labelled} with a label, {counts_text(findings)}.")
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(EXIT_BAD_DATA)


@app.command()
def phantom(
    folder: Annotated[Path, typer.Argument(help="Folder that the scans are written to.")],
    count: Annotated[int, typer.Option(help="Number of scans.")] = 40,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same files.")] = 0,
    modality: Annotated[str, typer.Option(help="Kind of scan: ct or mr.")] = "ct",
) -> None:
    """Make phantom scans with labels, to try things on."""
    from medssl.data.phantom import write_phantoms

    ids = write_phantoms(folder, count, seed, modality)
    console.print(f"{len(ids)} scans in {folder}")
