"""How each data set lies on disk: functions that list the cases below a folder."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from medssl.core.csv_files import read_cells
from medssl.core.errors import ConfigError, DataError
from medssl.data.dicom import is_dicom_file, patient_key
from medssl.data.volumes import read_header, read_volume, split_address
from medssl.data.voxel_grid import Header

Case = dict[str, Any]
SUFFIXES = (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".h5")
_LABEL_ENDINGS = re.compile(r"[_-](seg|label|mask)$", re.IGNORECASE)
_CHANNEL_ENDING = re.compile(r"_0000$")  # nnU-Net's name of the first channel
_BIDS_SUBJECT = re.compile(r"^(sub-[A-Za-z0-9]+)")


def find_kits19(root: Path) -> list[Case]:
    """`case_00000/imaging.nii.gz` with `segmentation.nii.gz` beside it, in `root` or in its `data` folder.

    The challenge's 90 test scans, which have no segmentation, are left out: the published splits know 210 cases.
    """
    base = root / "data" if (root / "data").is_dir() else root
    folders = sorted(p.parent for p in base.glob("case_*/segmentation.nii.gz"))
    cases = [_case(f.name, f / "imaging.nii.gz", f / "segmentation.nii.gz") for f in folders]
    return _found(root, cases, "case_00000/imaging.nii.gz and case_00000/segmentation.nii.gz")


def find_left_atrium(root: Path) -> list[Case]:
    """`*/<id>/mri_norm2.h5` of the SSL literature, or `<id>/lgemri.nrrd` with `laendo.nrrd` of the challenge."""
    h5 = sorted(root.glob("**/mri_norm2.h5"))
    cases = [_case(p.parent.name, f"{p}::image", f"{p}::label", label_exists=True) for p in h5]
    if not cases:
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
    """The phantom scans in `root`."""
    if not (root / "phantom.json").is_file():
        raise DataError(f"{root}: no phantom scans. Make them with 'medssl phantom {root}'.")
    return find_folder(root)


def phantom_modality(root: Path) -> str:
    """CT or MR, as `phantom.json` says."""
    return str(json.loads((root / "phantom.json").read_text()).get("modality", "ct")).upper()


def find_folder(root: Path) -> list[Case]:
    """Any scans: `images/` (or imagesTr, or `root` itself) and labels of the same name in `labels/` (or labelsTr).

    Without such a folder, `scan_seg.nii.gz` (or _label, _mask) is the label of `scan.nii.gz` beside it. A scan is a
    NIfTI, NRRD, MetaImage or HDF5 file (datasets `image` and, in the label's file, `label`), or a folder with a DICOM
    series. A label may be missing: the case is then unlabelled. Who is the same person is said by `patients.csv`
    (case,patient), by BIDS names (`sub-..`) and by the PatientID of DICOM series. Raises DataError for a label without
    a scan and for two scans or labels of one name.
    """
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Give a folder with images/ and, for training, labels/.")
    if _is_series(root):
        return [_case(root.name, root, None, patient=_patient_of(root))]
    image_dir = _image_folder(root)
    label_dir = next((root / n for n in ("labels", "labelsTr") if (root / n).is_dir()), root / "labels")
    paths = _scans_in(image_dir)
    if label_dir.is_dir():
        label_files = _scans_in(label_dir)
    else:  # `scan_seg.nii.gz` beside `scan.nii.gz`
        stems = {_stem(path) for path in paths}
        label_files = [p for p in paths if _matching_stem(p) != _stem(p) and _matching_stem(p) in stems]
    labels: dict[str, Path] = {}
    for path in label_files:
        other = labels.setdefault(_matching_stem(path), path)
        if other != path:
            raise DataError(f"{path}: {other.name} is a label of the same scan. Keep one label a scan in {label_dir}.")
    cases = [
        _case(_stem(path), path, labels.pop(_matching_stem(path), None), patient=_patient_of(path))
        for path in paths
        if path not in label_files
    ]
    _name_patients(root, cases)
    if labels:
        raise DataError(
            f"{label_dir}: {len(labels)} label(s) without a scan, first {min(p.name for p in labels.values())}. "
            f"Give each label the name of its scan in {image_dir}."
        )
    return _found(root, cases, "images/*.nii.gz (labels of the same name in labels/)")


def scans_in(path: str | Path) -> list[Case]:
    """The scans to predict at `path`: one file, a folder of scans, one DICOM series or a folder of series."""
    path, key = split_address(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder. Give a scan, a folder of scans or a DICOM series.")
    if path.is_file():
        return [_case(_stem(path), f"{path}::{key}" if key else path, None)]
    if _is_series(path):
        return [_case(path.resolve().name, path, None, patient=_patient_of(path))]
    cases = [_case(_stem(scan), scan, None, patient=_patient_of(scan)) for scan in _scans_in(_image_folder(path))]
    return _found(path, cases, "scans, a DICOM series or folders of one series each")


def structure_names(root: Path, cases: list[Case]) -> dict[int, str]:
    """Label id to name, from `dataset.json` (MSD or nnU-Net form) or else from the ids in the label files."""
    described = root / "dataset.json"
    if described.is_file() and (names := _described_structures(described)):
        return names
    labelled = [c for c in cases if "label" in c]
    if not labelled:
        raise DataError(f"{root}: no label found. Put at least one label of a scan's name into {root / 'labels'}.")
    ids: set[int] = set()
    for case in labelled:
        try:
            values = np.unique(read_volume(case["label"]).array)
        except DataError:
            continue  # the check of the data names this file, with every other finding
        ids |= {int(v) for v in values if np.isfinite(v) and v == int(v) and v > 0}
    if not ids:
        raise DataError(f"{root / 'labels'}: no id above 0 in any readable label. Run 'medssl check-data {root}'.")
    return {i: f"label {i}" for i in sorted(ids)}


def _described_structures(path: Path) -> dict[int, str]:
    """Label id to name as `dataset.json` says: {"1": "liver"} of MSD or {"liver": 1} of nnU-Net."""
    try:
        entries = json.loads(path.read_text())["labels"].items()
        pairs = [(int(k), str(v)) if str(k).isdigit() else (int(v), str(k)) for k, v in entries]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        way_out = 'Expected "labels": {"1": "liver"} or {"liver": 1}, one id a structure; or remove the file.'
        raise DataError(f"{path}: its labels cannot be read ({type(error).__name__}: {error}). {way_out}") from error
    return {i: name for i, name in sorted(pairs) if i != 0}


def fitting_sizes(cases: list[Case]) -> tuple[tuple[int, int] | None, None, tuple[int, int, int]]:
    """Slice, region and patch size for scans of unknown size: slices shrink to 256, patches fit the median scan.

    All sizes are along right-left, front-back, feet-head, the axes of the network's grid, however a file is stored.
    """
    shapes = []
    for case in cases:
        try:
            shapes.append(_anatomical_shape(read_header(case["image"])))
        except DataError:
            continue  # the check of the data names this file, with every other finding
    if not shapes:
        raise DataError(f"{cases[0]['image']}: no scan of this folder can be read. Run 'medssl check-data'.")
    width, height, depth = (int(v) for v in np.median(np.array(shapes), axis=0))
    slice_size = (min(width, 256), min(height, 256)) if max(width, height) > 256 else None
    sides = [min(128, -(-v // 16) * 16) for v in (width, height)]
    return slice_size, None, (sides[0], sides[1], min(32, depth))


def _anatomical_shape(header: Header) -> list[int]:
    """Voxels along right-left, front-back, feet-head; as stored where the affine does not tell."""
    axes = nib.io_orientation(header.affine)[:, 0] if np.isfinite(header.affine).all() else np.full(3, np.nan)
    if not np.isfinite(axes).all():
        return list(header.shape)
    return [header.shape[int(np.flatnonzero(axes == axis)[0])] for axis in range(3)]


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
    doubled = [name for name, times in Counter(case["id"] for case in cases).items() if times > 1]
    if doubled:
        paths = ", ".join(case["image"] for case in cases if case["id"] == doubled[0])
        raise DataError(f"{paths}: several scans are called '{doubled[0]}'. Keep one, or rename the others.")
    return cases


def _case(
    case_id: str, image: Path | str, label: Path | str | None, label_exists: bool = False, patient: str | None = None
) -> Case:
    subject = _BIDS_SUBJECT.match(case_id)
    case = {"id": case_id, "image": _address(image, "image"), "patient": subject[1] if subject else patient or case_id}
    if label is not None and (label_exists or Path(label).exists()):
        case["label"] = _address(label, "label")
    return case


def _address(path: Path | str, key: str) -> str:
    """`path`, for an HDF5 file that names no dataset the one called `key` in it."""
    return f"{path}::{key}" if str(path).endswith(".h5") else str(path)


def _image_folder(root: Path) -> Path:
    return next((root / n for n in ("images", "imagesTr") if (root / n).is_dir()), root)


def _scans_in(folder: Path) -> list[Path]:
    """Scan files and DICOM series folders directly below `folder`, by name."""
    visible = [p for p in folder.iterdir() if not p.name.startswith(".")]
    return sorted(p for p in visible if (p.is_file() and p.name.endswith(SUFFIXES)) or _is_series(p))


def _is_series(folder: Path) -> bool:
    return folder.is_dir() and any(is_dicom_file(file) for file in folder.iterdir())


def _patient_of(path: Path) -> str | None:
    """A name for the patient of a DICOM series that does not give the PatientID away; None for anything else."""
    if not path.is_dir():
        return None
    try:
        return patient_key(path)
    except DataError:
        return None


def _stem(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return path.name[: -len(suffix)]
    return path.name


def _matching_stem(path: Path) -> str:
    return _LABEL_ENDINGS.sub("", _CHANNEL_ENDING.sub("", _stem(path)))


def _name_patients(root: Path, cases: list[Case]) -> None:
    """Replace the patients of `cases` by those of `patients.csv`, a table with a heading: case, patient."""
    table = root / "patients.csv"
    if not table.is_file() or not cases:
        return
    patients = {_stem(Path(cells[0])): cells[1] for cells in read_cells(table)[1:] if len(cells) > 1 and cells[1]}
    if not any(case["id"] in patients for case in cases):
        raise DataError(
            f"{table}: names none of the {len(cases)} scans, first {cases[0]['id']}. "
            "Expected a heading and lines 'case,patient' with the scans' names."
        )
    for case in cases:
        if case["id"] in patients:  # only a digest goes on: the table may hold names
            case["patient"] = hashlib.sha256(patients[case["id"]].encode()).hexdigest()[:12]
