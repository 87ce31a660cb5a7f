"""Slices of scans: which are the channels, which are drawn, and that no label of an unlabelled case is opened."""

import numpy as np
import pytest
import torch

from medssl.data import (
    Pipeline,
    SemiSupervisedSlices,
    SliceViews,
    make_image_loader,
    open_dataset,
    slices_at,
    split_cases,
)
from medssl.data.image_batches import StepDraws
from medssl.data.sampling import Draw


@pytest.fixture(scope="module")
def source(phantom_dir):
    return open_dataset("phantom", phantom_dir)


@pytest.fixture(scope="module")
def split(source):
    return split_cases(source, labelled=3, unlabelled=4, validation=2, test=3)


@pytest.fixture(scope="module")
def pipeline(source):
    return Pipeline(source.facts, slice_size=(32, 32), patch_size=(24, 28, 1))


@pytest.fixture(scope="module")
def dataset(split, pipeline):
    return SemiSupervisedSlices(split, pipeline, SliceViews(pipeline.geometry.patch_size))


def unturned(dataset):
    """The data set without augmentation: draws can be told by their values."""
    dataset.cropped = lambda image, mask: (image, mask)
    return dataset


def test_channels_are_the_slice_below_itself_and_the_one_above():
    scan = torch.arange(5.0).expand(1, 4, 6, 5)  # every slice holds its number
    found = slices_at(scan, [2, 0, 4])
    assert found.shape == (3, 3, 4, 6)
    assert found[:, :, 0, 0].tolist() == [[1, 2, 3], [0, 0, 1], [3, 4, 4]]
    assert slices_at(scan[..., :1], torch.tensor([0]))[0, :, 1, 1].tolist() == [0, 0, 0]


def test_places_inside_of_a_slice_stay_where_they_are():
    scan = torch.rand(1, 4, 6, 5)
    assert torch.equal(slices_at(scan, [3])[0, 1], scan[0, :, :, 3])


def test_batch_has_slices_labels_and_views_of_the_patchs_size(dataset):
    batch = dataset[StepDraws([Draw(0, 1), Draw(2, 5)], [Draw(0, 3), Draw(3, 4), Draw(1, 9)])]
    assert batch["image"].shape == (2, 3, 24, 28) and batch["label"].shape == (2, 24, 28)
    assert batch["weak"].shape == batch["strong"].shape == (3, 3, 24, 28) and batch["valid"].shape == (3, 24, 28)
    assert set(batch["label"].unique().tolist()) <= {0, 1, 255} and batch["valid"].dtype == torch.bool
    assert all(batch[name].abs().max() <= 1 + 1e-5 for name in ("image", "weak", "strong"))
    assert not torch.equal(batch["weak"], batch["strong"])
    assert type(batch["image"]) is torch.Tensor and type(batch["label"]) is torch.Tensor


def test_label_and_slice_are_turned_and_cut_alike():
    torch.manual_seed(0)
    label = torch.zeros(40, 40, dtype=torch.uint8)
    label[12:24, 15:32] = 1
    image = label.float().expand(3, -1, -1) * 1.8 - 0.9
    cropped = SliceViews((32, 36)).cropped()
    for _ in range(20):
        found, mask = cropped(image, label)
        known = mask != 255
        assert (((found[1] > 0) == (mask == 1)) | ~known).float().mean() > 0.97


def test_what_was_outside_is_air_without_a_label():
    image, label = torch.full((3, 8, 8), 0.5), torch.zeros(8, 8, dtype=torch.uint8)
    found, mask = SliceViews((32, 32)).cropped()(image, label)
    outside = mask == 255
    assert outside.float().mean() > 0.8 and torch.allclose(found[:, outside], torch.tensor(-1.0))


@pytest.mark.parametrize("strong", ["colour", "augseg"])
def test_strong_views_keep_places_and_the_range(strong):
    torch.manual_seed(1)
    image = torch.rand(3, 16, 16) * 2 - 1
    changed = [SliceViews((16, 16), strong).stronger()(image) for _ in range(12)]
    assert all(float(view.min()) >= -1 and float(view.max()) <= 1 for view in changed)
    assert any(not torch.allclose(view, image, atol=0.01) for view in changed)
    middle = torch.corrcoef(torch.stack([image.flatten(), changed[0].flatten()]))[0, 1]
    assert middle > 0.3, "no turn, no flip"


