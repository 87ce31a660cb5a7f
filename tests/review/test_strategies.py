import math
import random

import pytest

from medssl.core.errors import ConfigError, DataError
from medssl.review.strategies import STRATEGIES, need_of, order


def record(case: str, **around: float) -> dict:
    structures = {name: {"surroundings_entropy_bits": bits, "volume_ml": 1.0} for name, bits in around.items()}
    return {"id": case, "score": sum(around.values()) / len(around), "structures": structures}


RECORDS = [
    record("c", kidney=0.30, tumour=0.30),
    record("a", kidney=0.10, tumour=0.70),
    record("b", kidney=0.50, tumour=0.00),
    record("d", kidney=0.30, tumour=0.30),
]


def test_most_uncertain_is_a_plain_sort_by_score_with_ties_by_id():
    assert order(RECORDS, "uncertain") == ["a", "c", "d", "b"]


def test_least_certain_structure_is_a_plain_sort_by_the_worst_of_each_case():
    assert order(RECORDS, "structure") == ["a", "b", "c", "d"]


def test_a_named_structure_alone_decides():
    assert order(RECORDS, "structure", structure="kidney") == ["b", "c", "d", "a"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_order_does_not_depend_on_that_of_the_records(strategy):
    shuffled = random.Random(3).sample(RECORDS, len(RECORDS))
    assert order(shuffled, strategy) == order(RECORDS, strategy)


def test_random_order_follows_the_seed_alone():
    many = [record(f"case{n}", heart=n / 50) for n in range(50)]
    assert order(many, "random", seed=1) == order(many, "random", seed=1)
    assert order(many, "random", seed=1) != order(many, "random", seed=2)
    assert sorted(order(many, "random")) == sorted(r["id"] for r in many)
    certain = [{**r, "score": 0.0} for r in many]
    assert order(certain, "random", seed=1) == order(many, "random", seed=1)


def test_a_further_record_leaves_the_random_order_of_the_others():
    many = [record(f"case{n}", heart=0.1) for n in range(20)]
    longer = order([*many, record("new", heart=0.1)], "random")
    assert [case for case in longer if case != "new"] == order(many, "random")


def test_an_entropy_that_is_no_number_comes_first():
    assert order([*RECORDS, record("z", kidney=math.nan)], "uncertain")[0] == "z"


def test_needs_are_the_entropies_in_bits():
    assert need_of(RECORDS[1], "uncertain") == pytest.approx(0.4)
    assert need_of(RECORDS[1], "structure") == pytest.approx(0.7)
    assert need_of(RECORDS[1], "structure", "kidney") == pytest.approx(0.1)


def test_no_records_give_an_empty_order():
    assert order([], "uncertain") == []


def test_an_unknown_strategy_is_named_with_those_there_are_even_without_records():
    with pytest.raises(ConfigError, match=r"'oldest': expected one of uncertain, structure, random"):
        order([], "oldest")


def test_an_unknown_structure_is_named_with_those_there_are():
    with pytest.raises(ConfigError, match=r"'liver': not among those of case c \(kidney, tumour\)"):
        order(RECORDS, "structure", structure="liver")


def test_a_structure_for_a_strategy_that_looks_at_all_is_refused():
    with pytest.raises(ConfigError, match="looks at all of them"):
        order(RECORDS, "uncertain", structure="kidney")


def test_a_record_without_scores_is_named():
    old = {"id": "x", "structures": {"heart": {"volume_ml": 1.0}}}
    for strategy in ("uncertain", "structure"):
        with pytest.raises(DataError, match="case x"):
            need_of(old, strategy)
    with pytest.raises(DataError, match="names no structure"):
        need_of({"id": "x", "score": 0.1, "structures": {}}, "structure")
