"""Options are checked by name, type, limits and choices, and errors say what was expected."""

from dataclasses import dataclass
from typing import Any

import pytest

from medssl.core.errors import ConfigError
from medssl.core.options import make_options, marked, names_of, option


@dataclass(frozen=True)
class Sizes:
    steps: int = option(10, "steps an epoch", at_least=1)
    share: float = option(0.5, "share of the cases", at_least=0, at_most=1, symbol="$s$", weighs="cases")
    limit: float | None = option(None, "length of gradients")
    cases: int | float | None = option(None, "cases, or their share")
    batch: int | str = option("auto", "windows at once", incidental=True)
    kind: str = option("soft", "what labels are", choices=("soft", "hard"))
    quick: bool = option(False, "whether to hurry")
    stride: list[int] = option((8, 8, 8), "of the windows", at_least=1)
    window: list[float] | None = option(None, "[low, high]")
    folder: str = option("runs", "where all is written", place=True)
    anything: Any = option(None, "what its reader checks")


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("steps", 3, 3),
        ("steps", 3.0, 3),
        ("share", 1, 1.0),
        ("share", 0, 0.0),
        ("limit", 2, 2.0),
        ("cases", 4, 4),
        ("cases", 0.25, 0.25),
        ("batch", 4, 4),
        ("batch", "auto", "auto"),
        ("kind", "hard", "hard"),
        ("quick", True, True),
        ("quick", "true", True),
        ("quick", "False", False),
        ("stride", [4, 4, 2], [4, 4, 2]),
        ("stride", (4, 4, 2.0), [4, 4, 2]),
        ("stride", "8,8,8", [8, 8, 8]),
        ("stride", "[8, 8, 8]", [8, 8, 8]),
        ("window", [-100, 250.5], [-100, 250.5]),
        ("window", "-1.5,2e2", [-1.5, 200.0]),
        ("anything", ["road", "sky"], ["road", "sky"]),
    ],
)
def test_a_value_of_the_right_kind_is_taken_as_the_option_has_it(name, given, expected):
    value = getattr(make_options(Sizes, {name: given}), name)
    assert value == expected and type(value) is type(expected)


def test_a_number_that_may_be_a_count_or_a_share_keeps_its_type():
    assert type(make_options(Sizes, {"cases": 1}).cases) is int
    assert type(make_options(Sizes, {"cases": 1.0}).cases) is float


@pytest.mark.parametrize(
    ("name", "given", "finding"),
    [
        ("steps", 2.5, r"steps 2\.5: expected a whole number \(steps an epoch\)"),
        ("steps", "three", r"steps 'three': expected a whole number"),
        ("steps", True, "steps True: expected a whole number"),
        ("steps", [3], r"steps \[3\]: expected a whole number"),
        ("steps", 0, r"steps 0: expected at least 1 \(steps an epoch\)"),
        ("share", -0.1, r"share -0\.1: expected at least 0 and at most 1"),
        ("share", 1.1, r"share 1\.1: expected at least 0 and at most 1"),
        ("share", "half", "share 'half': expected a number"),
        ("kind", "sotf", r"kind 'sotf' is unknown\. Did you mean 'soft'\?"),
        ("kind", "zzz", r"kind 'zzz' is unknown\. Known: hard, soft"),
        ("kind", 1, "kind 1: expected a text"),
        ("quick", "perhaps", "quick"),
        ("stride", "8,x,8", "stride: expected whole numbers such as 8,8,8"),
        ("stride", 8, "stride: expected whole numbers such as 8,8,8"),
        ("stride", [8, "8"], "stride: expected whole numbers such as 8,8,8"),
        ("stride", [8.5, 8, 8], "stride: expected whole numbers"),
        ("window", ["low", "high"], "window: expected numbers such as 8,8,8"),
        ("stride", [8, 0, 8], "stride 0: expected at least 1"),
    ],
)
def test_another_value_is_refused_with_its_name_and_what_was_expected(name, given, finding):
    with pytest.raises(ConfigError, match=finding):
        make_options(Sizes, {name: given})


def test_none_keeps_the_default():
    assert make_options(Sizes, dict.fromkeys(names_of(Sizes))) == Sizes()


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"option 'stirde' is unknown\. Did you mean 'stride'\?"):
        make_options(Sizes, {"stirde": [8, 8, 8]})
    with pytest.raises(ConfigError, match=r"option 'qqqq' is unknown\. Known: anything, batch, cases"):
        make_options(Sizes, {"qqqq": 1})


def test_marks_are_read_by_name_and_a_place_is_incidental():
    assert marked(Sizes, "place") == ["folder"]
    assert marked(Sizes, "incidental") == ["batch", "folder"]
    assert marked(Sizes, "symbol") == ["share"]


def test_names_of_several_parts_come_in_order_and_once():
    @dataclass(frozen=True)
    class Others:
        steps: int = option(1, "again")
        more: int = option(1, "more")

    assert names_of(Others, Sizes)[:3] == ["steps", "more", "share"]
