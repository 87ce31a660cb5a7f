"""How each data set lies on disk: functions that list the cases below a folder."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from medssl.data.volumes import read_header, read_volume
from medssl.errors import ConfigError, DataError

Case = dict[str, Any]
SUFFIXES = (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".h5")
_LABEL_ENDINGS = re.compile(r"(_0000|_seg|_label|_mask|-seg|-label|-mask)$", re.IGNORECASE)
_BIDS_SUBJECT = re.compile(r"^(sub-[A-Za-z0-9]+)")


def find_kits19(root: Path) -> list[Case]:
    """`case_00000/imaging.nii.gz` with `segmentation.nii.gz` beside it."""
    folders = sorted(p.parent for p in root.glob("case_*/imaging.nii.gz"))
    return _found(
        root,
        [_case(f.name, f / "imaging.nii.gz", f / "segmentation.nii.gz") for f in folders],
        "case_00000/imaging.nii.gz",
    )


def find_left_atrium(root: Path) -> list[Case]:
    """`*/<id>/mri_norm2.h5` of the SSL literature, or `<id>/lgemri.nrrd` with `laendo.nrrd` of the challenge."""
    h5 = sorted(root.glob("**/mri_norm2.h5"))
    if h5:
        return [_case(p.parent.name, f"{p}::image", f"{p}::label", label_exists=True) for p in h5]
    raw = sorted(root.glob("**/lgemri.nrrd"))
    cases = [_case(p.parent.name, p, p.with_name("laendo.nrrd")) for p in raw]
    return _found(root, cases, "<id>/mri_norm2.h5 or <id>/lgemri.nrrd")


def find_decathlon(root: Path) -> list[Case]:
    """`imagesTr/*.nii.gz` with `labelsTr/*.nii.gz`, in `root` or in a `Task..` folder inside it."""
    inside = next(iter(sorted(root.glob("Task*_*/imagesTr"))), None)
    base = inside.parent if inside and not (root / "imagesTr").is_dir() else root
    images = sorted(p for p in base.glob("imagesTr/*.nii.gz") if not p.name.startswith("."))
    cases = [_case(_stem(p), p, base / "labelsTr" / p.name) for p in images]
    return _found(root, cases, "imagesTr/*.nii.gz")


def find_phantoms(root: Path) -> list[Case]:
    """The phantom scans in `root`, made first if the folder is not there."""
    if not (root / "phantom.json").is_file():
        from medssl.data.phantom import write_phantoms  # noqa: PLC0415  (only this data set needs the generator)

        write_phantoms(root)
    return find_folder(root)


def find_folder(root: Path) -> list[Case]:
    """Any scans: `images/` (or imagesTr, or `root` itself) and labels of the same name in `labels/` (or labelsTr).

    A scan is a NIfTI, NRRD, MetaImage or HDF5 file, or a folder with a DICOM series. A label may be missing: the case
    is then unlabelled. `patients.csv` (case,patient) says who is the same person; BIDS names (`sub-..`) say it too.
    """
    image_dir = next((root / n for n in ("images", "imagesTr") if (root / n).is_dir()), root)
    label_dir = next((root / n for n in ("labels", "labelsTr") if (root / n).is_dir()), root / "labels")
    labels = {_matching_stem(p): p for p in _scans_in(label_dir)} if label_dir.is_dir() else {}
    images = [p for p in _scans_in(image_dir) if p != label_dir]
    patients = _patients(root)
    cases = []
    for path in images:
        case = _case(_stem(path), path, labels.pop(_matching_stem(path), None))
        case["patient"] = patients.get(case["id"], case["patient"])
        cases.append(case)
    if labels:
        raise DataError(
            f"{label_dir}: {len(labels)} label(s) without a scan, first {min(p.name for p in labels.values())}. "
            f"Give each label the name of its scan in {image_dir}."
        )
    return _found(root, cases, "images/*.nii.gz (labels of the same name in labels/)")


def scans_in(path: str | Path) -> list[Case]:
    """The scans to predict at `path`: one file, a folder of scans, one DICOM series or a folder of series."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder. Give a scan, a folder of scans or a DICOM series.")
    if path.is_file():
        return [_case(_stem(path), path, None)]
    if _scans_in(path) or (path / "images").is_dir() or (path / "imagesTr").is_dir():
        return find_folder(path)
    return _found(path, [_case(path.name, path, None)] if any(path.iterdir()) else [], "a scan or a DICOM series")


