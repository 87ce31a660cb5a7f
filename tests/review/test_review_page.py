import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from medssl.review.queue import build_queue
from medssl.review.review_page import write_page
from medssl.review.sources import Source, source_of_run
from medssl.review.tables import print_queue

NEEDS = {"calm": 0.1, "wild": 0.9, "fair": 0.55}


class Reader(HTMLParser):
    """Tags in their order with attributes, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def count(self, tag, kind=""):
        return sum(name == tag and kind in attrs.get("class", "") for name, attrs in self.tags)


@pytest.fixture
def page_of(tmp_path):
    def write(queue, **options):
        return write_page(queue, tmp_path / "review.html", **options).read_text()

    return write


def test_page_is_one_file_without_scripts_and_addresses(make_run, page_of):
    page = page_of(build_queue(source_of_run(make_run(NEEDS))))
    assert "http:" not in page and "https:" not in page and "//" not in re.sub(r"base64,[\w+/=]+", "", page)
    reader = Reader(page)
    assert reader.count("script") == 0 and reader.count("link") == 0
    addresses = [attrs[key] for _, attrs in reader.tags for key in ("src", "href") if key in attrs]
    assert addresses and all(address.startswith("data:image/") for address in addresses)
    assert "default-src 'none'" in page


def test_cards_stand_in_the_order_of_need_with_their_layers(make_run, page_of):
    reader = Reader(page_of(build_queue(source_of_run(make_run(NEEDS))), slices=1))
    assert [reader.text.index(case) for case in ("wild", "fair", "calm")] == sorted(
        reader.text.index(case) for case in NEEDS
    )
    assert reader.count("article", "case") == 3 and reader.count("svg") == 3
    assert reader.count("image", "uncertainty") == 3 and reader.count("image") == 6 and reader.count("path") >= 3
    for text in ("kidney", "tumour", "3.46", "axial", "30 s to open a case"):
        assert text in reader.text


def test_cases_beyond_the_limit_are_rows_without_pictures(make_run, page_of):
    queue = build_queue(source_of_run(make_run({f"case{n}": 0.1 * n for n in range(1, 8)})))
    reader = Reader(page_of(queue, cases=2))
    assert reader.count("article", "case") == 2 and "5 more in the table below" in reader.text
    assert all(f"case{n}" in reader.text for n in range(1, 8))
    none = Reader(page_of(queue, cases=0))
    assert none.count("svg") == 0 and none.count("article") == 0 and "30 s to open a case" in none.text


def test_names_are_escaped_wherever_they_stand(make_run, page_of):
    evil = "<img src=x onerror=alert(1)>"
    run = make_run(NEEDS, structures={1: f"a{evil}", 2: f"b{evil}"}, name=evil)
    source = source_of_run(run)
    failing = Source(evil, source.cases, {evil: f"why {evil}"}, source.structures, source.window)
    page = page_of(build_queue(failing, budget_seconds=60))
    assert "<img" not in page and page.count("&lt;img src=x onerror") > 5


def test_failures_and_the_budget_are_said_first(make_run, page_of):
    source = source_of_run(make_run(NEEDS))
    failing = Source("x", source.cases, {"broken": "broken.nii.gz: truncated"}, source.structures)
    text = Reader(page_of(build_queue(failing, budget_seconds=80))).text
    assert text.index("broken.nii.gz: truncated") < text.index("The queue")
    assert "1 case has no usable prediction" in text and "in the budget" in text and "not in the budget" in text
    nothing = Reader(page_of(build_queue(source, budget_seconds=1))).text
    assert "No case fits into the budget: the shortest takes 0.5 min" in nothing


def test_a_scan_that_is_damaged_costs_its_pictures_only(make_run, page_of, tmp_path):
    queue = build_queue(source_of_run(make_run(NEEDS)))
    scan = tmp_path / "scans" / "wild.nii.gz"
    scan.write_bytes(scan.read_bytes()[:2000])
    page = page_of(queue)
    assert "No pictures:" in page and "wild.nii.gz" in page and str(tmp_path) not in page
    assert Reader(page).count("svg") > 0


def test_a_queue_of_failures_alone_is_a_page(page_of):
    text = Reader(page_of(build_queue(Source("x", [], {"a": "gone"}, {1: "kidney"})))).text
    assert "gone" in text and "The queue" not in text


@pytest.mark.parametrize("width", [60, 100, 200])
def test_terminal_shows_failures_and_the_top_of_the_queue(make_run, width):
    source = source_of_run(make_run({f"case{n}": 0.1 * n for n in range(1, 8)}))
    failing = Source("x", source.cases, {"[red]broken": "no such file"}, source.structures)
    console = Console(width=width, record=True, file=io.StringIO())
    print_queue(build_queue(failing, budget_seconds=90), console, top=3)
    text = console.export_text()
    assert text.index("[red]broken") < text.index("case7") < text.index("case6") < text.index("case5")
    assert "case4" not in text and "and 4 more" in text and "cases chosen" in text
    assert ("kidney (ml)" in " ".join(text.split())) == (width == 200)
