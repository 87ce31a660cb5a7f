"""What a bundle's train.json is made of: parts that do more, so that JSON holds choices and Python the wiring."""

from medssl.bundle.command import Command, current_command, run_bundle
from medssl.bundle.evaluating import begin_evaluation, require_cases, tell_evaluation
from medssl.bundle.gbdl import GBDLTraining
from medssl.bundle.root import bundle_root
from medssl.bundle.scan_data import ScanData, check_scans
from medssl.bundle.scans import begin_gbdl, begin_scans
from medssl.bundle.training import ScanTraining, trainer_of
from medssl.core.distributed import local_device, start_process_group, stop_process_group

__all__ = [
    "Command",
    "GBDLTraining",
    "ScanData",
    "ScanTraining",
    "begin_evaluation",
    "begin_gbdl",
    "begin_scans",
    "bundle_root",
    "check_scans",
    "current_command",
    "local_device",
    "require_cases",
    "run_bundle",
    "start_process_group",
    "stop_process_group",
    "tell_evaluation",
    "trainer_of",
]