def structure_names(root: Path, cases: list[Case]) -> dict[int, str]:
    """Label id to name, from `dataset.json` (MSD or nnU-Net form) or else from the ids in the label files."""
    described = root / "dataset.json"
    if described.is_file():
        entries = json.loads(described.read_text()).get("labels", {})
        pairs = [(k, v) if str(k).isdigit() else (v, k) for k, v in entries.items()]
        names = {int(i): str(name) for i, name in pairs if int(i) != 0}
        if names:
            return dict(sorted(names.items()))
    labelled = [c for c in cases if "label" in c]
    if not labelled:
        raise DataError(f"{root}: no label found. Put at least one label of a scan's name into {root / 'labels'}.")
    ids: set[int] = set()
    for case in labelled:
        values = np.unique(read_volume(case["label"]).array)
        ids |= {int(v) for v in values if np.isfinite(v) and v == int(v) and v != 0}
    if not ids:
        raise DataError(f"{root / 'labels'}: every label is empty. Label at least one structure with an id above 0.")
    return {i: f"label {i}" for i in sorted(ids)}


def fitting_sizes(cases: list[Case]) -> tuple[tuple[int, int] | None, None, tuple[int, int, int]]:
    """Slice, region and patch size for scans of unknown size: slices shrink to 256, patches fit the median scan."""
    shapes = []
    for case in cases:
        try:
            shapes.append(sorted(read_header(case["image"]).shape, reverse=True))
        except DataError:
            continue  # the check of the data names this file, with every other finding
    if not shapes:
        raise DataError(f"{cases[0]['image']}: no scan of this folder can be read. Run 'medssl check-data'.")
    large, middle, small = (int(v) for v in np.median(np.array(shapes), axis=0))
    slice_size = (256, 256) if large > 256 else None
    side = [min(128, -(-min(v, 256) // 16) * 16) for v in (large, middle)]
    return slice_size, None, (max(side), max(side), min(32, small))


def download_decathlon(task: str | None, root: Path) -> None:
    """Fetch a Medical Segmentation Decathlon task into `root` with MONAI, unless it is there already."""
    if task is None:
        raise ConfigError("download: only the liver and hippocampus data sets can be fetched (Decathlon tasks).")
    if (root / task / "imagesTr").is_dir() or (root / "imagesTr").is_dir():
        return
    from monai.apps import DecathlonDataset, download_and_extract  # noqa: PLC0415  (needs internet, rarely used)

    root.mkdir(parents=True, exist_ok=True)
    download_and_extract(
        DecathlonDataset.resource[task],
        root / f"{task}.tar",
        root,
        hash_val=DecathlonDataset.md5[task],
        hash_type="md5",
    )


def _found(root: Path, cases: list[Case], expected: str) -> list[Case]:
    if not cases:
        raise DataError(f"{root}: no scans found. Expected {expected} in this folder; check --dataset_dir.")
    return cases


def _case(case_id: str, image: Path | str, label: Path | str | None, label_exists: bool = False) -> Case:
    subject = _BIDS_SUBJECT.match(case_id)
    case = {"id": case_id, "image": str(image), "patient": subject.group(1) if subject else case_id}
    if label is not None and (label_exists or Path(label).exists()):
        case["label"] = str(label)
    return case


def _scans_in(folder: Path) -> list[Path]:
    """Scan files and DICOM series folders directly below `folder`, by name."""
    files = [p for p in folder.iterdir() if p.is_file() and p.name.endswith(SUFFIXES) and not p.name.startswith(".")]
    series = [p for p in folder.iterdir() if p.is_dir() and p.name not in ("labels", "images") and any(p.iterdir())]
    return sorted(files + series)


def _stem(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return path.name[: -len(suffix)]
    return path.name


def _matching_stem(path: Path) -> str:
    return _LABEL_ENDINGS.sub("", _stem(path))


def _patients(root: Path) -> dict[str, str]:
    table = root / "patients.csv"
    if not table.is_file():
        return {}
    rows = [line.split(",") for line in table.read_text().splitlines()[1:] if line.strip()]
    return {row[0].strip(): row[1].strip() for row in rows if len(row) > 1}
