"""What a check of the data finds, and how it is told: a list, or one error that stops the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rich.text import Text

from medssl.core.errors import DataError

SHOWN_ERRORS = 10
SHOWN_WARNINGS = 3
Severity = Literal["error", "warning"]


class VolumeError(DataError):
    """One file cannot be read as a 3-D volume; `code` is the short name of the reason, as in Finding."""

    def __init__(self, message: str, code: str = "unreadable") -> None:
        super().__init__(message)
        self.code = code


def volume_error(code: str, file: object, found: str, expected: str, way_out: str) -> VolumeError:
    """VolumeError whose text names the file, what was found, what was expected and the way out."""
    return VolumeError(f"{file}: {found}, expected {expected}. {way_out}", code)


class Fault(NamedTuple):
    """What is wrong, before it is tied to a case and a file; message: found, expected, way out."""

    code: str
    message: str
    severity: Severity = "error"


@dataclass(frozen=True)
class Finding:
    """One thing wrong (error) or odd (warning) with one file of one case; message: found, expected, way out."""

    case: str
    file: str
    severity: Severity
    code: str
    message: str


def require_valid(findings: Sequence[Finding], way_out: str = "'medssl check-data' lists all.") -> None:
    """Raises DataError with the first 10 errors, one a line, how many more there are and the way out; warnings pass."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return
    lines = [f"{error.file}: {error.message}" for error in errors[:SHOWN_ERRORS]]
    if len(errors) > SHOWN_ERRORS:
        lines.append(f"... and {len(errors) - SHOWN_ERRORS} more errors. {way_out}")
    raise DataError("\n".join(lines))


def warning_lines(findings: Sequence[Finding]) -> list[str]:
    """A line for each of the first warnings, and one that says how many more there are."""
    warnings = [finding for finding in findings if finding.severity == "warning"]
    lines = [f"warning: {warning.file}: {warning.message}" for warning in warnings[:SHOWN_WARNINGS]]
    if len(warnings) > SHOWN_WARNINGS:
        lines.append(f"... and {len(warnings) - SHOWN_WARNINGS} more warnings. 'medssl check-data' lists all.")
    return lines


def counts_text(findings: Sequence[Finding]) -> str:
    """`0 errors, 1 warning`."""
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    return f"{errors} error{'' if errors == 1 else 's'}, {warnings} warning{'' if warnings == 1 else 's'}"


def findings_text(findings: Sequence[Finding]) -> Text:
    """The findings, errors first: a line with case and kind, then file and message, which are never broken."""
    text = Text()
    for finding in sorted(findings, key=lambda finding: finding.severity):
        colour = "red" if finding.severity == "error" else "yellow"
        text.append(finding.severity, f"bold {colour}").append(f" {finding.case} ({finding.code})\n")
        text.append(f"  {finding.file}: {finding.message}\n")
    return text
