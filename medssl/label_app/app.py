"""The app that MONAI Label loads: medssl's model, queue and training behind MONAI Label's endpoints."""

import contextlib
import logging
import threading
from pathlib import Path
from typing import Any

import psutil
from dicomweb_client.session_utils import create_session_from_user_pass
from monailabel.config import settings
from monailabel.datastore.dicom import DICOMwebClientX
from monailabel.interfaces.app import MONAILabelApp
from monailabel.interfaces.exception import MONAILabelError, MONAILabelException
from monailabel.utils.async_tasks.task import AsyncTask
from monailabel.utils.async_tasks.utils import background_executors

from medssl.core.errors import ConfigError, DataError
from medssl.core.flags import flag
from medssl.label_app.archive import ArchiveDatastore
from medssl.label_app.background import task_request
from medssl.label_app.datastore import StudyDatastore
from medssl.label_app.model import ServedModel
from medssl.label_app.names import is_name
from medssl.label_app.proposals import Proposals
from medssl.label_app.queue import BackgroundScoring, WaitingViewers
from medssl.label_app.recipe import find_recipe
from medssl.label_app.series_folder import FolderOfSeries
from medssl.label_app.studies import Studies
from medssl.label_app.tags import SEGMENTATION, tag_of_prediction
from medssl.label_app.tasks import (
    BandsOf,
    BatchPrediction,
    QueueStrategy,
    StudyInference,
    UncertaintyScoring,
    segmentation_of,
)
from medssl.label_app.training import ReviewTraining
from medssl.label_app.workspace import Workspace, is_address
from medssl.review.strategies import STRATEGIES
from medssl.uncertainty.ranking import BANDS

logger = logging.getLogger(__name__)


