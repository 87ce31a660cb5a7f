"""The template of review.html. Style stands in the page itself, beside that of all pages."""

STYLE = """
.controls { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; align-items: center; gap: 8px 22px;
  margin: 14px 0 0; padding: 10px 0; background: #fff; border-bottom: 1px solid var(--line); font-size: 13.5px; }
.controls label { display: inline-flex; align-items: center; gap: 7px; cursor: pointer; }
.controls input { accent-color: var(--teal); margin: 0; }
.controls .key { display: inline-flex; align-items: center; gap: 7px; color: var(--muted); }
.controls .key i { width: 14px; height: 14px; border-radius: 3px; background: #111827; border: 3px solid; }
.controls .key .scale { border: 0; width: 96px; height: 10px; border-radius: 3px; }
.controls .end { margin-left: auto; color: var(--muted); }
.case { display: grid; grid-template-columns: 232px minmax(0, 1fr); gap: 24px; padding: 22px 0 24px;
  border-bottom: 1px solid var(--line); break-inside: avoid; }
.case h3 { display: flex; align-items: baseline; gap: 8px; margin: 0 0 8px; font-size: 15px; line-height: 1.35;
  overflow-wrap: anywhere; }
.case h3 small { flex: none; min-width: 26px; padding: 0 7px; border-radius: 9px; background: var(--ink); color: #fff;
  font-size: 12px; line-height: 19px; text-align: center; }
.case p { margin: 10px 0 0; font-size: 13px; color: var(--muted); }
.case .need { display: flex; align-items: baseline; justify-content: space-between; margin: 0; color: var(--ink);
  font-size: 25px; font-weight: 600; letter-spacing: -0.02em; line-height: 1.3; }
.need small { font-size: 13px; color: var(--muted); font-weight: 400; letter-spacing: 0; }
.case .bar { display: block; width: 100%; margin: 4px 0 12px; }
.case table { font-size: 13px; }
.case th, .case td { padding: 4px 6px; }
.case td:first-child { white-space: normal; overflow-wrap: anywhere; }
.chip { align-self: center; padding: 1px 9px; border-radius: 10px; font-size: 12px; letter-spacing: 0;
  color: var(--muted); background: var(--wash); }
.chip.yes { color: #115e59; background: #ccfbf1; }
.slices { display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 8px; align-content: start; }
.slices figure { position: relative; margin: 0; background: #000; border-radius: 6px;
  overflow: hidden; color: #fff; font-size: 12px; }
.slices svg { display: block; width: 100%; height: 100%; }
.slices path { fill: none; stroke-width: 1.6; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.slices figcaption, .slices b { position: absolute; padding: 0 5px; border-radius: 4px; background: #0006;
  pointer-events: none; }
.slices figcaption { left: 6px; bottom: 6px; }
.slices b { top: 50%; transform: translateY(-50%); font-weight: 400; }
.slices b.left { left: 6px; }
.slices b.right { right: 6px; }
.slices figure:hover .layer, main:has(#outlines:not(:checked)) .outlines,
main:has(#uncertainty:not(:checked)) .uncertainty { visibility: hidden; }
@media (max-width: 760px) { .case { grid-template-columns: 1fr; } }
@media print { .controls { position: static; } .controls label, .controls .end { display: none; } }
"""

REVIEW = (
    """{% extends "base" %}
{% import "parts" as parts %}
{% macro layer(address, slice, kind="") %}
<image class="{{ kind }}" href="{{ address }}" width="{{ slice.width_mm }}" height="{{ slice.height_mm }}"
 preserveAspectRatio="none"/>
{% endmacro %}
{% block content %}
<style>"""
    + STYLE
    + """</style>
<header>
<p class="eyebrow">medssl review</p>
<h1>{{ title }}</h1>
<p class="status">{{ order }}</p>
{% for notice in notices %}<p class="notice">{{ notice }}</p>
{% endfor %}</header>
<dl class="tiles">
{% for tile in tiles %}<div><dt>{{ tile.title }}</dt><dd>{{ tile.text }} <small>{{ tile.small }}</small></dd></div>
{% endfor %}</dl>

{% if failures %}
<section>
<h2>Failed</h2>
<p class="lead">These have no usable prediction, so nobody knows what is in them.</p>
{{ parts.grid(failures) }}
</section>
{% endif %}

{% if cards %}
<section>
<h2>The queue</h2>
<p class="lead">The most uncertain slices of each case, some millimetres apart, numbered from 0 as in the file. The
patient's right is on the left of axial and coronal slices. {{ effort }}</p>
{% if slices %}
<div class="controls">
<label><input type="checkbox" id="outlines" checked>Outlines</label>
{% for colour, name in legend %}<span class="key"><i style="border-color: {{ colour }}"></i>{{ name }}</span>
{% endfor %}
<label><input type="checkbox" id="uncertainty" checked>Uncertainty</label>
<span class="key">0 <i class="scale" style="background: {{ gradient }}"></i> {{ most_bits }} bits</span>
<span class="end">Point at a slice to see the bare scan.</span>
</div>
{% endif %}
{% for card in cards %}
<article class="case">
<div>
<h3><small>{{ card.rank }}</small>{{ card.case }}</h3>
<p class="need"><span>{{ card.need }} <small>bits</small></span>
{%- if card.chosen is not none %}<span class="chip{% if card.chosen %} yes{% endif %}">
{{- "in the budget" if card.chosen else "not in the budget" }}</span>{% endif %}</p>
{% if card.bar is not none %}<span class="bar"><i style="width: {{ card.bar }}%"></i></span>{% endif %}
<table>
<thead><tr><th class="text">Structure</th><th>bits</th><th>ml</th></tr></thead>
<tbody>
{% for name, bits, volume in card.structures %}<tr>
<td class="text">{{ name }}</td><td>{{ bits }}</td><td>{{ volume }}</td></tr>
{% endfor %}</tbody>
</table>
<p>{{ card.minutes }}, {{ card.to_check }} slices to check, {{ card.area }} cm² uncertain</p>
{% if card.where %}<p>Look at {{ card.where }}</p>{% endif %}
{% if card.note %}<p>{{ card.note }}</p>{% endif %}
</div>
{% if card.problem %}<p>{{ card.problem }}</p>
{% else %}
<div class="slices">
{% for slice in card.pictures %}<figure style="aspect-ratio: {{ card.proportion }}">
<svg viewBox="0 0 {{ slice.width_mm }} {{ slice.height_mm }}" role="img"
 aria-label="{{ card.case }}, {{ slice.title }}">
{% if slice.scan %}{{ layer(slice.scan, slice) }}{% endif %}
{{ layer(slice.uncertainty, slice, "layer uncertainty") }}
<g class="layer outlines">
{% for colour, path in slice.outlines %}<path stroke="{{ colour }}" d="{{ path }}"/>
{% endfor %}</g>
</svg>
<b class="left">{{ slice.marks[0] }}</b><b class="right">{{ slice.marks[1] }}</b>
<figcaption>{{ slice.title }}</figcaption>
</figure>
{% endfor %}</div>
{% endif %}
</article>
{% endfor %}
{% if rest %}<p class="lead">{{ rest }} more in the table below.</p>{% endif %}
</section>
{% endif %}

{% if every_case %}
<section class="dense">
<h2>Every case</h2>
{% if not cards %}<p class="lead">{{ effort }}</p>{% endif %}
{{ parts.grid(every_case) }}
</section>
{% endif %}
{% endblock %}
"""
)
