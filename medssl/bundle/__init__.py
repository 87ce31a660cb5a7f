"""What a bundle's train.json is made of: parts that do more, so that JSON holds choices and Python the wiring."""

from medssl.bundle.command import Command, current_command, run_bundle
from medssl.bundle.evaluation import ScanEvaluation
from medssl.bundle.gbdl import GBDLStages, second_trainer
from medssl.bundle.networks import prepared_network, scan_network
from medssl.bundle.root import bundle_root
from medssl.bundle.scan_data import ScanData, check_scans
from medssl.bundle.scans import begin, scan_method, scan_session
from medssl.bundle.stage import ScanSchedule, scan_trainer, scan_validator
from medssl.core.distributed import local_device, start_process_group, stop_process_group

__all__ = [
    "Command",
    "GBDLStages",
    "ScanData",
    "ScanEvaluation",
    "ScanSchedule",
    "begin",
    "bundle_root",
    "check_scans",
    "current_command",
    "local_device",
    "prepared_network",
    "run_bundle",
    "scan_method",
    "scan_network",
    "scan_session",
    "scan_trainer",
    "scan_validator",
    "second_trainer",
    "start_process_group",
    "stop_process_group",
]
