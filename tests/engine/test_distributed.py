"""Two processes train as one would, and only the first of them writes."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from ignite.engine import Events

from medssl.core.distributed import is_launched_by_torchrun
from medssl.core.errors import ConfigError, MedsslError
from medssl.engine import RunFolder, TrainingDiverged, load_tensors, local_device, start_process_group


def train_double(rank: int, make, path: Path, **kwargs) -> None:
    make(path, epochs=4, dropout=0.0, double=True, **kwargs).run()


def train_resumed(rank: int, make, path: Path) -> None:
    first = make(path, epochs=2, dropout=0.0, double=True)
    first.run()
    first.run_folder.finish()
    second = make(path, epochs=4, resume=True, dropout=0.0, double=True)
    assert second.state.epoch == 2
    second.run()


@pytest.fixture
def single(tmp_path, make_unet_trainer) -> Path:
    """The same training in one process."""
    train_double(0, make_unet_trainer, tmp_path / "one")
    return tmp_path / "one"


def largest_difference(one: Path, two: Path) -> float:
    a, b = (load_tensors(path / "checkpoints" / "epoch_0004.pt")["method"] for path in (one, two))
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


# In double precision, as Adam divides a gradient by its own size: biases before an instance norm have gradients that
# are rounding alone, 1e-9 in single precision, which Adam (eps 1e-8) makes into a tenth of a step of the learning rate.
# In double they are 1e-18 and the steps 1e-10 of it; 1e-6 would be a real difference.
def test_two_processes_give_the_weights_of_one_with_the_same_global_batch(
    tmp_path, make_unet_trainer, run_in_group, single, history
):
    assert run_in_group(train_double, make_unet_trainer, tmp_path / "two") == [0, 0]
    assert largest_difference(single, tmp_path / "two") < 1e-9
    one, two = ([r["loss"] for r in history(path, "step")] for path in (single, tmp_path / "two"))
    assert two == pytest.approx(one, rel=1e-6), "the recorded loss is that of the global batch"
    names = {path.name for path in (tmp_path / "two").iterdir()}
    assert names == {path.name for path in single.iterdir()}
    assert len(history(tmp_path / "two")) == len(history(single)), "only the first process writes"


def test_group_resumes_to_the_same_weights(tmp_path, make_unet_trainer, run_in_group, single):
    assert run_in_group(train_resumed, make_unet_trainer, tmp_path / "two") == [0, 0]
    assert largest_difference(single, tmp_path / "two") < 1e-9


def open_refused(rank: int, path: Path) -> None:
    try:
        RunFolder(path)
    except ConfigError as error:
        assert "holds a run already" in str(error)
        Path(f"{path}_refused_{rank}").touch()


def test_all_processes_agree_on_whether_the_folder_holds_a_run(tmp_path, run_in_group):
    path = tmp_path / "run"
    assert run_in_group(open_refused, path) == [0, 0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"], "the other must not meet the first one's run.json"
    assert run_in_group(open_refused, path) == [0, 0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "run_refused_0", "run_refused_1"]


def diverge(rank: int, make, path: Path) -> None:
    trainer = make(path, epochs=4)

    def poison(module, args, losses):
        if rank == 1 and trainer.state.iteration == 5:
            return {**losses, "loss": losses["loss"] * float("nan")}
        return None

    trainer.method.register_forward_hook(poison)
    try:
        trainer.run()
    except TrainingDiverged as error:
        Path(f"{path}_rank{rank}.json").write_text(json.dumps(error.facts))
        os._exit(9)


def test_nan_in_one_process_stops_all_at_the_same_step(tmp_path, make_unet_trainer, run_in_group):
    assert run_in_group(diverge, make_unet_trainer, tmp_path / "run") == [9, 9]
    facts = [json.loads((tmp_path / name).read_text()) for name in ("run_rank0.json", "run_rank1.json")]
    assert facts[0] == facts[1] == json.loads((tmp_path / "run" / "failure.json").read_text())
    assert facts[0]["step"] == 5 and len(facts[0]["cases"]) == 4, "the ids of the global batch"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "failed"


def die_in_mid_run(rank: int, make, path: Path) -> None:
    trainer = make(path, epochs=4)
    if rank == 1:
        trainer.add_event_handler(Events.ITERATION_STARTED(once=5), lambda: os.kill(os.getpid(), signal.SIGKILL))
    trainer.run()


def test_process_that_dies_ends_the_others_with_an_error(tmp_path, make_unet_trainer, run_in_group):
    started = time.perf_counter()
    codes = run_in_group(die_in_mid_run, make_unet_trainer, tmp_path / "run")
    assert codes == [1, -signal.SIGKILL] and time.perf_counter() - started < 60
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "failed"
    assert load_tensors(tmp_path / "run" / "checkpoints" / "epoch_0001.pt")["step"] == 3


def test_batch_that_cannot_be_divided_is_refused(tmp_path, make_unet_trainer, run_in_group):
    def body(rank: int) -> None:
        try:
            make_unet_trainer(tmp_path / "run", epochs=1)
        except MedsslError as error:
            os._exit(6 if "cannot be divided among 3 processes" in str(error) else 7)

    assert run_in_group(body, world_size=3) == [6, 6, 6]


def test_outside_of_torchrun_there_is_no_group(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert not is_launched_by_torchrun()
    start_process_group()
    assert not torch.distributed.is_initialized()


def test_device_is_the_process_own_gpu_or_the_cpu(monkeypatch):
    assert local_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert local_device() == torch.device("cuda", 3)
