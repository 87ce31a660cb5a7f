"""Splits are exact, repeatable, nested, free of shared patients, and cannot change under a run."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medssl.core.errors import ConfigError, DataError
from medssl.data.datasets import DATASETS, DataSource
from medssl.data.split import ROLES, Split, read_split, require_scans, split_cases


def source_of(name: str, count: int, per_patient: int = 1, unlabelled: tuple[int, ...] = ()) -> DataSource:
    cases = [
        {"id": f"c{i:03d}", "image": f"c{i:03d}.nii.gz", "patient": f"p{i // per_patient:03d}", "label": f"l{i}.nii.gz"}
        for i in range(count)
    ]
    for index in unlabelled:
        del cases[index]["label"]
    return DataSource(DATASETS[name], cases, Path("data"))


def ids(split: Split, role: str) -> list[str]:
    return [case["id"] for case in split.role(role)]


@pytest.mark.parametrize(
    ("name", "total", "labelled", "expected"),
    [
        ("kits19", 210, None, (16, 144, 0, 50)),
        ("kits19", 210, 16, (16, 144, 0, 50)),
        ("kits19", 210, 4, (4, 156, 0, 50)),
        ("kits19", 210, 10, (10, 134, 16, 50)),
        ("kits19", 210, 160, (160, 0, 0, 50)),
        ("left_atrium", 100, 80, (80, 0, 0, 20)),
        ("liver", 131, 100, (100, 0, 0, 31)),
        ("left_atrium", 100, None, (16, 64, 0, 20)),
        ("left_atrium", 100, 8, (8, 72, 0, 20)),
        ("liver", 131, None, (5, 95, 0, 31)),
        ("hippocampus", 200, 4, (4, 122, 14, 60)),
        ("hippocampus", 200, 100, (100, 26, 14, 60)),
        ("folder", 20, None, (13, 0, 1, 6)),
    ],
)
def test_counts_are_those_of_the_published_splits(name, total, labelled, expected):
    split = split_cases(source_of(name, total), labelled=labelled)
    assert tuple(split.counts[role] for role in ROLES) == expected
    assert len({case["id"] for case in split.cases}) == len(split.cases) == total


def test_upper_bound_with_all_labels_says_that_nothing_is_kept_for_validation(capsys):
    split_cases(source_of("kits19", 210), labelled=160)
    assert "labelled 160: these are all training cases with a label" in capsys.readouterr().out
    split_cases(source_of("kits19", 210), labelled=10)
    assert capsys.readouterr().out == ""
    with pytest.raises(ConfigError, match=r"144 training cases.*--validation 0"):
        split_cases(source_of("kits19", 210), labelled=159)
    assert split_cases(source_of("kits19", 210), labelled=150, validation=10).counts["validation"] == 10


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"labelled": 5, "test": 10, "validation": 3}, (5, 22, 3, 10)),
        ({"labelled": 5, "test": 0.25, "validation": 0.1}, (5, 22, 3, 10)),
        ({"labelled": 0.5, "test": 0, "validation": 0}, (20, 20, 0, 0)),
        ({"labelled": 2, "unlabelled": 6, "test": 10, "validation": 0}, (2, 6, 0, 10)),
        ({"labelled": 2, "unlabelled": 0, "test": 10, "validation": 0}, (2, 0, 0, 10)),
        ({"labelled": 2, "unlabelled": 0.5, "test": 10, "validation": 0}, (2, 14, 0, 10)),
    ],
)
def test_numbers_and_fractions_are_kept_exactly(asked, expected):
    assert tuple(split_cases(source_of("hippocampus", 40), **asked).counts.values()) == expected


def test_the_same_seeds_give_the_same_split_whatever_the_order_of_the_files():
    source = source_of("kits19", 210)
    turned = DataSource(source.facts, source.cases[::-1], source.root)
    assert split_cases(source, seed=3).cases == split_cases(turned, seed=3).cases


def test_seed_changes_the_labelled_cases_and_never_validation_or_test():
    source = source_of("hippocampus", 200)
    splits = [split_cases(source, labelled=10, seed=seed) for seed in range(4)]
    assert len({tuple(ids(split, "labelled")) for split in splits}) == 4
    assert len({tuple(ids(split, "validation") + ids(split, "test")) for split in splits}) == 1
    other = split_cases(source, labelled=10, split_seed=1)
    assert ids(other, "test") != ids(splits[0], "test")
    assert ids(other, "validation") != ids(splits[0], "validation")


def test_fewer_labels_are_a_subset_of_more():
    source = source_of("hippocampus", 200)
    sets = [set(ids(split_cases(source, labelled=n, seed=7), "labelled")) for n in (1, 4, 16, 100)]
    assert sets[0] < sets[1] < sets[2] < sets[3]


@given(
    patients=st.lists(st.integers(0, 6), min_size=6, max_size=30),
    bare=st.sets(st.integers(0, 29)),
    seed=st.integers(0, 99),
    test=st.floats(0, 0.5),
)
def test_patients_stay_on_one_side_and_no_case_is_in_two_roles(patients, bare, seed, test):
    cases = [{"id": f"{i}", "image": f"{i}", "patient": f"p{p}", "label": f"{i}"} for i, p in enumerate(patients)]
    for index in bare & set(range(len(cases))):
        del cases[index]["label"]
    try:
        split = split_cases(
            DataSource(DATASETS["folder"], cases, Path("data")),
            labelled=1,
            test=test,
            validation=0.2,
            seed=seed,
            split_seed=seed,
        )
    except ConfigError:
        return  # nothing left to train on
    sides = defaultdict(set)
    for case in split.cases:
        sides[case["patient"]].add(case["role"] if case["role"] in ("test", "validation") else "training")
        assert case["role"] == "unlabelled" or "label" in case
    assert all(len(found) == 1 for found in sides.values())
    assert len({case["id"] for case in split.cases}) == len(split.cases)


def test_whole_patients_are_taken_for_the_test():
    split = split_cases(source_of("folder", 40, per_patient=4), test=6, validation=0)
    assert split.counts["test"] == 8  # 2 patients of 4 scans


def test_cases_without_a_label_are_unlabelled():
    split = split_cases(source_of("folder", 20, unlabelled=tuple(range(5, 20))), test=1, validation=1)
    assert split.counts == {"labelled": 3, "unlabelled": 15, "validation": 1, "test": 1}
    assert {f"c{i:03d}" for i in range(5, 20)} <= set(ids(split, "unlabelled"))


def write_lists(folder: Path, train: list[str], test: list[str]) -> None:
    (folder / "train.list").write_text("\n".join(train) + "\n\n")
    (folder / "test.list").write_text("\n".join(test))


@pytest.mark.parametrize("seed", [0, 1])
def test_lists_make_the_first_cases_of_train_list_labelled(seed, tmp_path):
    train = ["c007", "c002", "c009", "c001", "c000"]
    write_lists(tmp_path, train, ["c003", "c005"])
    split = split_cases(source_of("left_atrium", 10), labelled=2, seed=seed, lists_dir=tmp_path)
    assert ids(split, "labelled") == ["c002", "c007"]
    assert ids(split, "unlabelled") == ["c000", "c001", "c009"]
    assert ids(split, "test") == ["c003", "c005"]
    kept = split_cases(source_of("left_atrium", 10), labelled=2, validation=1, lists_dir=tmp_path)
    assert ids(kept, "labelled") == ["c002", "c007"]
    assert ids(kept, "validation") == ["c000"]


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (["c001", "nobody", "noone"], ["c002"], "train.list: 2 ids have no scan, first 'nobody'"),
        (["c001", "c003", "c001"], ["c002"], "train.list: 'c001' is there 2 times"),
        (["c001", "c002"], ["c002"], "c002: the same patient is in training and test"),
        (["c001"], ["c002", "c004"], "test.list: 1 cases have no label, first 'c004'"),
    ],
)
def test_lists_that_cannot_be_used_are_named(train, test, message, tmp_path):
    write_lists(tmp_path, train, test)
    with pytest.raises(DataError, match=message):
        split_cases(source_of("left_atrium", 5, unlabelled=(4,)), labelled=1, lists_dir=tmp_path)


def test_missing_list_is_named(tmp_path):
    with pytest.raises(DataError, match=r"train\.list: no such file"):
        split_cases(source_of("left_atrium", 5), labelled=1, lists_dir=tmp_path)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"labelled": 15, "test": 5, "validation": 2}, "labelled 15: data has 13 training cases"),
        ({"labelled": 0}, "labelled 0: data has"),
        ({"labelled": -1}, "labelled -1"),
        ({"labelled": 2, "unlabelled": -1}, "unlabelled -1"),
        ({"labelled": 2, "unlabelled": 20, "test": 5, "validation": 0}, "unlabelled 20: only 13 cases"),
        ({"labelled": 2, "test": 20}, "20 test cases asked for, 20 cases have a label"),
        ({"labelled": 2, "test": -3}, "test -3"),
        ({"labelled": 2, "test": 5, "validation": 15}, "labelled 2: data has 0 training cases"),
    ],
)
def test_impossible_requests_say_the_numbers(asked, message):
    with pytest.raises(ConfigError, match=message):
        split_cases(source_of("hippocampus", 20), **asked)


def test_split_comes_back_from_its_file_with_its_hash(tmp_path):
    path = tmp_path / "run" / "split.json"
    split = split_cases(source_of("hippocampus", 20), labelled=3, seed=5, output_file=path)
    again = read_split(path)
    assert (again.cases, again.hash, again.origin) == (split.cases, split.hash, split.origin)
    assert again.origin["seed"] == 5
    assert json.loads(path.read_text())["counts"] == split.counts


def test_hash_names_the_roles_and_not_the_place_of_the_files():
    source = source_of("hippocampus", 20)
    moved = DataSource(source.facts, [{**c, "image": "elsewhere/" + c["image"]} for c in source.cases], Path("else"))
    split = split_cases(source, labelled=3)
    assert split_cases(moved, labelled=3).hash == split.hash
    assert split_cases(source, labelled=4).hash != split.hash
    assert split_cases(source, labelled=3, seed=1).hash != split.hash


def test_a_run_cannot_change_its_split(tmp_path):
    path, source = tmp_path / "split.json", source_of("hippocampus", 20)
    split = split_cases(source, labelled=3, output_file=path)
    before = path.read_bytes()
    split_cases(source, labelled=3, output_file=path)
    with pytest.raises(ConfigError, match=rf"{path}: holds split {split.hash}.*--output_dir"):
        split_cases(source, labelled=4, output_file=path)
    assert path.read_bytes() == before


def test_tampered_split_is_refused_on_reading_and_on_resuming(tmp_path):
    path, source = tmp_path / "split.json", source_of("hippocampus", 20)
    split = split_cases(source, labelled=3, output_file=path)
    content = json.loads(path.read_text())
    next(case for case in content["cases"] if case["role"] == "test")["role"] = "labelled"
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=f"hash {split.hash} does not fit"):
        read_split(path)
    with pytest.raises(DataError, match=f"hash {split.hash} does not fit"):
        split.write(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cases": []}', '{"cases": [], "origin": {}}', '{"cases": 3}'])
def test_file_that_is_no_split_is_named(text, tmp_path):
    (tmp_path / "split.json").write_text(text)
    with pytest.raises(DataError, match=r"split\.json: not a split file"):
        read_split(tmp_path / "split.json")
    with pytest.raises(DataError, match="missing: not a split file"):
        read_split(tmp_path / "missing")


@pytest.mark.parametrize(
    ("roles", "sides"),
    [
        (("labelled", "test"), "training and test"),
        (("unlabelled", "test"), "training and test"),
        (("labelled", "validation"), "validation and training"),
        (("validation", "test"), "validation and test"),
    ],
)
def test_split_of_a_shared_patient_cannot_be_made(roles, sides):
    cases = [{"id": f"scan{i}", "patient": "p", "role": role} for i, role in enumerate(roles)]
    with pytest.raises(DataError, match=f"scan0, scan1: the same patient is in {sides}"):
        Split(cases, {})


def test_split_is_found_from_another_folder_and_its_hash_stays(tmp_path, monkeypatch):
    (tmp_path / "work" / "run").mkdir(parents=True)
    (tmp_path / "work" / "a.nii.gz").touch()
    cases = [{"id": "a", "image": "a.nii.gz", "label": "gone.nii.gz", "patient": "a", "role": "test"}]
    monkeypatch.chdir(tmp_path / "work")
    split = Split(cases, {"dataset": "folder"})
    split.write("run/split.json")
    assert read_split("run/split.json") == split
    monkeypatch.chdir(tmp_path)
    stored = read_split("work/run/split.json")
    assert stored.hash == split.hash and stored.cases[0]["image"] == str(tmp_path / "work" / "a.nii.gz")
    with pytest.raises(DataError) as caught:
        require_scans("work/run/split.json", stored.cases)
    text = str(caught.value)
    assert "1 of 1 cases are not there, first 'a'" in text and str(tmp_path / "work" / "gone.nii.gz") in text
    (tmp_path / "work" / "gone.nii.gz").touch()
    require_scans("work/run/split.json", read_split("work/run/split.json").cases)


@pytest.mark.parametrize(
    ("origin", "count", "way_out"),
    [
        ({}, 1, "Label one more scan"),
        ({}, 4, "below the 4 cases"),
        ({"lists": True}, 4, "Name test cases in test.list"),
    ],
)
def test_split_without_test_cases_says_what_that_means(origin, count, way_out):
    cases = [{"id": f"c{i}", "patient": f"c{i}", "label": "l", "role": "labelled"} for i in range(count)]
    text = Split(cases, origin).missing_test()
    assert "without an evaluation" in text and way_out in text
    assert Split([*cases, {"id": "t", "patient": "t", "role": "test"}], origin).missing_test() == ""


def test_one_label_is_trained_on_and_leaves_none_for_testing():
    split = split_cases(source_of("folder", 4, unlabelled=(1, 2, 3)))
    assert tuple(split.counts.values()) == (1, 3, 0, 0) and "Label one more scan" in split.missing_test()
    assert split_cases(source_of("folder", 4, unlabelled=(2, 3))).missing_test() == ""


def test_every_case_with_a_label_is_tested_in_one_fold():
    source = source_of("hippocampus", 20, per_patient=2, unlabelled=(3,))
    splits = [split_cases(source, labelled=2, validation=2, folds=3, fold=fold) for fold in range(3)]
    tested = [case for split in splits for case in ids(split, "test")]
    assert sorted(tested) == [case["id"] for case in source.cases if "label" in case]
    assert len({split.hash for split in splits}) == 3
    assert [split.origin["fold"] for split in splits] == [0, 1, 2]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"folds": 3, "fold": 3}, "fold 3: there are 3 folds. Give --fold a number from 0 to 2"),
        ({"folds": 30}, "30 folds, but 10 patients with a label"),
        ({"folds": 3, "test": 2}, "--test and --folds: each chooses the test cases"),
        ({"folds": 3, "lists_dir": "lists"}, "--lists_dir and --folds: each chooses the test cases"),
    ],
)
def test_folds_that_cannot_be_are_refused(asked, message):
    with pytest.raises(ConfigError, match=message):
        split_cases(source_of("hippocampus", 20, per_patient=2), labelled=2, **asked)
