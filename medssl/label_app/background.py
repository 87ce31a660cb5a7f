"""What of a request reaches training, scoring and batch inference: an allow-list, where MONAI Label starts them.

MONAI Label merges whatever JSON a request brings into one dictionary, from which it also takes folders to import from
(`bundle_path`) and an environment variable (`gpus`) of the processes it starts. Here only what medssl's tasks read is
passed on, so that it does not matter by which way anything else got in.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from monailabel.interfaces.utils.app import app_instance
from monailabel.utils.async_tasks import task as async_task
from monailabel.utils.async_tasks import utils as async_utils

from medssl.core.errors import DataError
from medssl.label_app.names import is_name
from medssl.label_app.tags import tag_of_prediction

_TAKEN = {
    "train": ("model", "max_epochs"),
    "scoring": ("method",),
    "batch_infer": ("model", "images", "labels", "save_label", "label_tag", "result_extension", "result_compress"),
}
_LISTS = ("images", "labels")
_GPUS = re.compile(r"all|\d{1,4}(,\d{1,4})*")  # becomes CUDA_VISIBLE_DEVICES
_start = async_utils.run_background_task


def is_gpus(value: Any) -> bool:
    """Whether it may name GPUs: 'all', numbers such as '0,1', or nothing."""
    return not value or (isinstance(value, str) and _GPUS.fullmatch(value) is not None)


def task_request(request: Mapping[str, Any], method: str) -> dict[str, Any]:
    """What a task (train, scoring or batch_infer) gets of a request: only what it reads, plain values and names.

    Raises DataError for a value that is no number, name or list of these, and for a tag that predictions do not get.
    """
    taken = {key: request[key] for key in _TAKEN[method] if request.get(key) is not None}
    for key, value in taken.items():
        if not all(map(_is_plain, value if key in _LISTS and isinstance(value, list) else [value])):
            raise DataError(f"{key}: expected a number or a name of 1 to 64 letters, digits, '.', '-' or '_'.")
    if method == "batch_infer":
        tag_of_prediction({**taken, "save_label": True})
    if gpus := request.get("gpus"):
        if not is_gpus(gpus):
            raise DataError("gpus: expected 'all' or numbers such as '0,1'.")
        taken["gpus"] = gpus
    return taken


def start_task(
    request: Mapping[str, Any], method: str, callback: Callable | None = None, debug: bool = False
) -> dict[str, Any]:
    """Start the process of a task as MONAI Label does, with what task_request leaves of the request."""
    return _start(task_request(request, method), method, callback, debug)


def guard_tasks(train: Any, scoring: Any) -> None:
    """Let every task of MONAI Label's endpoints be started by start_task, whatever its request was made from.

    train, scoring: the modules of the endpoints that take parameters for each trainer or method by its name.
    """
    async_utils.run_background_task = async_task.run_background_task = start_task
    train.run, scoring.run = _for_each("trainers", train.run), _for_each("scoring", scoring.run)


def _is_plain(value: Any) -> bool:
    return is_name(value) if isinstance(value, str) else isinstance(value, bool | int | float)


def _for_each(kind: str, run: Callable) -> Callable:
    """`run` of all of a kind; what it is told of one of them must be a JSON object, or DataError."""

    def checked(params: dict[str, Any] | None = None, run_sync: bool | None = False) -> dict[str, Any]:
        for name in app_instance().info()[kind]:
            if not isinstance((params or {}).get(name) or {}, dict):
                raise DataError(f"{name}: expected a JSON object with its parameters.")
        return run(params, run_sync)

    return checked
