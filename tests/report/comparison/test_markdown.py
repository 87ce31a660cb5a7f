"""Markdown of a comparison, letter for letter, and safe to paste whatever a method is called."""

import pytest

from medssl.report import compare, write_markdown
from medssl.report.comparison.markdown import comparison_markdown, escaped

GOLDEN = """\
### phantom

| Method | L vs. U | Dice ↑ | 95HD (mm) ↓ | Seeds |
| :-- | --: | --: | --: | --: |
| supervised | 4 vs. 0 | 0.500 ± 0.000 | 5.00 ± 0.00 | 3 |
| GBDL w/o L_MSE | 4 vs. 8 | 0.520 ± 0.014 | 4.80 ± 0.14 | 2 |

Mean ± sample standard deviation over seeds of each run's mean over cases and structures. L vs. U: labelled and \
unlabelled scans trained on. No structure was missed altogether.

### phantom: Dice against supervised (points)

| Method | L | Difference | 95 %: seeds and cases | 95 %: cases alone | Each seed | of seed | Cases |
| :-- | --: | --: | --: | --: | --: | --: | --: |
| GBDL w/o L_MSE | 4 | +2.00 \\* | [+1.00, +3.00] | [+2.00, +2.00] | +1.00, +3.00 | 0, 1 | 3 |

In points: hundredths. More is better.

- GBDL w/o L_MSE, 4 labelled: seed 2: the method lacks it.

Method minus baseline, paired by test case and seed; the structures of a case are averaged first. L: labelled scans.

“Seeds and cases”: seeds and, independently, test cases are drawn anew up to 10,000 times (crossed bootstrap, \
percentiles; scans of one patient are drawn together), so it covers what a seed draws (labelled scans, initial \
weights) and other patients. “Cases alone”: seeds averaged, test cases drawn anew, so it covers other patients but \
not another training. \\* marks a difference whose interval over seeds and cases excludes zero.

These are few seeds. As far as seeds go, the interval reaches at most from the lowest to the highest of them, and even \
that whole range misses the true difference in 1 of 2 such experiments with 2 seeds: a \\* is a hint, not a proof.
"""


def test_markdown_is_as_expected(run_of, tmp_path):
    runs = [run_of("supervised", dict.fromkeys("abc", 0.5), seed=seed) for seed in (0, 1, 2)]
    runs += [run_of("GBDL w/o L_MSE", dict.fromkeys("abc", 0.5 + gain), seed=s) for s, gain in ((0, 0.01), (1, 0.03))]
    comparison = compare([run.folder for run in runs], ["supervised"])
    assert write_markdown(comparison, tmp_path / "out" / "table.md").read_text(encoding="utf-8") == GOLDEN


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("GBDL w/o L_MSE", "GBDL w/o L_MSE"),
        ("_loud_", r"\_loud\_"),
        ("a|b", r"a\|b"),
        ("<img src=x>", r"\<img src=x\>"),
        ("two\nlines", "two lines"),
        ("*a* `b` &lt;", r"\*a\* \`b\` \&lt;"),
    ],
)
def test_signs_of_markdown_are_escaped(text, safe):
    assert escaped(text) == safe


def test_a_table_row_stays_one_row_whatever_the_method_is_called(run_of):
    runs = [run_of("a | b\n<script>", {"x": 0.5}), run_of("c", {"x": 0.5})]
    lines = comparison_markdown(compare([run.folder for run in runs])).splitlines()
    assert lines[4].startswith(r"| a \| b \<script\> | 4 vs. 8 |")
