"""Writing files so that a reader never meets half of one, and folders so that two writers never meet."""

import errno
import fcntl
import os
import secrets
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO

from medssl.core.errors import ConfigError, DiskFullError


def write_atomically(path: str | Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it into place; on failure `path` is untouched."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        temporary.touch(exist_ok=False)
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8, all of it or nothing."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: str | Path, content: bytes) -> None:
    """Write `content`, all of it or nothing."""

    def write(partial: Path) -> None:
        partial.write_bytes(content)

    write_atomically(path, write)


@contextmanager
def written_together(folder: str | Path, name: str) -> Iterator[Path]:
    """Gives an empty folder for files that appear in `folder` together, or not at all; records (.json) come last.

    name: of what they belong to; it begins the name of the hidden folder beside them. Raises MedsslError, which says
    how much is free, where the disk is full.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    staging = target / f".{name[:40]}.{secrets.token_hex(8)}.part"
    made = []
    try:
        staging.mkdir()
        yield staging
        for file in sorted(staging.iterdir(), key=lambda path: (path.suffix == ".json", path.name)):
            file.replace(target / file.name)
            made.append(target / file.name)
    except OSError as error:
        for file in made:
            file.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        free_mb = shutil.disk_usage(target).free / 1e6
        raise DiskFullError(
            f"{target}: no space left for the files of {name} ({free_mb:.0f} MB are free on that disk). None of them "
            "was written. Free disk space, or choose another folder, and start again: what is finished is kept."
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


class FolderLock:
    """Keeps a second process out of a folder until `close`, the end of a `with` block, or the process's end."""

    def __init__(self, folder: str | Path, name: str = ".lock") -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = (self.folder / name).open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            raise ConfigError(
                f"{self.folder}: another process (pid {holder}) works on this folder. Wait for it, or use another."
            ) from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()
        # a forked worker that outlives this process must not go on holding the lock
        os.register_at_fork(after_in_child=partial(_close_if_there, weakref.ref(self._file)))

    def close(self) -> None:
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _close_if_there(held: "weakref.ref[IO[str]]") -> None:
    file = held()
    if file is not None:
        file.close()
