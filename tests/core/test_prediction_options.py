"""What a prediction may be asked for: nonsense is refused with its name, its value and what is expected."""

import subprocess
import sys

import pytest

from medssl.core.errors import ConfigError
from medssl.core.options import make_options
from medssl.core.prediction_options import (
    SamplingOptions,
    SliceOptions,
    checked_sampling,
    parse_shard,
    require_stride_within,
    rising_counts,
    stride_within,
)

REFUSED = {
    "samples -5": ({"samples": -5}, r"^samples -5: expected at least 0 and at most 10000 \(Monte Carlo samples"),
    "samples 2.5": ({"samples": 2.5}, r"^samples 2\.5: expected a whole number"),
    "stride of zeros": (
        {"stride": [0, 0, 0]},
        r"^stride 0: expected at least 1 \(distance between neighbouring windows",
    ),
    "negative stride": ({"stride": "-8,8,8"}, r"^stride -8: expected at least 1"),
    "two numbers": ({"stride": [8, 8]}, r"^stride 8,8: 2 numbers, expected 3, one an axis, for example 8,8,8"),
    "four numbers": ({"stride": "8,8,8,8"}, r"^stride 8,8,8,8: 4 numbers, expected 3"),
    "words": ({"stride": "near"}, "^stride: expected whole numbers such as 8,8,8"),
    "window of two": ({"window_size": [8, 8]}, r"^window_size 8,8: 2 numbers, expected 3"),
    "batch 0": ({"window_batch": 0}, r"^window_batch 0: expected auto or a whole number of windows from 1 on"),
    "batch -4": ({"window_batch": -4}, r"^window_batch -4: expected auto"),
    "batch many": ({"window_batch": "many"}, r"^window_batch many: expected auto"),
    "mode": ({"mode": "quick"}, r"^mode 'quick' is unknown\. Known: exact, fast, reference"),
    "backend": ({"backend": "openvin"}, r"^backend 'openvin' is unknown\. Did you mean 'openvino'\?"),
}


@pytest.mark.parametrize(("given", "text"), REFUSED.values(), ids=list(REFUSED))
def test_nonsense_is_refused_with_name_value_and_expectation(given, text):
    with pytest.raises(ConfigError, match=text):
        checked_sampling(given)


@pytest.mark.parametrize("stride", [[8, 8, 4], (8, 8, 4), "8,8,4", "[8,8,4]", "[8, 8, 4]"])
def test_lists_of_numbers_may_be_spelt_in_every_way(stride):
    assert checked_sampling({"stride": stride}) == {"stride": [8, 8, 4]}


def test_no_samples_is_one_pass_and_not_refused():
    assert checked_sampling({"samples": 0}) == {"samples": 0}


def test_what_is_not_given_stays_away_and_other_names_stay():
    assert checked_sampling({"samples": None, "device": "cpu", "mode": "exact"}) == {"device": "cpu", "mode": "exact"}


@pytest.mark.parametrize("batch", [0, -1])
def test_slices_at_once_are_at_least_one(batch):
    with pytest.raises(ConfigError, match=f"slice_batch {batch}: expected at least 1"):
        make_options(SliceOptions, {"slice_batch": batch})


@pytest.mark.parametrize(("values", "text"), [([0, 5], "values 0,5"), ([5, -1], "values 5,-1"), ([], "values none")])
def test_numbers_of_samples_below_one_are_refused(values, text):
    with pytest.raises(ConfigError, match=f"^{text}: expected numbers of samples from 1 on, for example 1,5,20"):
        rising_counts(values)


def test_a_number_of_samples_that_is_given_twice_counts_once():
    assert rising_counts([20, 5, 5, 1]) == [1, 5, 20]


def test_a_stride_longer_than_the_window_is_refused_with_the_axis():
    require_stride_within([48, 8, 32], [48, 64, 32])
    text = (
        "stride 500,8,8: longer than the window 48,64,32 on axis 1. Expected at most the window. Give 48,8,8 or less."
    )
    with pytest.raises(ConfigError, match=f"^{text}$"):
        require_stride_within([500, 8, 8], (48, 64, 32))
    assert stride_within([500, 8, 40], (48, 64, 32)) == [48, 8, 32]


@pytest.mark.parametrize("kind", [SamplingOptions, SliceOptions])
def test_more_samples_than_anybody_needs_are_refused_with_their_meaning(kind):
    assert make_options(kind, {"samples": 10_000}).samples == 10_000
    with pytest.raises(ConfigError, match=r"samples 100000000: expected at least 0 and at most 10000 \(.+0: one"):
        make_options(kind, {"samples": 100_000_000})


def test_shard_is_a_part_of_a_number():
    assert parse_shard("2/8") == (2, 8)


def test_checks_need_no_heavy_library():
    script = (
        "import sys, medssl.core.prediction_options, medssl.core.bundle_folder, medssl.core.memory, "
        "medssl.core.progress; sys.exit(bool({'torch', 'monai', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
