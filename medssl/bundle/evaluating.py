"""What every evaluate.json calls: its keys are checked first, and at its end it says what came of it."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from medssl.bundle.command import current_command
from medssl.bundle.key_check import check_command, is_expression
from medssl.bundle.session import SplitOfRun
from medssl.bundle.story import tell_end, tell_table
from medssl.core.distributed import require_device
from medssl.core.errors import ConfigError
from medssl.core.options import make_options, option
from medssl.core.progress import is_first_process, say
from medssl.data.split import ROLES
from medssl.engine.explaining import explain_errors
from medssl.inference.evaluation import evaluation_folder
from medssl.report.runs import load_run


@dataclass(frozen=True)
class EvaluationOptions:
    """What every evaluation may be given besides what its evaluate.json lists."""

    debug: bool = option(False, "show the whole traceback of an error", place=True)


def begin_evaluation(role: str) -> None:
    """Before anything is built: errors are explained, keys and the role are checked; ConfigError for wrong ones.

    MONAI's own `run` in a Python program hands on the keys that evaluate.json lists: nothing is lost there.
    """
    explain_errors()
    command = current_command()
    if command is not None and command.config_files:
        file = Path(command.config_files[0])
        bundle = file.resolve().parent.parent.name
        check_command(command, [json.loads(file.read_text(encoding="utf-8"))], ["debug"], bundle)
        make_options(EvaluationOptions, {"debug": command.config.get("debug")})
        device = command.config.get("device")
        if isinstance(device, str) and not is_expression(device):
            require_device(device)
    if role not in ROLES:
        raise ConfigError(f"role '{role}' is unknown. Expected one of {', '.join(ROLES)}. Correct --role.")


def require_cases(split: SplitOfRun, role: str, run: str | Path) -> None:
    """ConfigError if the run's split has no case of this role, or cases of it have no label to compare with."""
    file = Path(run) / "split.json"
    number = split.counts[role]
    if number == 0:
        raise ConfigError(f"{file}: no case has the role '{role}'. It has {_counts_text(split)}. Give another --role.")
    without = split.without_label(role)
    if without:
        raise ConfigError(
            f"{file}: {len(without)} of {number} {role} cases have no label, the first is {without[0]}. An "
            "evaluation compares with labels. Give another --role."
        )


def tell_evaluation(run: str | Path, role: str) -> None:
    """Print what came of an evaluation: its table, its folder and, for test cases, what to type next."""
    if not is_first_process():
        return
    if role == "test":
        tell_end(Path(run), [f"medssl report {shlex.quote(str(run))}"])
        return
    folder = Path(evaluation_folder(run, role))
    tell_table(load_run(run, folder.name))
    say(f"The evaluation of the {role} cases is in {folder}. 'medssl report' shows that of the test cases.")


def _counts_text(split: SplitOfRun) -> str:
    return ", ".join(f"{count} {role}" for role, count in split.counts.items())
