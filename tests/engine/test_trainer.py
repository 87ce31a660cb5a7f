"""The trainer: minimises, schedules, stops at the first NaN, and goes on after a resume as if nothing had happened."""

import json
import logging
import math
import os
import signal

import pytest
import torch
from ignite.engine import Events
from torch import nn

from medssl.core.errors import CheckpointError, ConfigError
from medssl.engine import CheckpointStore, MethodTrainer, RunFolder, TrainingDiverged, load_tensors, place


def flat(state, prefix="") -> dict:
    if isinstance(state, dict | list):
        pairs = state.items() if isinstance(state, dict) else enumerate(state)
        return {k: v for key, value in pairs for k, v in flat(value, f"{prefix}/{key}").items()}
    return {prefix: state}


def assert_same_bits(a, b) -> None:
    a, b = flat(a), flat(b)
    assert a.keys() == b.keys()
    for name, value in a.items():
        same = torch.equal(value, b[name]) if isinstance(value, torch.Tensor) else value == b[name]
        assert same, f"{name}: {value} and {b[name]}"


def without_times(records) -> list[dict]:
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]


def test_loss_falls_and_the_optimum_is_found(tmp_path, line_trainer, history):
    trainer = line_trainer(RunFolder(tmp_path), epochs=40)
    trainer.run()
    losses = [record["loss"] for record in history(tmp_path, "epoch")]
    assert len(losses) == 40 and losses[-1] < 0.01 * losses[0]
    assert float(trainer.method.slope) == pytest.approx(3, abs=0.1)


def test_output_is_every_loss_as_a_float_and_the_learning_rate(line_trainer):
    trainer = line_trainer(epochs=1)
    trainer.run()
    assert set(trainer.state.output) == {"loss", "error", "lr"}
    assert all(type(value) is float for value in trainer.state.output.values())
    assert trainer.state.output["lr"] == 0.1 and trainer.state.iteration == 4


def test_first_loss_is_that_of_the_first_batch(tmp_path, line_trainer, history):
    line_trainer(RunFolder(tmp_path), epochs=1).run()
    expected = (3 * 0.5) ** 2 / 2 + (3 * 0.625) ** 2 / 2  # the slope starts at 0
    assert history(tmp_path, "step")[0]["loss"] == pytest.approx(expected, rel=1e-6)


def test_cosine_learning_rate_follows_its_closed_form_step_by_step(tmp_path, make_unet_trainer, history):
    make_unet_trainer(tmp_path, epochs=4).run()
    rates = [record["lr"] for record in history(tmp_path, "step")]
    expected = [0.01 * (1 + math.cos(math.pi * step / 12)) / 2 for step in range(12)]
    assert rates == pytest.approx(expected, rel=1e-9)


def test_run_that_has_reached_its_last_epoch_does_nothing(line_trainer):
    trainer = line_trainer(epochs=2)
    trainer.run()
    slope = float(trainer.method.slope)
    trainer.run()
    assert float(trainer.method.slope) == slope and trainer.state.epoch == 2


@pytest.mark.parametrize("factor", [float("nan"), float("inf"), float("-inf")])
def test_bad_loss_stops_the_run_within_its_step_and_keeps_the_last_good_state(
    tmp_path, line_trainer, make_line, history, factor
):
    folder = RunFolder(tmp_path)
    trainer = line_trainer(folder, epochs=5, method=make_line(bad_step=11, bad_factor=factor))
    with pytest.raises(TrainingDiverged, match=r"at step 11 \(epoch 3\), cases case4, case5"):
        trainer.run()
    assert trainer.state.iteration == 11
    assert torch.isfinite(trainer.method.slope).all(), "the bad gradient was not applied"
    failure = json.loads((tmp_path / "failure.json").read_text(), parse_constant=pytest.fail)
    assert (failure["epoch"], failure["step"], failure["cases"]) == (3, 11, ["case4", "case5"])
    assert failure["losses"]["loss"] == str(factor) and float(failure["losses"]["error"]) > 0
    assert folder.facts()["status"] == "failed"
    assert [record["kind"] for record in history(tmp_path)][-2:] == ["step", "failure"]
    loaded, path = CheckpointStore(tmp_path / "checkpoints").load_latest()
    assert path.name == "epoch_0002.pt" and torch.isfinite(loaded["method"]["slope"]).all()


def test_diverged_run_goes_on_from_the_last_good_epoch(tmp_path, line_trainer, make_line, history):
    with pytest.raises(TrainingDiverged):
        line_trainer(RunFolder(tmp_path), epochs=4, method=make_line(bad_step=11, bad_factor=float("nan"))).run()
    line_trainer(RunFolder(tmp_path, resume=True), epochs=4).run()
    line_trainer(RunFolder(tmp_path / "unbroken"), epochs=4).run()
    assert without_times(history(tmp_path)) == without_times(history(tmp_path / "unbroken"))
    assert not (tmp_path / "failure.json").exists()


