"""What all pages share: style, frame, tables, pictures as data: addresses. Jinja escapes whatever is put in."""

from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

import medssl

CSS = """
:root { --ink: #1d2939; --muted: #667085; --line: #e4e8ee; --teal: #0f766e; --wash: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 15px/1.55 Inter, "Helvetica Neue", Arial, "Liberation Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 48px 40px 24px; }
h1 { margin: 0 0 8px; font-size: 30px; line-height: 1.2; letter-spacing: -0.02em; }
h2 { margin: 56px 0 4px; font-size: 19px; letter-spacing: -0.01em; }
h3 { margin: 28px 0 8px; font-size: 14px; }
h3 span, .lead, .status, .eyebrow, footer { color: var(--muted); font-weight: 400; }
p { margin: 0 0 12px; max-width: 110ch; }
.eyebrow { margin: 0 0 6px; font-size: 13px; }
.status { margin: 0; max-width: none; }
.status b { color: var(--teal); }
.status b.failed { color: #be123c; }
.status b.running { color: #b45309; }
.notice { max-width: none; margin: 20px 0 0; padding: 12px 16px; font-weight: 600;
  color: #7a2e0e; background: #fffaeb; border-left: 4px solid #d97706; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); margin: 28px 0 0;
  border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.tiles div { padding: 16px 20px; margin-left: -1px; border-left: 1px solid var(--line); }
.tiles dt { color: var(--muted); font-size: 13px; }
.tiles dd { margin: 2px 0 0; font-size: 25px; font-weight: 600; letter-spacing: -0.02em; white-space: nowrap; }
.tiles small { font-size: 13px; color: var(--muted); font-weight: 400; letter-spacing: 0; }
.scroll { overflow-x: auto; margin: 8px 0 20px; }
table { width: 100%; border-collapse: collapse; font-size: 13.5px; }
table, .tiles { font-variant-numeric: tabular-nums; }
th, td { padding: 7px 8px; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--muted); font-weight: 400; vertical-align: bottom; line-height: 1.3; border-color: #c5ccd6; }
td { white-space: nowrap; }
th.text, td.text { text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
td small { color: var(--muted); font-size: 12px; font-weight: 400; }
tr.overall td { font-weight: 600; }
tr.first td { border-top: 2px solid #98a2b3; }
.stacked td { vertical-align: top; }
.stacked td small { display: block; }
td.wide { white-space: normal; color: var(--muted); }
.dense table { font-size: 12.5px; }
.bar { display: inline-block; width: 52px; height: 5px; margin-right: 8px; border-radius: 3px; vertical-align: 2px;
  background: var(--line); overflow: hidden; }
.bar i { display: block; height: 5px; background: var(--teal); }
figure { margin: 8px 0 0; }
img { display: block; max-width: 100%; height: auto; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 20px; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 5px 24px; margin: 18px 0 0;
  align-content: start; font-size: 13.5px; }
dl.facts dt { color: var(--muted); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
pre, .config { font: 12.5px/1.55 ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; }
pre { margin: 12px 0 0; padding: 14px 16px; background: var(--wash); border-radius: 8px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
details { margin: 18px 0 0; }
summary { cursor: pointer; color: var(--teal); font-weight: 600; font-size: 13.5px; }
details .facts { font-size: 12px; }
footer { display: flex; justify-content: space-between; margin-top: 56px; padding-top: 16px;
  border-top: 1px solid var(--line); font-size: 13px; }
@media (max-width: 760px) {
  main { padding: 28px 18px; }
  .pair, dl.facts { grid-template-columns: 1fr; }
}
@media print {
  main { padding: 0; }
  figure, tr { break-inside: avoid; }
}
"""

BASE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{{ title }}</title>
<style>{{ css }}</style>
</head>
<body>
<main>
{% block content %}{% endblock %}
<footer><span>Not a medical device. For research only.</span><span>medssl {{ version }}</span></footer>
</main>
</body>
</html>
"""

PARTS = """
{% macro picture(image, alt) %}
<figure><img src="{{ image.address }}" width="{{ image.width }}" alt="{{ alt }}"></figure>
{% endmacro %}

{% macro facts(pairs, kind="") %}
<dl class="facts {{ kind }}">
{% for name, value in pairs %}<dt>{{ name }}</dt><dd>{{ value }}</dd>
{% endfor %}</dl>
{% endmacro %}

{% macro head(run, tiles) %}
<header>
<p class="eyebrow">medssl report · {{ run.name }}</p>
<h1>{{ run.title }}</h1>
<p class="status"><b class="{{ run.status }}">{{ run.status|capitalize }}</b> · {{ run.facts|join(" · ") }}</p>
{% for notice in run.notices %}<p class="notice">{{ notice }}</p>
{% endfor %}</header>
{% if tiles %}
<dl class="tiles">
{% for tile in tiles %}<div><dt>{{ tile.title }}</dt><dd>{{ tile.text }} <small>{{ tile.small }}</small></dd></div>
{% endfor %}</dl>
{% endif %}
{% endmacro %}

{% macro training(curves, text, validated) %}
<h2>Training</h2>
{% if curves %}
<p class="lead">{{ text }}</p>
{{ picture(curves, "Loss, learning rate and validation " ~ validated ~ " over the steps") }}
{% else %}
<p class="lead">This run has no training history.</p>
{% endif %}
{% endmacro %}

{% macro made(run) %}
<section>
<h2>How it was made</h2>
{% if run.command %}<pre>{{ run.command }}</pre>{% endif %}
<div class="pair">
{{ facts(run.facts) }}
{{ facts(run.settings) }}
</div>
{% if run.config %}
<details><summary>Configuration</summary>{{ facts(run.config, "config") }}</details>
{% endif %}
</section>
{% endmacro %}

{% macro grid(table) %}
<div class="scroll"><table>
<thead><tr>
{% for column in table.columns %}<th class="{{ column.kind }}">{{ column.title }}</th>
{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}<tr{% if row.overall %} class="overall"{% elif row.first %} class="first"{% endif %}>
{% for cell in row.cells %}<td class="{{ table.columns[loop.index0].kind }}">
{%- if cell.bar is not none %}<span class="bar"><i style="width: {{ cell.bar }}%"></i></span>{% endif %}
{%- if cell.strong %}<b>{{ cell.text }}</b>{% else %}{{ cell.text }}{% endif %}
{%- if cell.small %} <small>{{ cell.small }}</small>{% endif %}</td>
{% endfor %}</tr>
{% endfor %}</tbody>
</table></div>
{% endmacro %}
"""

_PAGES = Environment(
    loader=DictLoader({"base": BASE, "parts": PARTS}), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


def render(template: str, **content: Any) -> str:
    """A page that extends "base", with its content filled in and escaped."""
    page = _PAGES.from_string(template)
    return page.render(css=Markup(CSS), version=medssl.__version__, **content)  # noqa: S704  (our own style sheet)
