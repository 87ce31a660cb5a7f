"""What happens in a training is written down, kept and shown."""

import json
import sys
import time

import pytest
import torch
from ignite.engine import Engine, Events

from medssl.core import progress
from medssl.engine import KeepCheckpoints, RecordProgress, RunFolder, ShowProgress, segmentation_validator
from medssl.engine.tracking import NoTracker
from medssl.networks import MCDropoutUNet3D


class Notebook(NoTracker):
    """A tracker that remembers."""

    tracking_uri = "sqlite:///somewhere.db"

    def __init__(self):
        self.rows, self.ends, self.run_id = [], [], "run7"

    def log_metrics(self, rows):
        self.rows += [(step, dict(values)) for step, values in rows]

    def finish(self, status="FINISHED"):
        self.ends.append(status)


class Validates:
    """Runs `validator` after every epoch, as MONAI's ValidationHandler does."""

    def __init__(self, validator):
        self.validator = validator

    def attach(self, trainer):
        trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: self.validator.run([0]))


@pytest.fixture
def validator():
    engine = Engine(lambda engine, batch: None)
    engine.add_event_handler(Events.EPOCH_COMPLETED, lambda: engine.state.metrics.update(dice=torch.tensor(0.75)))
    return engine


def test_steps_epochs_and_validations_are_recorded_in_folder_and_tracker(tmp_path, line_trainer, validator, history):
    folder, notebook = RunFolder(tmp_path), Notebook()
    line_trainer(handlers=(RecordProgress(folder, notebook, validator), Validates(validator)), epochs=2).run()
    kinds = [record["kind"] for record in history(tmp_path)]
    assert kinds == (["step"] * 4 + ["epoch", "passes", "validation"]) * 2
    steps, epochs = history(tmp_path, "step"), history(tmp_path, "epoch")
    assert [record["step"] for record in steps] == list(range(1, 9))
    assert set(steps[0]) == {"kind", "epoch", "step", "loss", "error", "lr"}
    second = [record["loss"] for record in steps if record["epoch"] == 2]
    assert epochs[1]["loss"] == pytest.approx(sum(second) / 4) and epochs[1]["seconds"] >= 0
    assert history(tmp_path, "validation")[1] == {"kind": "validation", "epoch": 2, "step": 8, "dice": 0.75}
    losses = [(step, values["loss"]) for step, values in notebook.rows if "loss" in values]
    assert losses == [(record["step"], record["loss"]) for record in steps]
    assert [step for step, values in notebook.rows if "epoch_loss" in values] == [4, 8]
    assert [values for _, values in notebook.rows if "validation_dice" in values] == [{"validation_dice": 0.75}] * 2


def test_tracked_run_is_noted_while_it_runs_so_that_a_killed_one_is_continued(tmp_path, line_trainer):
    folder = RunFolder(tmp_path)
    line_trainer(handlers=(RecordProgress(folder, Notebook()),), epochs=1).run()
    facts = folder.facts()
    assert (facts["mlflow_run_id"], facts["tracking_uri"]) == ("run7", "sqlite:///somewhere.db")


def test_any_error_is_recorded_once_and_raised_as_it_is(tmp_path, line_trainer, history):
    class Stumbles:
        def attach(self, trainer):
            trainer.add_event_handler(Events.ITERATION_STARTED(once=6), self.stumble)

        def stumble(self):
            raise KeyError("nothing of medssl")

    folder, notebook = RunFolder(tmp_path), Notebook()
    with pytest.raises(KeyError, match="nothing of medssl"):
        line_trainer(handlers=(RecordProgress(folder, notebook), Stumbles())).run()
    failures = history(tmp_path, "failure")
    assert len(failures) == 1 and failures[0]["epoch"] == 2 and "nothing of medssl" in failures[0]["message"]
    assert folder.facts()["status"] == "failed" and notebook.ends == ["FAILED"]
    assert not (tmp_path / "failure.json").exists(), "that file is for diverged losses"


def test_ctrl_c_is_recorded_too(tmp_path, line_trainer, history):
    class Interrupts:
        def attach(self, trainer):
            trainer.add_event_handler(Events.ITERATION_STARTED(once=2), self.interrupt)

        def interrupt(self):
            raise KeyboardInterrupt

    folder = RunFolder(tmp_path)
    with pytest.raises(
        KeyboardInterrupt, match=r"Stopped in epoch 1 of 3\. .* holds no checkpoint of this stage yet\."
    ):
        line_trainer(handlers=(RecordProgress(folder, NoTracker()), Interrupts())).run()
    assert history(tmp_path, "failure")[0]["message"] == "KeyboardInterrupt"
    assert folder.facts()["status"] == "failed"


