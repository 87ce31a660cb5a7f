"""Int8 graphs as `medssl quantise` stores them beside a network's weights: used only with their measured loss."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from medssl.core.errors import ConfigError
from medssl.core.files import write_text_atomically
from medssl.data.volumes import content_digest
from medssl.inference.backends.openvino import OpenVINOBackend, import_openvino
from medssl.networks.weights import weights_digest

GRAPHS = ("encoder", "decoder")
FILES = tuple(f"{graph}.{suffix}" for graph in GRAPHS for suffix in ("xml", "bin"))
RECORD = "quantised.json"
WAY_OUT = "Run 'medssl quantise RUN' on the run they belong to, or use --backend openvino."


@dataclass(frozen=True)
class StoredGraphs:
    """The graphs in `folder` and the record of what they were made from and what they lose.

    record: `weights` and `window` they are for, `files` with a digest of each, `calibration`, and `measured`: means
    over the cases of `role` of Dice and PAvPU, their differences from float32, and the correlation of the entropies.
    """

    folder: Path
    record: dict[str, Any]

    @property
    def digest(self) -> str:
        """16 hex digits that change with the graphs."""
        return hashlib.sha256(json.dumps(self.record["files"], sort_keys=True).encode()).hexdigest()[:16]

    def measured_loss(self) -> str:
        """One line: how far Dice and uncertainty are from float32, and on which cases that was measured."""
        measured = self.record["measured"]
        return (
            f"int8: on {measured['cases']} {measured['role']} cases (T = {measured['samples']}) "
            f"Dice {measured['dice']:.4f}, {measured['dice_difference']:+.4f} from float32; "
            f"PAvPU {measured['pavpu']:.4f}, {measured['pavpu_difference']:+.4f}; "
            f"entropy correlation {measured['entropy_correlation']:.4f}"
        )

    def require_for(self, network: nn.Module, window: Sequence[int]) -> None:
        """ConfigError unless these are the unchanged graphs of `network` for windows of this size."""
        asked = {"weights": weights_digest(network), "window": list(window)}
        for name, wanted in asked.items():
            if self.record[name] != wanted:
                raise ConfigError(
                    f"{self.folder / RECORD}: made for {name} {self.record[name]}, the network has {wanted}. {WAY_OUT}"
                )
        for name, digest in self.record["files"].items():
            if not (self.folder / name).is_file() or content_digest(self.folder / name) != digest:
                raise ConfigError(f"{self.folder / name}: not the graph that was measured. {WAY_OUT}")


class Int8Backend(OpenVINOBackend):
    """Passes by the graphs beside the weights in `models_dir`; prints their measured loss, as every use of them must.

    ConfigError unless there are graphs of this network for windows of this size.
    """

    def __init__(self, network: nn.Module, window: Sequence[int], models_dir: str | Path | None) -> None:
        self.graphs = read_record(models_dir)
        self.graphs.require_for(network, window)
        super().__init__(network, *read_models(self.graphs.folder))
        print(self.graphs.measured_loss(), flush=True)


def int8_folder(models_dir: str | Path) -> Path:
    """Where the int8 graphs of the weights in `models_dir` lie."""
    return Path(models_dir) / "int8"


def read_record(models_dir: str | Path | None) -> StoredGraphs:
    """The record of the graphs beside the weights in `models_dir`; ConfigError if there is none."""
    if models_dir is None:
        raise ConfigError("backend 'int8': predicts with graphs of a finished run only. Train with another back end.")
    path = int8_folder(models_dir) / RECORD
    try:
        graphs = StoredGraphs(path.parent, json.loads(path.read_text()))
        graphs.measured_loss()
        if set(graphs.record["files"]) != set(FILES) or not {"weights", "window"} <= set(graphs.record):
            raise ValueError(f"expected weights, window and files {', '.join(FILES)}")
        return graphs
    except FileNotFoundError:
        raise ConfigError(f"{path}: no int8 graphs of these weights. {WAY_OUT}") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: not a record of int8 graphs ({type(error).__name__}: {error}). {WAY_OUT}"
        ) from error


def write_models(encoder: Any, decoder: Any, folder: Path) -> dict[str, str]:
    """Store both graphs in `folder`, without a record; returns a digest of each file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)  # until these are measured, too, nobody may use them
    for graph, model in zip(GRAPHS, (encoder, decoder), strict=True):
        import_openvino().save_model(model, folder / f"{graph}.xml", compress_to_fp16=False)
    return {name: content_digest(folder / name) for name in FILES}


def read_models(folder: Path) -> tuple[Any, Any]:
    """Encoder and decoder as stored in `folder`."""
    core = import_openvino().Core()
    return core.read_model(folder / "encoder.xml"), core.read_model(folder / "decoder.xml")


def write_record(graphs: StoredGraphs) -> None:
    """Write the record: from then on the graphs may be used."""
    write_text_atomically(graphs.folder / RECORD, json.dumps(graphs.record, indent=1))
