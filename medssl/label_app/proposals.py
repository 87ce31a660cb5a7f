"""What the model proposes, as DICOM SEG files in the archive, so that OHIF has something to correct.

DICOMweb can store and not delete: a proposal stays until somebody removes it in the archive itself.
"""

import logging

import requests
from filelock import FileLock

from medssl.core.errors import MedsslError
from medssl.data.volumes import read_volume
from medssl.label_app.archive import ArchiveDatastore
from medssl.label_app.studies import Studies
from medssl.label_app.tags import SEGMENTATION

logger = logging.getLogger(__name__)


class Proposals:
    """Stores the segmentation of a study that a viewer asks for, once for each of the model's weights.

    Studies that are only scored get none.
    """

    def __init__(self, results: Studies, archive: ArchiveDatastore) -> None:
        self._results, self._archive = results, archive
        self._one_at_a_time = FileLock(results.model.workspace.root / "proposing.lock")

    def store(self, study: str) -> None:
        """Put the study's segmentation into the archive, unless it is there or shows no structure.

        One that cannot be stored costs the proposal, not the answer to the viewer: the log has a line.
        """
        try:
            segmentation = read_volume(self._results.result(study).segmentation)
            weights = str(self._archive.get_label_info(study, SEGMENTATION).get("weights", "unknown"))
            with self._one_at_a_time:
                self._archive.propose(study, segmentation, weights)
        except (MedsslError, requests.RequestException) as error:  # whose text may name a file, and so perhaps a person
            logger.warning("A proposal is not in the archive (%s)", type(error).__name__)
