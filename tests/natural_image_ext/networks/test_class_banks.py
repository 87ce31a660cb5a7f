"""Banks of classes against a plain loop: whole vectors, first in first out, no label no vector, the same in a group."""

import pytest
import torch

from natural_image_ext.networks import ClassBanks


@pytest.mark.parametrize("size", [7, 100])
def test_writing_equals_a_plain_loop(size):
    torch.manual_seed(0)
    banks = ClassBanks(num_classes=3, size=size, dimension=2, most=1000)
    stored = {label: [torch.zeros(2)] for label in range(3)}
    for _ in range(4):
        maps, labels = torch.randn(2, 2, 3, 2), torch.randint(0, 4, (2, 3, 2))
        labels[labels == 3] = 255
        banks.write(maps, labels)
        for image in range(2):
            for row in range(3):
                for column in range(2):
                    label = int(labels[image, row, column])
                    if label != 255:
                        stored[label].append(maps[image, :, row, column])
    for label, vectors in stored.items():
        kept = min(len(vectors), size)
        assert int(banks.counts[label]) == kept and len(vectors) > 7
        found = [tuple(row) for row in banks.rows[label, :kept].tolist()]
        given = [tuple(vector.tolist()) for vector in vectors]
        assert len(set(found)) == kept and set(found) <= set(given)
        if size == 100:
            assert torch.allclose(banks.centres()[label], torch.stack(vectors).mean(0), atol=1e-6)
        else:  # the last write of all has at most 12 vectors of a class; the first one is long forgotten
            assert (0.0, 0.0) not in found


def test_every_stored_vector_is_that_of_one_pixel_and_of_its_class():
    torch.manual_seed(0)
    banks = ClassBanks(4, 50, 3, most=5)
    labels = torch.randint(0, 4, (2, 6, 6, 4))  # three dimensions
    maps = torch.randn(2, 3, 6, 6, 4)
    banks.write(maps, labels)
    for label in range(4):
        assert int(banks.counts[label]) == 1 + 5
        pixels = maps.movedim(1, -1)[labels == label]
        for vector in banks.rows[label, 1:6]:
            assert (pixels == vector).all(-1).any()


def test_oldest_vectors_are_forgotten():
    banks = ClassBanks(2, 3, 1)
    for value in range(1, 6):
        banks.write(torch.full((1, 1, 1, 1), float(value)), torch.zeros(1, 1, 1, dtype=torch.long))
    assert sorted(banks.rows[0].flatten().tolist()) == [3, 4, 5]
    assert banks.counts.tolist() == [3, 1] and float(banks.centres()[0]) == 4 and float(banks.centres()[1]) == 0


def test_banks_without_zeros_hold_what_was_written_alone():
    banks = ClassBanks(2, 3, 2, zeros_first=False)
    assert banks.counts.tolist() == [0, 0] and torch.equal(banks.centres(), torch.zeros(2, 2))
    banks.write(torch.full((1, 2, 1, 2), 4.0), torch.zeros(1, 1, 2, dtype=torch.long))
    assert banks.counts.tolist() == [2, 0] and banks.rows[0, :2].tolist() == [[4, 4], [4, 4]]
    assert banks.centres().tolist() == [[4, 4], [0, 0]] and banks.only_centres().centres().tolist() == [[4, 4], [0, 0]]


def test_drawing_follows_the_seed_and_is_not_always_the_same():
    maps, labels = torch.arange(100.0).reshape(1, 1, 10, 10), torch.zeros(1, 10, 10, dtype=torch.long)

    def drawn(seed):
        torch.manual_seed(seed)
        banks = ClassBanks(1, 20, 1, most=4)
        banks.write(maps, labels)
        return sorted(banks.rows[0, 1:5].flatten().tolist())

    assert drawn(0) == drawn(0) != drawn(1)


def test_pictures_without_any_label_write_nothing():
    banks = ClassBanks(2, 4, 3)
    banks.write(torch.randn(1, 3, 2, 2), torch.full((1, 2, 2), 255))
    assert banks.counts.tolist() == [1, 1]


def test_centres_are_all_that_is_kept_for_inference():
    torch.manual_seed(0)
    banks = ClassBanks(3, 9, 2)
    banks.write(torch.randn(1, 2, 4, 4), torch.randint(0, 3, (1, 4, 4)))
    small = banks.only_centres()
    assert small.rows.shape == (3, 1, 2) and torch.allclose(small.centres(), banks.centres())


def test_checkpoint_holds_the_banks():
    torch.manual_seed(0)
    banks, again = ClassBanks(3, 9, 2), ClassBanks(3, 9, 2)
    banks.write(torch.randn(1, 2, 4, 4), torch.randint(0, 3, (1, 4, 4)))
    again.load_state_dict(banks.state_dict())
    assert torch.equal(again.centres(), banks.centres()) and torch.equal(again.positions, banks.positions)


def test_bank_without_room_is_refused():
    with pytest.raises(ValueError, match="at least one vector"):
        ClassBanks(2, 0, 3)


def _write_own_pixels(rank, folder):
    torch.manual_seed(rank)
    banks = ClassBanks(3, 10, 2)
    labels = torch.full((1, 2, 2), rank)
    labels[0, 0, 0] = 2 if rank == 0 else 255
    banks.write(torch.full((1, 2, 2, 2), 1.0 + rank), labels)
    torch.save(banks.state_dict(), folder / f"{rank}.pt")


def test_banks_of_two_processes_hold_the_same(run_in_group, tmp_path):
    assert run_in_group(_write_own_pixels, tmp_path) == [0, 0]
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert first["counts"].tolist() == [1 + 3, 1 + 3, 1 + 1]


def _write_where_nobody_has_a_pixel(rank, folder):
    torch.manual_seed(rank)
    banks = ClassBanks(3, 10, 2)
    nothing = torch.full((1, 2, 2), 255)
    banks.write(torch.randn(1, 2, 2, 2), nothing)
    assert banks.counts.tolist() == [1, 1, 1]
    banks.write(torch.randn(1, 2, 2, 2), torch.zeros_like(nothing) if rank else nothing)
    torch.save(banks.state_dict(), folder / f"{rank}.pt")


def test_processes_that_all_have_no_label_write_nothing_and_go_on(run_in_group, tmp_path):
    assert run_in_group(_write_where_nobody_has_a_pixel, tmp_path) == [0, 0]
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert first["counts"].tolist() == [1 + 4, 1, 1]