class ReviewApp(MONAILabelApp):
    """Serves one model of 3-D scans twice, as structures and as bands of uncertainty; see `medssl.label_app`.

    conf: `bundle`; `series` if the studies are a folder of DICOM series, which the workspace has a map of; `samples`,
    `strategy`, `seed` where they differ from the defaults; `proposals` if segmentations go into the archive; `trust` if
    the bundle may do harm.
    """

    def __init__(self, app_dir: str, studies: str, conf: dict[str, str]) -> None:
        self.workspace = Workspace(Path(app_dir))
        samples, trust = conf.get("samples"), flag(conf.get("trust", "false"), "trust")
        self.model = ServedModel(self.workspace, Path(conf["bundle"]), int(samples) if samples else None, trust)
        self.structures = self.model.structures
        self.viewers, self._seed = WaitingViewers(), int(conf.get("seed", 0))
        self._scoring: BackgroundScoring | None = None
        self._proposals: Proposals | None = None
        super().__init__(
            app_dir,
            studies,
            conf,
            name="medssl",
            description=f"{self.model.name}: segmentation with uncertainty. Research only, not a medical device.",
        )

    def init_datastore(self) -> StudyDatastore:
        """The folder of scans or of DICOM series, or the archive; only the server itself tidies it up."""
        read_only, structures = not is_server(), self.structures
        store: StudyDatastore
        if is_address(self.studies):
            client, wanted = _archive_client(self.studies.rstrip("/")), settings.MONAI_LABEL_DICOMWEB_SEARCH_FILTER
            store = ArchiveDatastore(client, wanted, self.workspace.archive_cache, structures, read_only)
        elif self.conf.get("series"):
            store = FolderOfSeries(self.workspace.series_map, self.workspace.series, structures, read_only)
        else:
            store = StudyDatastore(self.studies, structures, read_only)
        self.results = Studies(store, self.model)
        if self.conf.get("proposals") and isinstance(store, ArchiveDatastore):
            self._proposals = Proposals(self.results, store)
        return store

    def init_infers(self) -> dict[str, StudyInference]:
        uploads = self.workspace.temporary, self.workspace.sessions
        bands = BandsOf(1 + len(self.structures))
        texts = "Structures, from Monte Carlo samples", "Where the model is unsure: low, middle and high uncertainty"
        return {
            self.model.name: StudyInference(
                self.results, self.structures, texts[0], segmentation_of, uploads, self.viewers
            ),
            f"{self.model.name}_uncertainty": StudyInference(
                self.results, BANDS, texts[1], bands, uploads, self.viewers
            ),
        }

    def init_trainers(self) -> dict[str, ReviewTraining]:
        try:
            recipe = find_recipe(self.model.given, self.model.trust)
            return {self.model.name: ReviewTraining(self.model, recipe, self._seed)}
        except ConfigError as error:
            logger.warning("The model is served, but cannot be trained on. %s", error)
            return {}

    def init_strategies(self) -> dict[str, QueueStrategy]:
        first = self.conf.get("strategy", "uncertain")
        names = sorted(STRATEGIES, key=lambda name: name != first)  # viewers propose the first one
        return {name: QueueStrategy(self.results, name, self._seed) for name in names}

    def init_scoring_methods(self) -> dict[str, UncertaintyScoring]:
        return {"uncertainty": UncertaintyScoring(self.results)}

    def init_batch_infer(self) -> BatchPrediction:
        return BatchPrediction()

    def train(self, request: dict[str, Any]) -> dict[str, Any]:
        return super().train(task_request(request, "train"))

    def scoring(self, request: dict[str, Any], datastore: Any = None) -> dict[str, Any]:
        return super().scoring(task_request(request, "scoring"), datastore)

    def batch_infer(self, request: dict[str, Any], datastore: Any = None) -> dict[str, Any]:
        return super().batch_infer(task_request(request, "batch_infer"), datastore)

    def infer(self, request: dict[str, Any], datastore: Any = None) -> dict[str, Any]:
        """The label map as a temporary file, and its JSON; stored under `label_tag` as well with `save_label`.

        The structures of a study of an archive are proposed there, too, if the server was started for that.
        """
        task, tag = self._infers.get(str(request.get("model"))), tag_of_prediction(request)
        if task is None:
            raise MONAILabelException(MONAILabelError.INVALID_INPUT, "There is no model of this name")
        with self.viewers:  # also while the proposal is made, which needs the prediction again
            file, record = task(request)
            if self._proposals is not None and request["model"] == self.model.name and is_name(str(request["image"])):
                self._proposals.store(str(request["image"]))
        if tag is not None:
            self.datastore().save_label(request["image"], file, tag, {"model": request["model"]})
        return {"label": file, "tag": SEGMENTATION, "file": file, "params": record}

    def next_sample(self, request: dict[str, Any]) -> dict[str, Any]:
        """The study to review next, with the path of its scan if that can be read; {} if all are reviewed."""
        strategy = self._strategies.get(str(request.get("strategy")))
        if strategy is None:
            known = ", ".join(self._strategies)
            raise MONAILabelException(MONAILabelError.INVALID_INPUT, f"There is no such strategy; known: {known}")
        while True:
            study = strategy(request, self.datastore()) or {}
            if not study or "failure" in study:
                return study
            try:
                return {**study, "path": self.datastore().get_image_uri(study["id"])}
            except DataError as error:  # it comes last from now on
                self.results.note_failure(study["id"], str(error))

    def on_init_complete(self) -> None:
        """Begin to score; called in the server, not in the processes it starts."""
        super().on_init_complete()
        self._scoring = BackgroundScoring(self.results, self.viewers)
        self._scoring.start()

    def on_shutdown(self) -> None:
        """End what was started for a request; let the study that is being scored be finished, if that is soon."""
        stop_tasks()
        if self._scoring is not None:
            self._scoring.stop()


def stop_tasks() -> None:
    """End training, scoring and batch inference, which run in processes of their own, and forget queued ones."""
    for method in ("train", "scoring", "batch_infer"):
        if method in background_executors:
            background_executors[method].shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            AsyncTask.stop(method)


_server = threading.Event()


def this_is_the_server() -> None:
    """Say that this process serves; those it starts for a training or a scoring do not."""
    _server.set()


def is_server() -> bool:
    return _server.is_set()


def _archive_client(address: str) -> DICOMwebClientX:
    user, password = settings.MONAI_LABEL_DICOMWEB_USERNAME, settings.MONAI_LABEL_DICOMWEB_PASSWORD
    return DICOMwebClientX(
        url=address,
        session=create_session_from_user_pass(user, password) if user and password else None,
        qido_url_prefix=settings.MONAI_LABEL_QIDO_PREFIX,
        wado_url_prefix=settings.MONAI_LABEL_WADO_PREFIX,
        stow_url_prefix=settings.MONAI_LABEL_STOW_PREFIX,
    )
