"""The engine: one trainer for every method, and what surrounds it."""

from medssl.core.checkpoint import CheckpointStore, load_tensors, save_tensors
from medssl.core.distributed import local_device, start_process_group, stop_process_group
from medssl.core.run_folder import RunFolder, read_facts
from medssl.core.seeding import be_deterministic, seed_everything
from medssl.engine.explaining import explain_errors
from medssl.engine.handlers import KeepCheckpoints, RecordProgress, ShowProgress, TrainingHandlers
from medssl.engine.trainer import MethodTrainer, TrainingDiverged, place
from medssl.engine.validation import segmentation_validator

__all__ = [
    "CheckpointStore",
    "KeepCheckpoints",
    "MethodTrainer",
    "RecordProgress",
    "RunFolder",
    "ShowProgress",
    "TrainingDiverged",
    "TrainingHandlers",
    "be_deterministic",
    "explain_errors",
    "load_tensors",
    "local_device",
    "place",
    "read_facts",
    "save_tensors",
    "seed_everything",
    "segmentation_validator",
    "start_process_group",
    "stop_process_group",
]
