"""What splits of pictures and of scenes have in common: four roles, and a hash that names the choice."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from medssl.core.errors import ConfigError, DataError
from medssl.core.files import write_text_atomically
from medssl.core.stored_paths import WRITTEN, located, places_of_writing, tried_places
from medssl.data.split import ROLES, SHOWN_PLACES, require_same_split


class Named(Protocol):
    """A collection whose members have ids."""

    @property
    def ids(self) -> list[str]: ...

    def __len__(self) -> int: ...

    def without_label(self) -> list[str]: ...


Members = TypeVar("Members", bound=Named)


@dataclass(frozen=True)
class RoleSplit(ABC, Generic[Members]):
    """Members of every role, and where they came from."""

    labelled: Members
    unlabelled: Members
    validation: Members
    test: Members
    origin: dict[str, Any]

    def role(self, name: str) -> Members:
        """The members of a role: labelled, unlabelled, validation or test."""
        if name not in ROLES:
            raise ConfigError(f"role '{name}' is unknown. Known: {', '.join(ROLES)}.")
        return getattr(self, name)

    def without_label(self, role: str) -> list[str]:
        """The ids of the members of a role that have no label."""
        return self.role(role).without_label()

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(self.role(name)) for name in ROLES}

    @property
    def hash(self) -> str:
        """First 16 hex digits of the SHA-256 over the ids of every role."""
        ids = [self.origin["dataset"], *(self.role(name).ids for name in ROLES)]
        return hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What a file must hold beside hash, counts and origin so that the split can be read again."""

    def write(self, path: str | Path) -> None:
        """Write the split as JSON; ConfigError if the file holds another one (a run must not change its data)."""
        if Path(path).is_file():
            require_same_split(path, read_content(path)["hash"], self.hash)
            return
        written = places_of_writing(Path(path).parent)
        content = {"hash": self.hash, "counts": self.counts, "origin": self.origin, WRITTEN: written, **self.content()}
        write_text_atomically(path, json.dumps(content, indent=1))


def read_content(path: str | Path, *needed: str) -> dict[str, Any]:
    """The content of a split file; DataError if it is none, or lacks what is `needed`."""
    try:
        content = json.loads(Path(path).read_text())
        if not {"hash", "origin", *needed} <= content.keys():
            raise ValueError("parts are missing")
    except (OSError, AttributeError, ValueError) as error:
        raise DataError(f"{path}: not a split file ({error}). Expected the split.json of a run.") from error
    return content


def found_again(path: str | Path, content: Mapping[str, Any], file: str) -> Path:
    """A file or folder that the split at `path` names, where it is now; DataError where it is nowhere."""
    folder, written = Path(path).parent, content.get(WRITTEN)
    place = Path(located(file, folder, written))
    if not place.exists():
        tried = ", ".join(tried_places(file, folder, written)[:SHOWN_PLACES])
        raise DataError(
            f"{path}: {file} is not there. Tried: {tried}. Put the data set back to one of these places, or a link to "
            "it."
        )
    return place
