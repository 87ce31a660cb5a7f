"""What a user reads when a command fails: one sentence, whatever it was wrapped in."""

import errno

import pytest

from medssl.core.errors import DataError
from medssl.core.failure_text import HOW_TO_DEBUG, failure_text, full_text


def wrapped(error: BaseException) -> RuntimeError:
    """`error` as MONAI hands it on."""
    try:
        try:
            raise error
        except BaseException as cause:
            raise RuntimeError("Failed to evaluate ConfigExpression:\n$@scans.check()") from cause
    except RuntimeError as outer:
        return outer


def test_an_error_of_medssl_is_its_own_text():
    assert failure_text(wrapped(DataError("scan.nii: 2-D."))) == "DataError: scan.nii: 2-D."


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (errno.EACCES, "Choose another folder, or ask for the right to write there."),
        (errno.EROFS, "Choose a folder that can be written."),
        (errno.ENOSPC, "Free disk space, then give the same command again."),
        (errno.ENOTDIR, "A part of this path is a file. Choose another folder."),
    ],
)
def test_an_error_of_the_disk_has_the_file_the_finding_and_a_way_out(number, way_out):
    error = wrapped(OSError(number, "Refused", "/data/out"))
    assert failure_text(error) == f"/data/out: Refused. {way_out} {HOW_TO_DEBUG}"


def test_any_other_error_is_its_innermost_cause_in_one_line():
    text = failure_text(wrapped(ZeroDivisionError("division by zero\nat some place")))
    assert text == f"ZeroDivisionError: division by zero. {HOW_TO_DEBUG}"
    assert failure_text(wrapped(ZeroDivisionError()), hint="") == "ZeroDivisionError: no further text."


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("CUDA out of memory. Tried to"), RuntimeError("DefaultCPUAllocator: can't allocate")],
)
def test_memory_that_ran_out_is_called_so(error):
    assert failure_text(wrapped(error)).startswith("Memory ran out. Give a smaller batch_size or patch_size.")


def test_ctrl_c_says_how_to_go_on():
    assert "goes on with --resume true" in failure_text(KeyboardInterrupt())
    told = KeyboardInterrupt("Stopped in epoch 3.")
    told.__cause__ = KeyboardInterrupt()
    assert failure_text(told) == "Stopped in epoch 3."


def test_full_text_is_the_traceback():
    text = full_text(wrapped(ZeroDivisionError("by zero")))
    assert text.startswith("Traceback") and "ZeroDivisionError: by zero" in text and "raise error" in text
