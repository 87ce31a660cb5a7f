"""Which study comes next, and the thread that gets the studies scored meanwhile."""

import logging
import threading
import traceback
from types import TracebackType
from typing import Any

from monailabel.interfaces.exception import MONAILabelException

from medssl.core.errors import DataError
from medssl.label_app.studies import Studies
from medssl.review.strategies import order

UNSCORED_EVERY = 4
LOOK_AGAIN_S = 5.0
logger = logging.getLogger(__name__)


def next_study(studies: Studies, strategy: str, seed: int = 0, structure: str | None = None) -> dict[str, Any] | None:
    """The study without a reviewed label that needs a human most: its `id`, `score` and more; None if none is left.

    A study that is not scored yet cannot be compared with the others: every fourth one offered (by the number of
    labels submitted) is of those, drawn by the seed, so that none waits for ever. What cannot be predicted comes last,
    with the reason. The answer follows from what is stored: it is the same after a restart, and until the study's label
    is submitted.
    """
    datastore = studies.datastore
    waiting = datastore.get_unlabeled_images()
    records = {name: record for name in waiting if (record := studies.record(name)) is not None}
    failures = {name: reason for name in waiting if (reason := studies.failure(name)) is not None}
    unscored = [name for name in waiting if name not in records and name not in failures]
    drawn = order([{"id": name} for name in unscored], "random", seed)
    if strategy == "random":
        ranked = order([{"id": name} for name in (*records, *unscored)], "random", seed)
    else:
        ranked = order(list(records.values()), strategy, seed, structure)
        turn_of_unscored = (len(datastore.get_labeled_images()) + 1) % UNSCORED_EVERY == 0
        ranked = [*drawn, *ranked] if turn_of_unscored else [*ranked, *drawn]
    ranked += sorted(failures)
    if not ranked:
        return None
    chosen = ranked[0]
    proposal: dict[str, Any] = {"id": chosen, "waiting": len(ranked), "unscored": len(unscored)}
    if chosen in records:
        proposal["score"] = records[chosen]["score"]
    if chosen in failures:
        proposal["failure"] = failures[chosen]
    return proposal


class WaitingViewers:
    """Counts the requests that wait for a prediction: `with viewers: ...`; true while there is one."""

    def __init__(self) -> None:
        self._count, self._lock = 0, threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._count -= 1

    def __bool__(self) -> bool:
        return self._count > 0


class BackgroundScoring(threading.Thread):
    """Predicts the studies that wait for a review and that the present model has not seen, one after another.

    New studies and new models are noticed within seconds. While a viewer waits for a prediction, no new one is begun.
    """

    def __init__(self, studies: Studies, viewers: WaitingViewers) -> None:
        super().__init__(name="scoring", daemon=True)
        self.studies, self.viewers, self._ended = studies, viewers, threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            if not self._score_one():
                self._ended.wait(0.1 if self.viewers else LOOK_AGAIN_S)

    def _score_one(self) -> bool:
        """Whether there was a study to score; false, too, where scoring makes no sense at the moment."""
        try:
            study = None if self.viewers else next_unscored(self.studies)
            if study is not None:
                self._score(study)
            return study is not None
        except Exception as error:  # the archive may be away, the model damaged: the thread outlives it
            # without the text of the error, which may name a study, and so perhaps a person
            places = "" if isinstance(error, OSError) else "".join(traceback.format_tb(error.__traceback__))
            logger.warning("Scoring waits (%s)\n%s", type(error).__name__, places)
            return False

    def _score(self, study: str) -> None:
        if not is_scored_now(self.studies, study):
            logger.warning("A study cannot be scored: it is offered last, with the reason.")

    def stop(self, timeout_s: float = 5.0) -> None:
        """End after the study that is being predicted; wait at most `timeout_s` for it."""
        self._ended.set()
        self.join(timeout_s)


def is_scored_now(studies: Studies, study: str) -> bool:
    """Predict a study; False if it cannot be predicted, which is noted, so that the next one has its turn."""
    try:
        studies.result(study)
    except DataError:
        return False
    except MONAILabelException:  # it is gone since it was listed, or is being moved
        studies.note_failure(study, "It cannot be found any more.")
        return False
    return True


def next_unscored(studies: Studies) -> str | None:
    """A study that the present model has neither predicted nor failed on; None if there is none."""
    studies.datastore.refresh()
    waiting = studies.datastore.get_unlabeled_images()
    return next((name for name in sorted(waiting) if not _is_scored(studies, name)), None)


def _is_scored(studies: Studies, name: str) -> bool:
    return studies.record(name) is not None or studies.failure(name) is not None
