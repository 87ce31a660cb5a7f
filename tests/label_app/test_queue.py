"""The order of review: the most uncertain first, none starves, the same after a restart."""

import time
from types import SimpleNamespace

import pytest

from medssl.core.errors import CheckpointError, ConfigError, DataError

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.interfaces.exception import ImageNotFoundException

import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.label_app.queue import UNSCORED_EVERY, BackgroundScoring, WaitingViewers, next_study, next_unscored
from medssl.label_app.tasks import UncertaintyScoring


class Store:
    """A datastore as far as the queue looks at it."""

    def __init__(self, names):
        self.names, self.labelled = list(names), []

    def get_unlabeled_images(self):
        return [name for name in reversed(self.names) if name not in self.labelled]

    def get_labeled_images(self):
        return self.labelled

    def refresh(self):
        pass


class Scores:
    """Studies with scores; `result` scores one, and fails on those in `broken`."""

    def __init__(self, names, scores=(), broken=()):
        self.datastore, self.broken, self.failures, self.calls = Store(names), set(broken), {}, []
        self.records = {name: record(name, score) for name, score in dict(scores).items()}

    def record(self, name):
        return self.records.get(name)

    def failure(self, name):
        return self.failures.get(name)

    def result(self, name):
        self.calls.append(name)
        if name in self.broken:
            self.failures[name] = "bad scan"
            raise DataError("bad scan")
        self.records[name] = record(name, 0.5)


def record(name, score, **structures):
    found = {key: {"surroundings_entropy_bits": value} for key, value in (structures or {"kidney": score}).items()}
    return {"id": name, "score": score, "structures": found}


def review_all(studies, strategy="uncertain", **options):
    offered = []
    while (found := next_study(studies, strategy, **options)) is not None:
        offered.append(found["id"])
        studies.datastore.labelled.append(found["id"])
    return offered


def test_most_uncertain_study_comes_first_and_reviewed_ones_never_again():
    studies = Scores("abc", {"a": 0.2, "b": 0.9, "c": 0.5})
    assert next_study(studies, "uncertain")["score"] == 0.9
    assert review_all(studies) == ["b", "c", "a"]


def test_the_same_study_is_offered_until_its_label_is_submitted():
    studies = Scores("abc", {"a": 0.2, "b": 0.9, "c": 0.5})
    assert [next_study(studies, "uncertain")["id"] for _ in range(3)] == ["b", "b", "b"]


def test_strategy_structure_looks_at_the_least_certain_one_or_at_the_one_named():
    studies = Scores("ab")
    studies.records = {
        "a": record("a", 0.4, kidney=0.1, lesion=0.7),
        "b": record("b", 0.5, kidney=0.5, lesion=0.5),
    }
    assert next_study(studies, "structure")["id"] == "a"
    assert next_study(studies, "structure", structure="kidney")["id"] == "b"
    with pytest.raises(ConfigError, match="liver"):
        next_study(studies, "structure", structure="liver")


def test_random_order_follows_the_seed_and_needs_no_scores():
    names = [f"s{i}" for i in range(8)]
    assert review_all(Scores(names), "random", seed=1) == review_all(Scores(names, {"s3": 0.9}), "random", seed=1)
    assert review_all(Scores(names), "random", seed=1) != review_all(Scores(names), "random", seed=2)


def test_every_fourth_study_offered_is_an_unscored_one_so_that_none_starves():
    names = [f"s{i:02d}" for i in range(12)]
    studies = Scores([*names, "new1", "new2"], {name: 1 - i / 20 for i, name in enumerate(names)})
    offered = review_all(studies)
    places = [offered.index(name) + 1 for name in ("new1", "new2")]
    assert sorted(places) == [UNSCORED_EVERY, 2 * UNSCORED_EVERY]
    assert [name for name in offered if name in names] == names


def test_without_any_score_there_is_still_a_next_study():
    assert sorted(review_all(Scores("abc"))) == ["a", "b", "c"]


