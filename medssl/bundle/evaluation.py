"""After the last stage: the trained network is exported, tested, and the run is finished."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import nn

from medssl.bundle.command import current_command
from medssl.bundle.network_config import network_config
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import Session
from medssl.core.options import option
from medssl.core.prediction_options import SamplingOptions, stride_within
from medssl.core.progress import say
from medssl.inference.evaluation import Evaluation
from medssl.inference.export import export_bundle
from medssl.inference.mc_dropout import MCDropoutInferer
from medssl.inference.predictor import Predictor
from medssl.inference.scoring import ScoringOptions
from medssl.report.finish import finish_run


@dataclass(frozen=True)
class InferenceOptions(SamplingOptions):
    """How a trained network predicts."""

    metric_workers: int | None = option(
        None, "processes that compute metrics; 0: none; default: as many as make it faster", at_least=0, incidental=True
    )


def window_of(options: InferenceOptions, data: ScanData) -> tuple[int, ...]:
    """The size of the windows that scans are predicted in, in validation and in tests."""
    return tuple(options.window_size or data.patch_size)


def tell_stride(options: InferenceOptions, data: ScanData) -> None:
    """Say which stride is used where the user's command gives one that is longer than the window."""
    command = current_command()
    window = window_of(options, data)
    used = stride_within(options.stride, window)
    if command is not None and "stride" in command.keys and used != list(options.stride):
        say(f"stride {options.stride} is longer than the window {list(window)}: {used} is used")


class ScanEvaluation:
    """Exports and tests the network of a finished training on scans."""

    def __init__(
        self,
        network: nn.Module,
        data: ScanData,
        session: Session,
        bundle_root: str | Path,
        options: InferenceOptions,
        scoring: ScoringOptions,
    ) -> None:
        self.network, self.options, self.scoring = network, options, scoring
        self.data, self.session, self.bundle_root = data, session, bundle_root

    @cached_property
    def inferer(self) -> MCDropoutInferer:
        asked = self.options
        window = window_of(asked, self.data)
        return MCDropoutInferer(
            window=window,
            stride=stride_within(asked.stride, window),
            samples=asked.samples,
            window_batch=asked.window_batch,
            mode=asked.mode,
            backend=asked.backend,
        )

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor(self.network, self.data.pipeline, self.inferer, self.session.device, seed=self.session.seed)

    def run(self) -> None:
        """Export, test, finish."""
        definition = network_config(self.network, data=self.data)
        export_bundle(self.session.folder, self.bundle_root, self.predictor, definition)
        output = self.session.folder.path / "evaluation"
        cases = self.data.split.role("test")
        workers = self.options.metric_workers
        Evaluation(self.predictor, cases, output, metric_workers=workers, **self.scoring.settings()).run()
        finish_run(self.session.folder, self.session.tracker)