def test_draws_follow_from_their_seeds_alone(dataset):
    draws = StepDraws([Draw(1, 11)], [Draw(2, 12)])
    torch.manual_seed(5)
    first = dataset[draws]
    torch.manual_seed(6)
    state = torch.get_rng_state()
    second = dataset[draws]
    assert all(torch.equal(first[name], second[name]) for name in ("image", "label", "weak", "strong", "valid"))
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(first["image"], dataset[StepDraws([Draw(1, 13)], [Draw(2, 12)])]["image"])


@pytest.mark.parametrize(("share", "expected"), [(1.0, 1.0), (0.0, None), (0.5, None)])
def test_asked_share_of_labelled_draws_has_a_structure(split, pipeline, share, expected):
    dataset = unturned(SemiSupervisedSlices(split, pipeline, SliceViews((24, 28)), structure_share=share))
    has_structure = [bool(dataset.labelled_sample(Draw(seed % 3, seed))[1].any()) for seed in range(150)]
    natural = np.mean([float(case["label"].flatten(0, 2).any(0).float().mean()) for case in dataset.labelled])
    wanted = expected or share + (1 - share) * natural
    assert np.mean(has_structure) == pytest.approx(wanted, abs=0.12)
    assert natural < 0.9, "or the share would not matter"


def test_slice_of_a_labelled_draw_has_its_own_label(split, pipeline):
    dataset = unturned(SemiSupervisedSlices(split, pipeline, SliceViews((24, 28))))
    for seed in range(10):
        image, label, name = dataset.labelled_sample(Draw(1, seed))
        case, place = dataset.labelled[1], int(name.rsplit(" ", 1)[1])
        assert name.startswith(case["id"])
        assert torch.equal(image[1], case["image"][0, ..., place]) and torch.equal(label, case["label"][0, ..., place])


def test_case_without_a_structure_is_drawn_from_all_its_slices(dataset):
    places = {dataset._labelled_place(torch.zeros(1, 4, 4, 6)) for _ in range(200)}
    assert places == set(range(6))


def test_no_case_has_two_roles_and_draws_come_from_their_own_alone(split, dataset):
    assert len({case["patient"] for case in split.cases}) == len(split.cases) == 12
    assert [case["id"] for case in dataset.labelled] == [case["id"] for case in split.role("labelled")]
    assert [case["id"] for case in dataset.unlabelled] == [case["id"] for case in split.role("unlabelled")]
    loader = make_image_loader(dataset, batch_size=4, steps=10)
    seen = {name.split(",")[0] for batch in loader for name in batch["id"]}
    assert seen == {case["id"] for case in split.role("labelled")}


def test_labels_of_unlabelled_cases_are_never_opened(split, pipeline, tmp_path):
    broken = tmp_path / "label.nii.gz"
    broken.write_text("no label")
    cases = [{**case, "label": str(broken)} if case["role"] == "unlabelled" else case for case in split.cases]
    hidden = SemiSupervisedSlices(type(split)(cases, split.origin), pipeline, SliceViews((24, 28)))
    assert all("label" not in case for case in hidden.unlabelled)
    assert hidden.unlabelled_views(Draw(0, 1))[0].shape == (3, 24, 28)


def test_without_unlabelled_cases_labelled_ones_are_shown_without_their_labels(split, pipeline):
    known = [case for case in split.cases if case["role"] != "unlabelled"]
    dataset = SemiSupervisedSlices(type(split)(known, split.origin), pipeline, SliceViews((24, 28)))
    assert len(dataset.unlabelled) == 3 and all("label" not in case for case in dataset.unlabelled)


def test_cache_on_disk_gives_the_same_slices(split, pipeline, dataset, tmp_path):
    stored = SemiSupervisedSlices(
        split, pipeline, SliceViews(pipeline.geometry.patch_size), cache="disk", cache_dir=str(tmp_path)
    )
    draws = StepDraws([Draw(0, 3)], [Draw(1, 4)])
    first, second = stored[draws], dataset[draws]
    assert torch.equal(first["image"], second["image"]) and torch.equal(first["strong"], second["strong"])
    assert list(tmp_path.glob("*.pt")) and first["id"] == second["id"]


def test_workers_see_what_one_process_sees(dataset):
    ones, twos = (
        [batch["strong"] for batch in make_image_loader(dataset, 2, 3, num_workers=workers)] for workers in (0, 2)
    )
    assert all(torch.equal(one, two) for one, two in zip(ones, twos, strict=True))