def test_what_cannot_be_predicted_comes_last_with_the_reason():
    studies = Scores("abc", {"b": 0.1}, broken="a")
    studies.failures["a"] = "bad scan"
    assert review_all(studies)[-1] == "a"
    studies.datastore.labelled = ["b", "c"]
    assert next_study(studies, "uncertain")["failure"] == "bad scan"


def test_no_study_left_is_none():
    assert next_study(Scores(""), "uncertain") is None


def test_background_scoring_gets_round_a_bad_scan_and_notices_new_ones(monkeypatch):
    monkeypatch.setattr("medssl.label_app.queue.LOOK_AGAIN_S", 0.02)
    studies = Scores("abc", broken="a")
    thread = BackgroundScoring(studies, WaitingViewers())
    thread.start()
    wait_for(lambda: set(studies.records) == {"b", "c"} and "a" in studies.failures)
    studies.datastore.names.append("d")
    wait_for(lambda: "d" in studies.records)
    thread.stop()
    assert not thread.is_alive() and studies.calls.count("a") == 1


def test_background_scoring_waits_while_a_viewer_does():
    studies, viewers = Scores("ab"), WaitingViewers()
    thread = BackgroundScoring(studies, viewers)
    with viewers, viewers:
        thread.start()
        time.sleep(0.3)
        assert not studies.calls
    wait_for(lambda: set(studies.records) == {"a", "b"})
    thread.stop()


def test_background_scoring_outlives_any_fault(monkeypatch):
    monkeypatch.setattr("medssl.label_app.queue.LOOK_AGAIN_S", 0.02)
    studies = Scores("a")
    faults = iter([OSError("the archive is away"), CheckpointError("model.pt: damaged"), RuntimeError()])

    def refresh():
        for fault in faults:
            raise fault

    studies.datastore.refresh = refresh
    thread = BackgroundScoring(studies, WaitingViewers())
    thread.start()
    wait_for(lambda: "a" in studies.records)
    thread.stop()


def test_log_of_a_fault_says_where_it_was_and_not_whom_it_met(caplog):
    studies, met = Scores("a"), ImageNotFoundException("Anna_Miller: no such study")

    def refresh():
        raise met

    studies.datastore.refresh = refresh
    assert not BackgroundScoring(studies, WaitingViewers())._score_one()
    assert "ImageNotFoundException" in caplog.text and "in next_unscored" in caplog.text
    assert "Anna_Miller" not in caplog.text


def test_study_that_is_moved_away_while_its_turn_comes_does_not_keep_the_others_waiting(caplog):
    class Moved(Scores):
        def result(self, name):
            if name == "a":
                self.calls.append(name)
                raise ImageNotFoundException("Anna_Miller: no such study")
            super().result(name)

        def note_failure(self, name, reason):
            self.failures[name] = reason

    studies = Moved("ab")
    scoring = BackgroundScoring(studies, WaitingViewers())
    while scoring._score_one():
        pass
    assert studies.calls == ["a", "b"] and studies.record("b") and "found" in studies.failure("a")
    assert "Anna_Miller" not in caplog.text
    assert UncertaintyScoring(Moved("ab"))({}, None) == {"scored": 1, "failed": 1}


def test_reviewed_studies_are_not_scored():
    studies = Scores("ab")
    studies.datastore.labelled = ["a"]
    assert next_unscored(studies) == "b"


def wait_for(holds, seconds=20.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_study_that_cannot_be_read_does_not_keep_the_others_from_being_offered():
    from medssl.label_app.app import ReviewApp

    class Unread(Scores):
        def note_failure(self, name, reason):
            self.failures[name] = reason

    def path_of(name):
        if name != "b":
            raise DataError("missing slices")
        return "b.nii.gz"

    studies = Unread("abc")
    studies.datastore.get_image_uri = path_of
    app = SimpleNamespace(
        _strategies={"random": lambda request, store: next_study(studies, "random")},
        datastore=lambda: studies.datastore,
        results=studies,
    )
    assert ReviewApp.next_sample(app, {"strategy": "random"})["path"] == "b.nii.gz"
    studies.datastore.labelled.append("b")
    last = ReviewApp.next_sample(app, {"strategy": "random"})
    assert last["id"] == "a" and last["failure"] == "missing slices" and "path" not in last
