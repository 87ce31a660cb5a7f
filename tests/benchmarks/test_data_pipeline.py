"""Both sides of the benchmark make the same kind of sample and the same rotation."""

import torch

SCAN, PATCH = (24, 24, 8), (16, 16, 4)


def test_both_sides_give_patches_of_one_kind(benchmark):
    for side in benchmark.sides(SCAN, PATCH):
        sample = side[benchmark.Draw(0, 3)]
        assert sample["image"].shape == sample["label"].shape == (1, *PATCH)
        assert (sample["image"].dtype, sample["label"].dtype) == (torch.float32, torch.uint8)
        assert {type(value) for value in sample.values()} == {torch.Tensor}


def test_both_rotations_are_the_same(benchmark):
    ours, stock = (turn() for turn in benchmark.rotations((24, 31, 4)))
    torch.testing.assert_close(ours[0], stock[0].as_tensor(), atol=1e-4, rtol=0)
    assert torch.equal(ours[1], stock[1].as_tensor().to(torch.uint8))


def test_rows_name_the_sizes_and_what_was_asked_for(benchmark):
    rows = list(benchmark.measure(SCAN, PATCH, repeats=1))
    assert [row[0] for row in rows] == [
        "one cached sample, 24x24x8 to 16x16x4",
        "in-plane rotation, 16x16x4, image and label",
    ]
    assert [row[4] for row in rows] == [5.0, 20.0]