def test_ctrl_c_says_what_is_kept_and_how_to_go_on(tmp_path, line_trainer):
    class Interrupts:
        def attach(self, trainer):
            trainer.add_event_handler(Events.ITERATION_STARTED(once=10), self.interrupt)

        def interrupt(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        line_trainer(RunFolder(tmp_path), handlers=(Interrupts(),)).run()
    kept = tmp_path / "checkpoints" / "epoch_0002.pt"
    assert str(caught.value) == (
        f"Stopped in epoch 3 of 3. The last checkpoint is {kept}. To go on, give the same command with --resume true."
    )


@pytest.mark.parametrize(("interval", "saved"), [(1, [4, 5]), (2, [4, 5]), (3, [3, 5]), (10, [5])])
def test_checkpoints_are_saved_every_interval_and_at_the_end(tmp_path, line_trainer, interval, saved):
    keeper = KeepCheckpoints(RunFolder(tmp_path), interval=interval)
    line_trainer(handlers=(keeper,), epochs=5).run()
    assert [path.name for path in keeper.store.files()] == [f"epoch_{epoch:04d}.pt" for epoch in saved]


def test_without_a_terminal_each_epoch_is_one_plain_line(tmp_path, line_trainer, validator, capsys):
    shows = ShowProgress(RunFolder(tmp_path), validator, title="stage 1")
    line_trainer(handlers=(shows, Validates(validator)), epochs=2).run()
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 4 and err == ""
    assert lines[0].startswith("stage 1: epoch 1/2  loss ") and lines[0].endswith(" s")
    assert lines[3] == "stage 1: epoch 2/2  validation dice 0.7500"


class Waits:
    """Takes its time after every step, and after every case of a validation."""

    def __init__(self, seconds, validator=None):
        self.seconds, self.validator = seconds, validator

    def attach(self, trainer):
        for engine in (trainer, self.validator):
            if engine is not None:
                engine.add_event_handler(Events.ITERATION_COMPLETED, lambda: time.sleep(self.seconds))


@pytest.fixture
def quick_lines(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)


def test_in_a_terminal_bars_show_epochs_steps_and_the_loss(tmp_path, line_trainer, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    line_trainer(handlers=(ShowProgress(RunFolder(tmp_path)), Waits(0.15)), epochs=2).run()
    out, err = capsys.readouterr()
    assert out == "" and "training" in err and "epoch 2, loss" in err and "steps" in err
    assert progress._display.works == [] and progress._display.bars is None


def test_a_log_gets_lines_within_an_epoch_and_within_a_validation(
    tmp_path, line_trainer, validator, capsys, quick_lines
):
    shows, validates = ShowProgress(RunFolder(tmp_path), validator), Validates(validator)
    line_trainer(handlers=(shows, validates, Waits(0.05, validator)), epochs=2).run()
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("training: 0 of 2 epochs, epoch 1, loss ") and " of 4 steps (" in line for line in lines)
    assert any("training: 1 of 2 epochs, validation: 1 of 1 cases" in line for line in lines)
    assert progress._display.works == []


def test_a_run_that_goes_on_shows_the_epochs_done_before_it(tmp_path, line_trainer, capsys, quick_lines):
    first = RunFolder(tmp_path)
    line_trainer(first, epochs=1).run()
    first.finish()
    folder = RunFolder(tmp_path, resume=True)
    line_trainer(folder, handlers=(ShowProgress(folder), Waits(0.05)), epochs=2).run()
    folder.finish()
    out, err = capsys.readouterr()
    assert f"{tmp_path / 'checkpoints'}: goes on with epoch 2 of 2" in out.splitlines()
    assert "training: 1 of 2 epochs, epoch 2" in err
    again = RunFolder(tmp_path, resume=True)
    line_trainer(again, handlers=(ShowProgress(again),), epochs=2).run()
    assert f"{tmp_path / 'checkpoints'}: all 2 epochs are trained already\n" == capsys.readouterr().out


@pytest.mark.parametrize("place", ["training", "validation"])
def test_a_training_that_fails_leaves_no_bar(tmp_path, line_trainer, validator, place):
    class Stumbles:
        def attach(self, trainer):
            engine = trainer if place == "training" else validator
            engine.add_event_handler(Events.ITERATION_COMPLETED, self.stumble)

        def stumble(self):
            assert progress._display.works
            raise ValueError("stumbled")

    shows = ShowProgress(RunFolder(tmp_path), validator)
    with pytest.raises(ValueError, match="stumbled"):
        line_trainer(handlers=(shows, Validates(validator), Stumbles())).run()
    assert progress._display.works == []


def test_other_processes_of_a_group_show_and_write_nothing(tmp_path, line_trainer, capsys):
    folder = RunFolder(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    folder.is_writer = False
    line_trainer(folder, handlers=(ShowProgress(folder),)).run()
    folder.finish()
    assert sorted(tmp_path.rglob("*")) == before and capsys.readouterr().out == ""
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "running"


class AllForeground(torch.nn.Module):
    def forward(self, image):
        return torch.cat([torch.zeros_like(image), torch.ones_like(image)], dim=1)


def test_validation_is_the_mean_foreground_dice_over_cases():
    from monai.data import DataLoader
    from monai.inferers import SimpleInferer

    half, full = torch.zeros(1, 4, 4, 2, dtype=torch.uint8), torch.ones(1, 4, 4, 2, dtype=torch.uint8)
    half[:, :2] = 1
    cases = [{"image": torch.rand(1, 4, 4, 2), "label": label} for label in (half, full)]
    loader = DataLoader(cases, batch_size=1)
    validator = segmentation_validator(AllForeground(), loader, SimpleInferer(), 2, torch.device("cpu"))
    validator.run()
    assert float(validator.state.metrics["dice"]) == pytest.approx((2 / 3 + 1) / 2)


def test_validation_uses_no_dropout():
    from monai.data import DataLoader
    from monai.inferers import SimpleInferer

    torch.manual_seed(0)
    network = MCDropoutUNet3D(1, 2, widths=(4, 6), dropout=0.9)
    generator = torch.Generator().manual_seed(1)
    images = [torch.rand((1, 8, 8, 4), generator=generator) for _ in range(2)]
    loader = DataLoader([{"image": image, "label": (image > 0.5).float()} for image in images], batch_size=1)
    validator = segmentation_validator(network.train(), loader, SimpleInferer(), 2, torch.device("cpu"))
    results = set()
    for _ in range(3):
        validator.run()
        results.add(float(validator.state.metrics["dice"]))
    assert len(results) == 1
