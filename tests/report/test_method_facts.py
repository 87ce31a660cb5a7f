"""The facts of a run's method: stored ones count, titles are looked up for runs made before."""

from pathlib import Path

import pytest

from medssl.core.errors import DataError
from medssl.methods.facts import PLACE_OF_OTHERS, MethodFacts
from medssl.report import method_facts
from medssl.report.method_facts import facts_of_method

FILE = Path("run.json")
LEARNER = MethodFacts("Pi, net", learns_from_unlabelled=True, place=3)


@pytest.fixture
def known(monkeypatch):
    """One method, and how often it was looked up."""
    asked = []

    def look_up(title):
        asked.append(title)
        return {"pi, net": LEARNER}.get(title.casefold())

    monkeypatch.setattr(method_facts, "facts_of_title", look_up)
    method_facts._known_by_title.cache_clear()
    yield asked
    method_facts._known_by_title.cache_clear()


def test_stored_facts_count_whatever_the_title_is(known):
    stored = MethodFacts("mine", learns_from_unlabelled=False, place=8)
    assert facts_of_method({"method": "Pi, net", "method_facts": stored.to_json()}, FILE) == stored
    assert known == []


@pytest.mark.parametrize("title", ["Pi, net", "pi, NET", "Pi, net, twice the steps", "Pi, net, more, and more"])
def test_a_run_made_before_has_the_facts_of_its_title_or_of_what_stands_before_a_comma(known, title):
    assert facts_of_method({"method": title}, FILE) is LEARNER


def test_what_nobody_knows_stands_last_and_learns_from_unlabelled_cases(known):
    facts = facts_of_method({"method": "Pi"}, FILE)
    assert (facts.title, facts.place, facts.learns_from_unlabelled) == ("Pi", PLACE_OF_OTHERS, True)


def test_a_title_is_looked_up_once(known):
    for _ in range(3):
        facts_of_method({"method": "Pi, net"}, FILE)
    assert known == ["Pi, net"]


@pytest.mark.parametrize(
    "damaged", [{}, {"title": "x"}, "GBDL", {"title": "x", "learns_from_unlabelled": 1, "views": 3}]
)
def test_damaged_facts_are_an_error_that_names_the_file(damaged):
    with pytest.raises(DataError, match=r"run\.json: method_facts are damaged"):
        facts_of_method({"method": "GBDL", "method_facts": damaged}, FILE)
