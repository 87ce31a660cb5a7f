"""What a user reads when a command fails: one sentence with the innermost cause, not MONAI's wrappers around it."""

import errno
import traceback

from medssl.core.errors import error_behind

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130  # 130: what a shell reports of a process that Ctrl-C ended
HOW_TO_DEBUG = "(--debug true shows where it happened)"
_OS_WAYS_OUT = {
    errno.EACCES: "Choose another folder, or ask for the right to write there.",
    errno.EPERM: "Choose another folder, or ask for the right to write there.",
    errno.EROFS: "Choose a folder that can be written.",
    errno.ENOSPC: "Free disk space, then give the same command again.",
    errno.EDQUOT: "Free disk space, then give the same command again.",
    errno.ENOTDIR: "A part of this path is a file. Choose another folder.",
    errno.EEXIST: "There is a file of this name. Choose another folder.",
    errno.EISDIR: "This is a folder. Give a file.",
    errno.ENOENT: "Check the path.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EMFILE: "Close other programs, or raise the limit with 'ulimit -n'.",
}


def failure_text(error: BaseException, hint: str = HOW_TO_DEBUG) -> str:
    """One sentence or two for the user: the text of an error of medssl, else the innermost cause in plain words.

    hint: stands behind an error that is none of medssl's, whose reason may lie anywhere.
    """
    known = error_behind(error)
    if known is not None:
        return f"{type(known).__name__}: {known}"
    if isinstance(error, KeyboardInterrupt):  # what it came from says less
        return interruption_text(error)
    cause = innermost_cause(error)
    if isinstance(cause, MemoryError) or "out of memory" in str(cause).lower() or "DefaultCPUAllocator" in str(cause):
        return f"Memory ran out. Give a smaller batch_size or patch_size. {hint}".rstrip()
    if isinstance(cause, OSError) and cause.errno is not None:
        return f"{_os_text(cause)} {hint}".rstrip()
    return f"{type(cause).__name__}: {_first_line(cause)} {hint}".rstrip()


def innermost_cause(error: BaseException) -> BaseException:
    """The error that all others were raised from; those that were handled before do not count."""
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return cause


def interruption_text(interrupt: KeyboardInterrupt) -> str:
    """What Ctrl-C left: as the training says it, else in general."""
    return str(interrupt) or (
        "Stopped by Ctrl-C. What is finished is kept: a run that has begun goes on with --resume true."
    )


def full_text(error: BaseException) -> str:
    """The whole traceback, for `--debug true`."""
    return "".join(traceback.format_exception(error)).rstrip()


def _os_text(error: OSError) -> str:
    """`/data/out: Permission denied. Choose another folder.`"""
    place = f"{error.filename}: " if error.filename else ""
    reason = error.strerror or type(error).__name__
    return f"{place}{reason}. {_OS_WAYS_OUT.get(error.errno or 0, 'Check the path and the disk.')}"


def _first_line(error: BaseException) -> str:
    """The first line of the error's text, with a full stop."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip() if lines else "no further text"
    return text if text.endswith((".", "!", "?")) else f"{text}."
