"""The cases of a training after review, as a data set of the layout `folder`, with lists that say who is what."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from medssl.core.csv_files import write_rows
from medssl.core.errors import DataError, MedsslError
from medssl.core.files import write_text_atomically
from medssl.data.dicom import patient_key
from medssl.data.layouts import find_folder
from medssl.data.pipeline import LabelMap
from medssl.data.split import read_split
from medssl.data.validate import check_case
from medssl.data.volumes import content_digest, read_volume, split_address, write_nifti
from medssl.label_app.datastore import StudyDatastore
from medssl.label_app.series import SeriesDatastore

HELD_OUT_SHARE = 0.2
LABELLED, UNLABELLED, HELD_OUT = "labelled", "unlabelled", "held out"


@dataclass(frozen=True)
class Example:
    """A scan of the training and its label, unless it is unlabelled; label_map: label ids to classes if they differ."""

    id: str
    image: str
    patient: str
    role: str
    label: Path | None = None
    label_map: Mapping[int, int] | None = None


def study_examples(datastore: StudyDatastore, roles_file: Path, seed: int = 0) -> list[Example]:
    """The studies: reviewed ones to train on or held out, the rest, as far as it can be read, unlabelled.

    Of the reviewed patients a fifth, and at least one of two, is held out to compare models on. Who is drawn (by the
    seed) stays so for ever, in `roles_file`: no training is given the labels that its model is judged by. The scans it
    may have had before, without a label, until they were reviewed.
    """
    reviewed = datastore.reviewed()
    patients = patients_of(datastore)
    roles = _roles({patients[name] for name in reviewed}, roles_file, seed)
    examples = []
    for name in sorted({*reviewed, *datastore.get_unlabeled_images()}):
        held_out = roles.get(patients[name]) == HELD_OUT
        label = reviewed.get(name)
        if label is not None:
            role = HELD_OUT if held_out else LABELLED
            examples.append(Example(name, datastore.get_image_uri(name), patients[name], role, label))
        elif not held_out and (image := _readable(datastore, name)):
            examples.append(Example(name, image, patients[name], UNLABELLED))
    return examples


def run_examples(run: Path | None, label_map: Mapping[int, int], studies: Sequence[Example]) -> list[Example]:
    """Cases of the model's own run whose files are still there, as `run-<id>`; its validation cases are held out.

    Scans and patients that are among the studies are left to these. The run's test cases are not touched.
    """
    if run is None:
        return []
    try:
        cases = read_split(run / "split.json").cases
    except MedsslError:
        return []
    scans, patients = {content_digest(study.image) for study in studies}, {study.patient for study in studies}
    roles = {"labelled": LABELLED, "unlabelled": UNLABELLED, "validation": HELD_OUT}
    examples = []
    for case in cases:
        role = roles.get(case["role"])
        if role is None or case["patient"] in patients or not _exists(case, with_label=role != UNLABELLED):
            continue
        if content_digest(case["image"]) not in scans:
            label = None if role == UNLABELLED else case["label"]
            examples.append(Example(f"run-{case['id']}", case["image"], case["patient"], role, label, label_map))
    return examples


def patients_of(datastore: StudyDatastore) -> dict[str, str]:
    """Study -> a name for its patient that does not give the person away; its own id where nothing tells."""
    if isinstance(datastore, SeriesDatastore):
        return {name: _series_patient(datastore, name) for name in datastore.list_images()}
    told = {case["id"]: str(case["patient"]) for case in find_folder(datastore.root)}
    return {name: told.get(name, name) for name in datastore.list_images()}


def write_cases(examples: Sequence[Example], structures: Mapping[int, str], folder: Path) -> dict[str, list[str]]:
    """Write images/ (links), labels/, dataset.json, patients.csv, train.list and test.list; role -> ids.

    Labelled cases without a single labelled voxel are left out ("empty"): there is nothing to draw patches around.
    Raises DataError unless there are cases to train on and cases to compare models on.
    """
    (folder / "images").mkdir(parents=True)
    ids: dict[str, list[str]] = {LABELLED: [], UNLABELLED: [], HELD_OUT: [], "empty": []}
    for example in examples:
        role = example.role
        if example.label is not None and not _write_label(example, folder / "labels") and role == LABELLED:
            role = "empty"
        ids[role].append(example.id)
        if role != "empty":
            source = split_address(example.image)[0]
            os.symlink(source.resolve(), folder / "images" / f"{example.id}{_suffix(source)}")  # noqa: PTH211
    for empty in ids["empty"]:
        (folder / "labels" / f"{empty}.nii.gz").unlink()
    if not ids[LABELLED] or not ids[HELD_OUT]:
        raise DataError(
            f"{len(ids[LABELLED])} labelled studies to train on and {len(ids[HELD_OUT])} to compare models on. "
            "Review at least two, of two patients, with something labelled in them."
        )
    names = {name: number for number, name in structures.items()}
    write_text_atomically(folder / "dataset.json", json.dumps({"labels": {"background": 0, **names}}, indent=1))
    write_text_atomically(folder / "train.list", "\n".join([*ids[LABELLED], *ids[UNLABELLED]]))
    write_text_atomically(folder / "test.list", "\n".join(ids[HELD_OUT]))
    used = [example for example in examples if example.id not in ids["empty"]]
    patients = [{"case": example.id, "patient": example.patient} for example in used]
    write_rows(folder / "patients.csv", ("case", "patient"), patients)
    return ids


def _roles(patients: set[str], file: Path, seed: int) -> dict[str, str]:
    """Patient -> LABELLED or HELD_OUT; those that are new are drawn and remembered."""
    roles: dict[str, str] = json.loads(file.read_text()) if file.is_file() else {}
    new = sorted(patients - set(roles), key=lambda patient: hashlib.sha256(f"{seed}:{patient}".encode()).digest())
    total = len(patients | set(roles))
    wanted = max(1, round(HELD_OUT_SHARE * total)) if total > 1 else 0
    for patient in new:
        roles[patient] = HELD_OUT if list(roles.values()).count(HELD_OUT) < wanted else LABELLED
    if new:
        write_text_atomically(file, json.dumps(roles, indent=1))
    return roles


def _write_label(example: Example, folder: Path) -> bool:
    """Write the label as classes; whether there is anything in it."""
    label = read_volume(str(example.label))
    classes = label.array.astype(np.uint8)
    if example.label_map is not None:
        classes = LabelMap(example.label_map)(torch.as_tensor(label.array.astype(np.int32))).numpy()
    write_nifti(folder / f"{example.id}.nii.gz", classes, label.affine, np.uint8)
    return bool(classes.any())


def _readable(datastore: StudyDatastore, name: str) -> str | None:
    """The study's scan, None if training would stop at it."""
    try:
        image = datastore.get_image_uri(name)
    except DataError:
        return None
    errors = [finding for finding in check_case({"id": name, "image": image}) if finding.severity == "error"]
    return None if errors else image


def _series_patient(datastore: SeriesDatastore, name: str) -> str:
    try:
        return patient_key(datastore.series_folder(name))
    except DataError:
        return name


def _exists(case: dict[str, Any], with_label: bool) -> bool:
    keys = ("image", "label") if with_label else ("image",)
    return all(key in case and split_address(case[key])[0].exists() for key in keys)


def _suffix(path: Path) -> str:
    return "" if path.is_dir() else "".join(path.suffixes[-2:]) if path.name.endswith(".nii.gz") else path.suffix
