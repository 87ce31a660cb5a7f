"""What is checked of every HTTP request before MONAI Label sees it, and what becomes of errors."""

import json
import logging
import re
from collections.abc import Iterator
from email.message import Message
from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import urlsplit

import requests
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from monailabel.interfaces.exception import ImageNotFoundException, LabelNotFoundException, MONAILabelException
from starlette.datastructures import UploadFile

from medssl.core.errors import MedsslError
from medssl.label_app.background import is_gpus
from medssl.label_app.datastore import FACTS
from medssl.label_app.names import is_name, is_plain_path

_NAMES = {"image", "images", "label", "label_tag", "id", "tag", "model", "strategy", "method", "session_id", "session"}
# MONAI Label lets the processes it starts import what lies in the one; the others are what medssl knows of a study
_REFUSED = re.compile(rf"bundle_path|{FACTS}(:.*)?")
# scans and labels, OHIF's plain voxels (.bin), and the names that DICOM files have: no suffix, or the end of a UID
_UPLOADED = re.compile(r".*\.(nii|nii\.gz|nrrd|mha|bin|dcm|ima|\d+)|[^.]+", re.IGNORECASE)
MOST_LEVELS = 20  # of lists and objects in JSON
logger = logging.getLogger(__name__)


async def check_request(request: Request) -> None:
    """Refuse, with 400, names that could leave a folder: in the path, the query, forms, JSON and names of files.

    Refused, too, is what would reach the environment of the processes that MONAI Label starts (see `background`, which
    is where it ends in any case), or medssl's own facts, at any depth of JSON; and files that are neither scan nor
    label. Of the path that 3D Slicer sends as the name of a file the last part is kept, the rest forgotten. Requests
    that a page of another site makes a browser send are refused with 403.
    """
    _refuse_foreign_page(request)
    for name, value in request.path_params.items():
        _require(is_plain_path(value) if name == "path" else is_name(value), name)
    for name, value in request.query_params.multi_items():
        _require(name not in _NAMES or not value or is_name(value), name)
        if name == "uncompress" and value.lower() not in ("", "0", "false", "no", "off", "f", "n"):
            raise HTTPException(400, "uncompress: archives may hold paths that leave the folder; send files")
    for name, field in (await request.form()).multi_items():  # none unless the request is a form
        _check_field(name, field)
    if _is_json(request.headers.get("content-type", "")):
        body = await request.body()
        if body.strip() not in (b"", b"null"):
            _check_json(body)


def _is_json(content_type: str) -> bool:
    """Whether FastAPI may read the body as JSON: it looks at types in any case, and takes some that end in +json."""
    message = Message()
    message["content-type"] = content_type or "application/json"
    return re.fullmatch(r"application/(.*\+)?json", message.get_content_type()) is not None


def _check_field(name: str, field: UploadFile | str) -> None:
    if isinstance(field, UploadFile):
        file = field.filename = PureWindowsPath(field.filename or "").name  # which knows both / and \
        _require(file.isprintable() and len(file) <= 255 and not set(file) & set("/\\%:") and ".." not in file, name)
        if not _UPLOADED.fullmatch(file):
            raise HTTPException(400, f"{name}: expected a scan or a label, such as .nii.gz, .nrrd, .mha or .dcm")
    elif name in ("params", "info", "wsi"):
        _check_json(field)
    else:
        _require(name not in _NAMES or not field or is_name(field), name)


def _check_json(text: str | bytes) -> None:
    try:
        content = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise HTTPException(400, "expected JSON") from None
    if not isinstance(content, dict):
        raise HTTPException(400, "expected a JSON object")
    if not _can_be_stored(content):
        raise HTTPException(400, f"expected JSON of at most {MOST_LEVELS} levels, with text that is Unicode")
    for part in (content, *(value for value in content.values() if isinstance(value, dict))):
        for name, value in _named_values(part):
            _require(not isinstance(value, str) or not value or is_name(value), name)
    for name, value in _all_pairs(content):
        if _REFUSED.fullmatch(name):
            raise HTTPException(400, f"{name[:64]}: is the server's own, not taken from requests. Leave it out.")
        if name == "gpus" and not is_gpus(value):
            raise HTTPException(400, "gpus: expected 'all' or numbers such as '0,1'")


def _can_be_stored(content: Any) -> bool:
    """Whether what is written of it as JSON can be read again: no half of a character, not too many levels."""
    waiting = [(content, 1)]
    while waiting:
        part, level = waiting.pop()
        if level > MOST_LEVELS:
            return False
        if isinstance(part, str):
            if any("\ud800" <= character <= "\udfff" for character in part):
                return False
        elif isinstance(part, dict | list):
            inside = [*part.keys(), *part.values()] if isinstance(part, dict) else part
            waiting += [(inner, level + 1) for inner in inside]
    return True


def _named_values(content: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What JSON says of the keys that name something."""
    for key, value in content.items():
        if key in _NAMES:
            yield from ((key, part) for part in (value if isinstance(value, list) else [value]))


def _all_pairs(content: Any) -> Iterator[tuple[str, Any]]:
    """Every key with its value, at any depth; lists of a text and something else, too: Python makes a dict of these."""
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part.items()
            waiting += part.values()
        elif isinstance(part, list):
            if len(part) == 2 and isinstance(part[0], str):
                yield part[0], part[1]
            waiting += part


def _require(is_fine: bool, name: str) -> None:
    if not is_fine:
        raise HTTPException(400, f"{name}: expected 1 to 64 letters, digits, '.', '-' or '_'")


def _refuse_foreign_page(request: Request) -> None:
    origin = request.headers.get("origin")
    allowed = {request.headers.get("host"), *getattr(request.app.state, "origins", ())}
    if origin and urlsplit(origin).netloc not in allowed:
        raise HTTPException(403, "a page of another site; name it in MONAI_LABEL_CORS_ORIGINS")


async def explain(request: Request, error: Exception) -> JSONResponse:
    """An error a client can do something about, as JSON with a fitting status."""
    if isinstance(error, ImageNotFoundException | LabelNotFoundException):
        return JSONResponse({"detail": error.msg}, 404)
    if isinstance(error, MONAILabelException):
        return JSONResponse({"detail": error.msg}, 400)
    if isinstance(error, requests.RequestException):
        logger.warning("The archive does not answer (%s)", type(error).__name__)
        return JSONResponse({"detail": "the DICOMweb archive does not answer, or not as it should"}, 502)
    return JSONResponse({"detail": str(error)}, 422)


EXPLAINED = (MONAILabelException, MedsslError, requests.RequestException)
