"""What the names of files say: the scan's id, the label's scan, nnU-Net's channel, the patient of a visit."""

import re
from pathlib import Path

SUFFIXES = (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".h5")
_LABEL_ENDINGS = re.compile(r"[_-](seg|label|mask)$", re.IGNORECASE)
_FIRST_CHANNEL = re.compile(r"_0000$")
_CHANNEL = re.compile(r"^(.+)_(\d{4})$")
_BIDS_SUBJECT = re.compile(r"^(sub-[A-Za-z0-9]+)")
_NUMBERED_VISITS = "session|ses|visit|v|scan|timepoint|time|tp|t|frame|f|followup|fu|day|week|month|year"
_NAMED_VISITS = "baseline|bl|followup|fu|pre|post|ed|es"
_VISIT = re.compile(rf"^(.*\d.*?)[-_.](?:(?:{_NUMBERED_VISITS})[-_]?\d+|{_NAMED_VISITS})$", re.IGNORECASE)


def stem_of(path: Path) -> str:
    """The name without the suffix of a scan: the id of a case."""
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return path.name[: -len(suffix)]
    return path.name


def label_stem(path: Path) -> str:
    """The stem without _seg, _label or _mask: what a label is called after."""
    return _LABEL_ENDINGS.sub("", stem_of(path))


def matching_stem(path: Path) -> str:
    """What a scan and its label have in common: the stem without _seg, _label or _mask, and without _0000."""
    return _LABEL_ENDINGS.sub("", _FIRST_CHANNEL.sub("", stem_of(path)))


def channel_of(case_id: str) -> tuple[str, int] | None:
    """Name and number of a channel as nnU-Net writes them: `brain_01_0002` is (brain_01, 2); None for other ids."""
    parts = _CHANNEL.match(case_id)
    return None if parts is None else (parts[1], int(parts[2]))


def bids_subject(case_id: str) -> str | None:
    """`sub-01` of the BIDS name `sub-01_ses-02_T1w`; None for other ids."""
    subject = _BIDS_SUBJECT.match(case_id)
    return None if subject is None else subject[1]


def patient_of_visit(case_id: str) -> str | None:
    """The patient that an id seems to name: `patient043` of `patient043-f01`; None for most ids.

    The id must end in a word for a visit or a point in time (t0, f01, ses-02, visit2, baseline, post, ED), after one of
    -, _ and ., and what stands before it must hold a digit. So `case_00001`, `hippocampus_017` and `scan_t1` name none.
    """
    visit = _VISIT.match(case_id)
    return None if visit is None else visit[1]
