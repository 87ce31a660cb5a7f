"""Prediction of scans."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from medssl.cli.app import EXIT_SOME_FAILED, app, console, say
from medssl.cli.shared_options import Samples, Stride, Trust
from medssl.cli.values import numbers_of
from medssl.core.bundle_folder import bundle_root
from medssl.core.errors import ConfigError
from medssl.core.prediction_options import checked_sampling, parse_shard
from medssl.core.progress import work


@app.command()
def predict(
    scans: Annotated[Path, typer.Argument(help="A scan, a folder of scans, or a DICOM series.")],
    output: Annotated[Path, typer.Argument(help="Folder for the results: <id>_seg, _prob and _entropy .nii.gz.")],
    bundle: Annotated[Path, typer.Option(help="A trained bundle, or the folder of a finished run.")],
    samples: Samples = None,
    shard: Annotated[str, typer.Option(help="i/n: predict only every n-th scan, starting with the i-th.")] = "1/1",
    mode: Annotated[
        str | None, typer.Option(help="How samples are drawn: fast, exact or reference; default: as trained.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="What computes: eager, compile, openvino or int8; default: as trained.")
    ] = None,
    stride: Stride = "",
    probabilities: Annotated[bool, typer.Option(help="Write the probabilities, _prob .nii.gz, too.")] = True,
    dicom: Annotated[
        bool, typer.Option("--dicom", help="For DICOM series, write _seg, _entropy and _bands .dcm, too.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Segment scans and write maps of the uncertainty.

    The command skips finished scans. The exit code is 3 if a scan failed; failures.json gives the reasons.
    """
    steps = numbers_of(stride, "stride") if stride else None
    chosen = checked_sampling({"samples": samples, "mode": mode, "backend": backend, "stride": steps})
    parse_shard(shard)
    bundle_root(bundle)
    if not scans.exists() and ":" not in str(scans):
        raise ConfigError(f"{scans}: no such file or folder. Expected a scan, a folder of scans, or a DICOM series.")
    say(f"Predicting {scans} with {bundle} into {output} ...")
    with work("opening the network"):
        from medssl.core.distributed import local_device
        from medssl.data.layouts import scans_in
        from medssl.inference import PredictionEngine, load_predictor

        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        logging.getLogger("medssl").setLevel(logging.INFO)
        predictor = load_predictor(bundle, trust=trust, **chosen, device=str(local_device()))
        engine = PredictionEngine(predictor, scans_in(scans), output, shard, probabilities, dicom)
    engine.run()
    counts = f"{len(engine.finished)} predicted, {len(engine.skipped)} already there, {len(engine.failures)} failed"
    if engine.untried:
        counts += f", {engine.untried} not tried"
    console.print(f"{counts}; results in {output}")
    if engine.failures:
        for case, reason in engine.failures.items():
            say(f"{case}: {reason}")
        raise typer.Exit(EXIT_SOME_FAILED)
