"""Progress: what a log and a terminal show, and when."""

import os
import sys
import time

import pytest

from medssl.core import progress
from medssl.core.progress import Work, begin_work, end_work, line_of, say, tracked, work


@pytest.fixture
def quick_lines(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)


def begun(title, done, total, unit, seconds=0.0):
    piece = Work(title, total, unit)
    piece.done, piece.started = done, 100.0 - seconds
    return piece


def test_line_tells_how_far_all_works_are_and_what_is_left():
    works = [begun("evaluation", 1, 4, "cases", seconds=60.0), begun("p07", 48, 96, "windows")]
    assert line_of(works, 100.0) == "evaluation: 1 of 4 cases, p07: 48 of 96 windows (60 s, about 2 min left)"


def test_steps_of_an_earlier_process_took_this_one_no_time():
    resumed = begun("training", 8, 10, "epochs", seconds=60.0)
    resumed.done_before = 6
    assert line_of([resumed], 100.0) == "training: 8 of 10 epochs (60 s, about 60 s left)"


def test_a_part_of_further_steps_counts_where_no_other_work_tells_it():
    sweep = begun("sweep", 1, 4, "trainings", seconds=60.0)
    sweep.part = 0.5
    assert line_of([sweep], 100.0) == "sweep: 1 of 4 trainings (60 s, about 2 min left)"


def test_work_that_a_handler_began_is_shown_until_it_ends_and_may_end_twice(quick_lines, capsys):
    piece = begin_work("epoch 1", 4, "steps")
    time.sleep(0.1)
    end_work(piece)
    end_work(piece)
    assert "epoch 1: 0 of 4 steps" in capsys.readouterr().err
    time.sleep(0.1)
    assert capsys.readouterr().err == "" and progress._display.works == []


def test_a_line_is_said_by_the_first_of_several_processes(monkeypatch, capsys):
    say("begins")
    monkeypatch.setenv("RANK", "1")
    say("begins")
    assert capsys.readouterr().out == "begins\n"


def test_nobody_knows_what_is_left_of_work_without_a_total():
    assert line_of([begun("opening", 0, None, "", seconds=7.0)], 100.0) == "opening (7 s)"


def test_log_gets_lines_while_one_step_takes_long(quick_lines, capsys):
    with work("caching", 3, "scans") as piece:
        piece.advance()
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines and lines[0].startswith("caching: 1 of 3 scans (0 s")


def test_works_that_follow_each_other_are_no_long_silence(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.5)
    monkeypatch.setattr(progress._display, "last_line", time.monotonic())
    for name in ("first", "second", "third"):
        with work(name, 1):
            time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["second"]


def test_short_work_leaves_no_line(monkeypatch, capsys):
    monkeypatch.setattr(progress._display, "last_line", time.monotonic())
    assert list(tracked([1, 2, 3], "checking", "scans")) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_nothing_is_shown_after_the_end_even_of_work_that_failed(quick_lines, capsys):
    with pytest.raises(ValueError, match="broken"), work("checking", 3):
        raise ValueError("broken")
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_terminal_gets_a_bar_that_goes_away(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with work("predicting p07", 96, "windows") as piece:
        piece.advance(48)
        time.sleep(0.6)
    shown = capsys.readouterr().err
    assert "predicting p07" in shown and "48/96" in shown and "windows" in shown
    assert progress._display.bars is None


def test_only_the_first_of_several_processes_shows(quick_lines, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    with work("checking", 3):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_forked_child_works_while_the_parent_shows(quick_lines):
    with work("training", 3):
        child = os.fork()
        if child == 0:
            with work("in the child", 1):
                os._exit(7)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
