"""How each data set lies on disk: functions that list the cases below a folder."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from medssl.core.errors import ConfigError, DataError
from medssl.core.progress import tracked
from medssl.data.channels import refuse_channels
from medssl.data.dicom import is_dicom_file, patient_key
from medssl.data.patients import name_patients
from medssl.data.scan_names import SUFFIXES, bids_subject, channel_of, label_stem, matching_stem, stem_of
from medssl.data.volumes import read_header, split_address
from medssl.data.voxel_grid import Header

Case = dict[str, Any]
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
_NO_PICTURES = (
    "Expected volumes: NIfTI, NRRD, MetaImage, HDF5 or DICOM. Pictures are trained on and predicted by the bundles "
    "np_match (a class a picture) and np_semiseg (masks). Slices of a scan: stack them to one .nii.gz."
)


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
    """`imagesTr/*.nii.gz` with `labelsTr/*.nii.gz`, in `root` or in a `Task..` folder inside it.

    The label of nnU-Net's `X_0000.nii.gz` may be called `X.nii.gz`.
    """
    inside = next(iter(sorted(root.glob("Task*_*/imagesTr"))), None)
    base = inside.parent if inside and not (root / "imagesTr").is_dir() else root
    images = sorted(p for p in base.glob("imagesTr/*.nii.gz") if not p.name.startswith("."))
    labels = {stem_of(p): p for p in base.glob("labelsTr/*.nii.gz") if not p.name.startswith(".")}
    refuse_channels(base / "imagesTr", map(stem_of, images), labels)
    cases = [_case(stem_of(p), p, labels.get(stem_of(p)) or labels.get(matching_stem(p))) for p in images]
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
        stems = {stem_of(path) for path in paths}
        label_files = [p for p in paths if matching_stem(p) != stem_of(p) and matching_stem(p) in stems]
    labels: dict[str, Path] = {}
    for path in label_files:
        other = labels.setdefault(matching_stem(path), path)
        if other != path:
            raise DataError(f"{path}: {other.name} is a label of the same scan. Keep one label a scan in {label_dir}.")
    scans = [path for path in paths if path not in label_files]
    refuse_channels(image_dir, map(stem_of, scans), {label_stem(path) for path in label_files})
    cases = [
        _case(stem_of(path), path, labels.pop(_label_name(path, labels), None), patient=_patient_of(path))
        for path in scans
    ]
    name_patients(root, cases)
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
    if path.name.lower().endswith(PICTURES):
        raise DataError(f"{path}: a picture. {_NO_PICTURES}")
    if path.is_file():
        return [_case(stem_of(path), f"{path}::{key}" if key else path, None)]
    if _is_series(path):
        return [_case(path.resolve().name, path, None, patient=_patient_of(path))]
    scans = _scans_in(_image_folder(path))
    refuse_channels(_image_folder(path), map(stem_of, scans))
    cases = [_case(stem_of(scan), scan, None, patient=_patient_of(scan)) for scan in scans]
    return _found(path, cases, "scans, a DICOM series or folders of one series each")


def fitting_sizes(cases: list[Case]) -> tuple[tuple[int, int] | None, None, tuple[int, int, int]]:
    """Slice, region and patch size for scans of unknown size: slices shrink to 256, patches fit the median scan.

    All sizes are along right-left, front-back, feet-head, the axes of the network's grid, however a file is stored.
    """
    shapes = []
    for case in tracked(cases, "reading the sizes of scans", "scans"):
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
        picture = next((p for p in sorted(root.rglob("*")) if p.name.lower().endswith(PICTURES)), None)
        if picture is not None:
            raise DataError(f"{root}: no scans found, but pictures, first {picture.relative_to(root)}. {_NO_PICTURES}")
        raise DataError(f"{root}: no scans found. Expected {expected} in this folder. Give the folder that holds them.")
    doubled = [name for name, times in Counter(case["id"] for case in cases).items() if times > 1]
    if doubled:
        paths = ", ".join(case["image"] for case in cases if case["id"] == doubled[0])
        raise DataError(f"{paths}: several scans are called '{doubled[0]}'. Keep one, or rename the others.")
    return cases


def _case(
    case_id: str, image: Path | str, label: Path | str | None, label_exists: bool = False, patient: str | None = None
) -> Case:
    person = bids_subject(case_id) or patient or case_id
    case = {"id": case_id, "image": _address(image, "image"), "patient": person}
    if label is not None and (label_exists or Path(label).exists() or Path(label).is_symlink()):
        case["label"] = _address(label, "label")
    return case


def _address(path: Path | str, key: str) -> str:
    """`path`, for an HDF5 file that names no dataset the one called `key` in it."""
    return f"{path}::{key}" if str(path).endswith(".h5") else str(path)


def _image_folder(root: Path) -> Path:
    return next((root / n for n in ("images", "imagesTr") if (root / n).is_dir()), root)


def _scans_in(folder: Path) -> list[Path]:
    """Scan files and DICOM series folders directly below `folder`, by name.

    A link that leads nowhere is among them if it may be a scan or a series: the check of the data then names it.
    """
    visible = [p for p in folder.iterdir() if not p.name.startswith(".")]
    return sorted(p for p in visible if _is_scan_file(p) or _is_series(p))


def _is_scan_file(path: Path) -> bool:
    if path.is_symlink() and not path.exists():
        return path.name.endswith(SUFFIXES) or not path.suffix
    return path.is_file() and path.name.endswith(SUFFIXES)


def _label_name(scan: Path, labels: Mapping[str, Path]) -> str:
    """The name under which `labels` knows the label of a scan; of nnU-Net's `X_0002` it may be `X`."""
    name, channel = matching_stem(scan), channel_of(stem_of(scan))
    return channel[0] if name not in labels and channel is not None else name


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
