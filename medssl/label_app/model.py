"""The model that is served: the bundle the server was started with, or what was trained from it since."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medssl.core.distributed import local_device
from medssl.core.errors import ConfigError
from medssl.core.files import write_text_atomically
from medssl.data.volumes import content_digest
from medssl.inference.predictor import Predictor, bundle_root, parse_bundle, require_weights
from medssl.label_app.names import checked_name
from medssl.label_app.workspace import Workspace


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A predictor and what its predictions depend on besides the scan."""

    bundle: Path
    predictor: Predictor
    settings: dict[str, Any]


@dataclass(eq=False)
class ServedModel:
    """Finds, loads and replaces the model of a workspace.

    Which bundle is in use stands in one small file that is replaced as a whole, so that a server and a training, which
    are two processes, never disagree; it is forgotten when the server is started with another bundle. trust: as in
    `load_predictor`, for all of them.
    """

    workspace: Workspace
    given: Path
    samples: int | None = None
    trust: bool = False
    _loaded: LoadedModel | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.given = trained_bundle(self.given)
        self._origin = content_digest(self.given / "models" / "model.pt")
        metadata = json.loads((self.given / "configs" / "metadata.json").read_text())
        self.name = checked_name(str(metadata.get("name", self.given.name)), f"{self.given}: name in metadata.json")

    @property
    def bundle(self) -> Path:
        """The bundle in use."""
        file = self.workspace.current_model
        if file.is_file():
            current = json.loads(file.read_text())
            bundle = self.workspace.root / current["bundle"]
            if current["origin"] == self._origin and (bundle / "models" / "model.pt").is_file():
                return bundle
        return self.given

    @property
    def structures(self) -> dict[int, str]:
        """Class to name; the same in every model that was trained from the given one."""
        facts = parse_bundle(self.given, trust=self.trust).get_parsed_content("facts")
        return dict(facts.target.structures)

    def load(self) -> LoadedModel:
        """The model in use, loaded once; raises CheckpointError and ConfigError as load_predictor."""
        with self._lock:
            bundle = self.bundle
            if self._loaded is None or self._loaded.bundle != bundle:
                self._loaded = self._load(bundle)
            return self._loaded

    def swap(self, bundle: Path) -> None:
        """Serve `bundle`, which lies in the workspace, from the next request on."""
        inside = bundle.resolve().relative_to(self.workspace.root.resolve())
        write_text_atomically(
            self.workspace.current_model, json.dumps({"bundle": str(inside), "origin": self._origin}, indent=1)
        )

    def _load(self, bundle: Path) -> LoadedModel:
        parser = parse_bundle(bundle, trust=self.trust, samples=self.samples, device=str(local_device()))
        predictor = parser.get_parsed_content("predictor")
        if not isinstance(predictor, Predictor):
            raise ConfigError(f"{bundle}: not a model of 3-D scans. Give a bundle such as bundles/gbdl, trained.")
        return LoadedModel(bundle, predictor, predictor.settings())


def trained_bundle(path: Path) -> Path:
    """The bundle of a model of scans at `path`, a bundle or a run with one.

    Raises ConfigError where there is none, CheckpointError if it has no trained weights.
    """
    root = bundle_root(path)
    if "data_facts" not in json.loads((root / "configs" / "inference.json").read_text()):
        raise ConfigError(f"{root}: not a model of 3-D scans. Give a bundle such as bundles/gbdl, trained.")
    require_weights(root)
    return root
