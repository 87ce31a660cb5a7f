"""OHIF's "Export DICOM SEG" and "Download DICOM SEG", made to work with the OHIF that MONAI Label 0.8.5 ships.

Its export forgets where to store; and what it writes is a mirror image wherever the slices are shown in another order
than that of the DICOM SEG, which is against the normal of the slices. One of OHIF's files is therefore served with
three lines changed: slices are put in order, where no data source is given the active one is taken, and the window says
whether the archive has the file. The shipped file itself stays as it is.
"""

import logging
from pathlib import Path

from fastapi import APIRouter, Depends
from fastapi.responses import Response
from monailabel.config import settings
from monailabel.endpoints.user.auth import RBAC

_CHANGES = {
    "const segImages = imageIds.map(imageId => esm.cache.getImage(imageId));": (
        "const alongNormal = image => {\n"
        "        const plane = esm.metaData.get('imagePlaneModule', image.referencedImageId);\n"
        "        const [a, b, c] = plane.rowCosines, [d, e, f] = plane.columnCosines;\n"
        "        const [x, y, z] = plane.imagePositionPatient;\n"
        "        return (b * f - c * e) * x + (c * d - a * f) * y + (a * e - b * d) * z;\n"
        "      };\n"
        "      const segImages = imageIds.map(imageId => esm.cache.getImage(imageId));\n"
        "      segImages.sort((one, other) => alongNormal(other) - alongNormal(one));"
    ),
    # the arguments of the command, which its caller gives the first of
    "storeSegmentation: async ({\n      segmentationId,\n      dataSource\n    })": (
        "storeSegmentation: async ({\n      segmentationId,\n"
        "      dataSource = extensionManager.getActiveDataSource()[0]\n    })"
    ),
    "await dataSource.store.dicom(naturalizedReport);": (
        "const tell = (type, message) =>"
        " servicesManager.services.uiNotificationService.show({ title: 'Export DICOM SEG', message, type });\n"
        "      try {\n        await dataSource.store.dicom(naturalizedReport);\n"
        "        tell('success', 'The archive has it.');\n"
        "      } catch (error) {\n        tell('error', 'The archive does not take it.');\n"
        "        throw error;\n      }"
    ),
}
logger = logging.getLogger(__name__)


def with_export(script: bytes) -> bytes | None:
    """A file of OHIF with the changes; None where one of the places is not there, or there twice."""
    if any(script.count(shipped.encode()) != 1 for shipped in _CHANGES):
        return None
    for shipped, changed in _CHANGES.items():
        script = script.replace(shipped.encode(), changed.encode())
    return script


def export_routes(ohif: Path) -> APIRouter:
    """The route of the one file in OHIF's folder that exports; without such a file none, and a line in the log."""
    router = APIRouter()
    files = {file.name: with_export(file.read_bytes()) for file in ohif.glob("*.bundle.*.js")}
    changed = [(name, script) for name, script in files.items() if script is not None]
    if len(changed) != 1:
        logger.warning("OHIF's Export DICOM SEG is not available: its files are not those of MONAI Label 0.8.5.")
        return router
    name, script = changed[0]

    def send() -> Response:
        return Response(script, media_type="text/javascript", headers={"cache-control": "no-cache"})

    users = [Depends(RBAC(settings.MONAI_LABEL_AUTH_ROLE_USER))]
    router.add_api_route(f"/ohif/{name}", send, dependencies=users, include_in_schema=False)
    return router