class BreaksItself(nn.Module):
    """A finite loss whose gradient (or batch statistics) is not: at the last step of epoch 2."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.ones(1))
        self.register_buffer("mean", torch.zeros(1))
        self.part, self.step = part, 0

    def forward(self, batch):
        self.step += 1
        if self.step == 8 and self.part == "buffer":
            self.mean += float("nan")
        offset = 1.0 if self.step == 8 and self.part == "weights" else 0.0
        return {"loss": torch.sqrt(self.slope - self.slope.detach() * offset).sum() if offset else self.slope.sum()}


@pytest.mark.parametrize("part", ["weights", "buffer"])
def test_weights_that_are_not_finite_are_never_saved(tmp_path, line_trainer, part):
    trainer = line_trainer(RunFolder(tmp_path), epochs=4, method=BreaksItself(part))
    with pytest.raises(TrainingDiverged, match="weights of"):
        trainer.run()
    loaded, path = CheckpointStore(tmp_path / "checkpoints").load_latest()
    assert path.name == "epoch_0001.pt"
    assert all(torch.isfinite(value).all() for value in loaded["method"].values())


def train_until_killed(make, path, workers: int, step: int) -> None:
    """Train in a child process that is killed (SIGKILL) at `step`."""
    pid = os.fork()
    if pid == 0:
        trainer = make(path, epochs=4, workers=workers)
        trainer.add_event_handler(Events.ITERATION_COMPLETED(once=step), lambda: os.kill(os.getpid(), signal.SIGKILL))
        trainer.run()
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("workers", [0, 2])
def test_resumed_run_equals_the_unbroken_one_bit_for_bit(tmp_path, make_unet_trainer, history, workers):
    make_unet_trainer(tmp_path / "unbroken", epochs=4, workers=workers).run()
    train_until_killed(make_unet_trainer, tmp_path / "broken", workers, step=8)
    assert [r["step"] for r in history(tmp_path / "broken", "step")][-1] in (7, 8), "killed in the middle of epoch 3"
    trainer = make_unet_trainer(tmp_path / "broken", epochs=4, resume=True, workers=workers)
    assert trainer.state.epoch == 2 and trainer.state.iteration == 6
    trainer.run()
    ends = [load_tensors(tmp_path / name / "checkpoints" / "epoch_0004.pt") for name in ("unbroken", "broken")]
    assert_same_bits(*ends)
    assert ends[0]["step"] == 12 and ends[0]["optimizer"]["state"]
    assert without_times(history(tmp_path / "unbroken")) == without_times(history(tmp_path / "broken"))


def test_number_of_workers_does_not_change_the_result(tmp_path, make_unet_trainer):
    for workers in (0, 2):
        make_unet_trainer(tmp_path / str(workers), epochs=2, workers=workers).run()
    assert_same_bits(*(load_tensors(tmp_path / w / "checkpoints" / "epoch_0002.pt") for w in "02"))


def test_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path, make_unet_trainer, history):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        make_unet_trainer(tmp_path / name, epochs=2, seed=seed).run()
    a, b, c = (load_tensors(tmp_path / name / "checkpoints" / "epoch_0002.pt") for name in "abc")
    assert_same_bits(a, b)
    assert without_times(history(tmp_path / "a")) == without_times(history(tmp_path / "b"))
    weight = "network.classifier.weight"
    assert not torch.equal(a["method"][weight], c["method"][weight])


def test_checkpoint_of_another_network_is_refused_with_a_way_out(tmp_path, line_trainer):
    folder = RunFolder(tmp_path)
    line_trainer(folder, epochs=1).run()
    folder.finish()
    with pytest.raises(CheckpointError, match=r"does not fit this configuration .* Resume with the overlays"):
        line_trainer(RunFolder(tmp_path, resume=True), method=nn.Linear(2, 2))


def test_resume_before_the_first_checkpoint_starts_over_but_says_so(tmp_path, line_trainer, caplog):
    RunFolder(tmp_path).finish("failed")
    with caplog.at_level(logging.WARNING):
        trainer = line_trainer(RunFolder(tmp_path, resume=True))
    assert trainer.state.epoch == 0 and "starts at its first epoch" in caplog.text


def test_damaged_checkpoints_stop_a_resume(tmp_path, line_trainer):
    folder = RunFolder(tmp_path)
    line_trainer(folder, epochs=2).run()
    folder.finish()
    for path in (tmp_path / "checkpoints").glob("*.pt"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="no checkpoint is whole"):
        line_trainer(RunFolder(tmp_path, resume=True))


def test_full_disk_ends_the_run_with_its_checkpoints_intact(tmp_path, line_trainer, monkeypatch):
    original, calls = torch.save, []

    def save(content, path):
        calls.append(path)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        original(content, path)

    monkeypatch.setattr(torch, "save", save)
    folder = RunFolder(tmp_path)
    with pytest.raises(CheckpointError, match=r"epoch_0003\.pt: could not be written .*No space left"):
        line_trainer(folder, epochs=5).run()
    assert folder.facts()["status"] == "failed"
    assert CheckpointStore(tmp_path / "checkpoints").load_latest()[0]["epoch"] == 2


class ObservesPrecision(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = nn.Linear(1, 1), set()

    def forward(self, batch):
        result = self.layer(batch["x"])
        self.seen.add(result.dtype)
        return {"loss": result.float().square().mean()}


@pytest.mark.parametrize(("amp", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])
def test_mixed_precision_is_used_only_where_asked_for(line_trainer, amp, dtype):
    method = ObservesPrecision()
    trainer = line_trainer(epochs=1, method=method, amp=amp)
    trainer.run()
    assert method.seen == {dtype} and trainer.grad_scaler.is_enabled() is amp


def test_training_goes_on_in_training_mode_after_a_validation(line_trainer):
    class Evaluates:
        def attach(self, trainer: MethodTrainer) -> None:
            trainer.add_event_handler(Events.EPOCH_COMPLETED, trainer.method.eval)

    modes = []
    method = ObservesPrecision()
    method.register_forward_pre_hook(lambda module, args: modes.append(module.training))
    line_trainer(epochs=2, method=method, handlers=(Evaluates(),)).run()
    assert modes == [True] * 8


@pytest.mark.parametrize(
    ("network", "size", "layout"),
    [(nn.Conv3d, (5, 5, 5), torch.channels_last_3d), (nn.Conv2d, (5, 5), torch.channels_last)],
)
def test_channels_last_changes_the_layout_not_the_numbers(network, size, layout):
    network, image = network(2, 3, 3), torch.rand(1, 2, *size)
    expected = network(image)
    placed = place(network, "cpu", channels_last=True)
    assert placed.weight.is_contiguous(memory_format=layout)
    assert torch.allclose(placed(image), expected, atol=1e-6)


def test_learning_rate_and_length_changed_for_a_resumed_run_hold_from_there(make_line, line_trainer):
    def trainer(rate, steps, epochs):
        made = line_trainer(method=make_line(), epochs=epochs)
        for group in made.optimizer.param_groups:
            group["lr"] = rate
        made.lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(made.optimizer, steps)
        return made

    first = trainer(0.1, steps=8, epochs=1)
    first.run()
    resumed = trainer(0.02, steps=16, epochs=4)
    resumed.load_state_dict(first.state_dict())
    assert resumed.optimizer.param_groups[0]["lr"] == pytest.approx(0.02 * (1 + math.cos(math.pi * 4 / 16)) / 2)
    resumed.run()
    assert resumed.optimizer.param_groups[0]["lr"] == pytest.approx(0, abs=1e-9), "the cosine ends with the run"


def test_method_is_told_after_every_step(line_trainer, make_line):
    method, slopes = make_line(), []
    method.after_step = lambda: slopes.append(method.slope.item())
    line_trainer(method=method, epochs=2).run()
    assert len(slopes) == 8 and slopes[-1] == method.slope.item() and len(set(slopes)) == 8


class WithBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.register_buffer("count", torch.zeros(()))


def test_buffers_of_a_method_follow_its_networks_to_the_device():
    method = WithBuffer()
    method.layer.to("meta")
    optimizer = torch.optim.SGD(method.layer.parameters(), 0.1)
    loader = torch.utils.data.DataLoader([{"x": torch.zeros(2)}])
    trainer = MethodTrainer(method, optimizer, loader, max_epochs=1, device="meta")
    assert {value.device.type for value in trainer.method.state_dict().values()} == {"meta"}


@pytest.mark.parametrize("limit", [None, 100.0, 3.0])
def test_gradient_is_shortened_to_the_length_given(line_loader, limit):
    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.slope = nn.Parameter(torch.zeros(1))

        def forward(self, batch):
            return {"loss": ((self.slope - 3) * batch["x"]).square().mean()}

    method, seen = Slope(), []
    optimizer = torch.optim.SGD(method.parameters(), lr=0.0)
    optimizer.register_step_pre_hook(lambda *_: seen.append(float(method.slope.grad)))
    MethodTrainer(method, optimizer, line_loader, 1, "cpu", max_grad_norm=limit).run()
    x = torch.tensor([[0.5, 0.625], [0.75, 0.875], [1.0, 1.125], [1.25, 1.375]])
    free = (-6 * x.square().mean(1)).tolist()  # from -1.9 to -10.4
    assert seen == pytest.approx([max(g, -limit) if limit else g for g in free], rel=1e-5)


@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_length_of_gradients_that_makes_no_sense_is_refused(line_trainer, limit):
    with pytest.raises(ConfigError, match="max_grad_norm"):
        line_trainer(epochs=1, max_grad_norm=limit)
