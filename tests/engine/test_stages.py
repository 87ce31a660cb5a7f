"""Two stages of one run: epochs count on, either can be resumed, the second builds on a finished first."""

import pytest
import torch

from medssl.core.errors import CheckpointError, ConfigError
from medssl.engine import KeepCheckpoints, RecordProgress, RunFolder
from medssl.engine.tracking import NoTracker


def stages(path, line_trainer, make_line, resume=False, lengths=(2, 5)):
    """The trainers of a run's two stages, as a bundle makes them: the second one after the first has run."""
    folder = RunFolder(path, resume)

    def stage(name, **kwargs):
        after = "checkpoints_second" if name == "first" else None
        kept = [
            RecordProgress(folder, NoTracker(), stage=name),
            KeepCheckpoints(folder, f"checkpoints_{name}", followed_by=after),
        ]
        return line_trainer(method=make_line(), handlers=kept, **kwargs)

    try:
        yield stage("first", epochs=lengths[0])
        yield stage("second", epochs=lengths[1], first_epoch=lengths[0])
    finally:
        folder.finish()


def run_stages(*args, **kwargs):
    for trainer in stages(*args, **kwargs):
        trainer.run()


def test_second_stage_counts_on_from_the_first(tmp_path, line_trainer, make_line, history):
    run_stages(tmp_path, line_trainer, make_line)
    records = history(tmp_path, "epoch")
    assert [(record["stage"], record["epoch"]) for record in records] == [
        *(("first", epoch) for epoch in (1, 2)),
        *(("second", epoch) for epoch in (3, 4, 5)),
    ]
    assert [record["step"] for record in history(tmp_path, "step")] == list(range(1, 21))


@pytest.mark.parametrize("stopped_after", [1, 2, 4, 5])
def test_run_resumes_in_whichever_stage_it_was(tmp_path, line_trainer, make_line, history, stopped_after):
    run_stages(tmp_path / "unbroken", line_trainer, make_line)
    broken = stages(tmp_path / "run", line_trainer, make_line)
    first = next(broken)
    first.state.max_epochs = min(stopped_after, 2)
    first.run()
    if stopped_after > 2:
        second = next(broken)
        second.state.max_epochs = stopped_after
        second.run()
    broken.close()
    run_stages(tmp_path / "run", line_trainer, make_line, resume=True)
    losses = [[record["loss"] for record in history(tmp_path / name, "step")] for name in ("run", "unbroken")]
    assert losses[0] == losses[1] and len(losses[0]) == 20


def untouched(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "run.json"}


def test_longer_first_stage_is_refused_once_the_second_has_begun_and_nothing_is_lost(tmp_path, line_trainer, make_line):
    run_stages(tmp_path, line_trainer, make_line)
    before = untouched(tmp_path)
    with pytest.raises(CheckpointError, match=r"next stage has begun.*epoch 2 of 3"):
        run_stages(tmp_path, line_trainer, make_line, resume=True, lengths=(3, 6))
    assert untouched(tmp_path) == before


def test_damaged_first_stage_under_a_second_one_stops_the_resume_and_nothing_is_lost(tmp_path, line_trainer, make_line):
    run_stages(tmp_path, line_trainer, make_line)
    newest = tmp_path / "checkpoints_first" / "epoch_0002.pt"
    newest.write_bytes(newest.read_bytes()[:-9])
    before = untouched(tmp_path)
    with pytest.raises(CheckpointError, match="epoch 1 of 2"):
        run_stages(tmp_path, line_trainer, make_line, resume=True)
    assert untouched(tmp_path) == before


def test_second_stage_of_another_length_of_the_first_is_refused(tmp_path, line_trainer, make_line):
    run_stages(tmp_path, line_trainer, make_line)
    with pytest.raises(CheckpointError, match="began after epoch 2, here it begins after 1"):
        run_stages(tmp_path, line_trainer, make_line, resume=True, lengths=(1, 5))


@pytest.mark.parametrize("lengths", [(0, 5), (2, 2)])
def test_stage_without_an_epoch_is_refused(tmp_path, line_trainer, make_line, lengths):
    with pytest.raises(ConfigError, match="needs at least one"):
        run_stages(tmp_path, line_trainer, make_line, lengths=lengths)


def test_second_stage_asks_for_a_finished_first_one(tmp_path, line_trainer, make_line):
    first = next(stages(tmp_path, line_trainer, make_line))
    with pytest.raises(ConfigError, match="0 of 2 epochs"):
        first.require_finished()
    first.run()
    first.require_finished()


def test_stage_begins_with_that_of_another_run_if_the_split_is_the_same(tmp_path, line_trainer, make_line):
    source = RunFolder(tmp_path / "source", facts={"split_hash": "a"})
    trained = line_trainer(source, epochs=2)
    trained.run()
    for name, split, refused in (("same", "a", False), ("other", "b", True)):
        folder = RunFolder(tmp_path / name, facts={"split_hash": split})
        keep = KeepCheckpoints(folder, taken_from=tmp_path / "source")
        if refused:
            with pytest.raises(ConfigError, match="split"):
                line_trainer(method=make_line(), handlers=(keep,), epochs=2)
        else:
            taken = line_trainer(method=make_line(), handlers=(keep,), epochs=2)
            assert taken.is_finished and torch.equal(taken.method.slope, trained.method.slope)
            assert [file.name for file in keep.store.files()] == ["epoch_0002.pt"]
