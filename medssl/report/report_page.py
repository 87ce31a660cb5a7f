"""The page of one run, report.html."""

REPORT = """{% extends "base" %}
{% import "parts" as parts %}
{% block content %}
{{ parts.head(head, tiles) }}

<section>
<h2>Accuracy</h2>
{% if accuracy %}
<p class="lead">Mean ± sample standard deviation over cases. A case is missed where the label has a structure and the
prediction has nothing: it counts with Dice 0 and with the diagonal of the scan as its distance.</p>
{{ parts.grid(accuracy) }}
{{ parts.picture(strip, "Dice of every case") }}
{% else %}
<p class="lead">This run has no evaluation yet.</p>
{% endif %}
</section>

{% if cases %}
<section>
<h2>Best, median and worst case</h2>
<p class="lead">By mean Dice. The patient's right is on the left of axial and coronal slices.</p>
{% for case in cases %}
<h3>{{ case.title }} <span>{{ case.caption }}</span></h3>
{% if case.image %}{{ parts.picture(case.image, case.title) }}
{% else %}<p class="lead">{{ case.problem }}</p>
{% endif %}
{% endfor %}
</section>
{% endif %}

{% if uncertainty %}
<section>
<h2>Uncertainty</h2>
{{ parts.grid(uncertainty) }}
<div class="pair">
{{ parts.picture(scatter, "Mean entropy of every case against its Dice") }}
{{ parts.picture(calibration, "PAvPU, UCE and ECE of every case") }}
</div>
</section>
{% endif %}

{% if samples %}
<section>
<h2>Number of samples</h2>
<p class="lead">Mean over the cases after the first T of one series of Monte Carlo samples. Time is that of the sampling
alone.</p>
{{ parts.picture(samples, "Time, Dice and PAvPU against the number of samples") }}
</section>
{% endif %}

<section>
{{ parts.training(curves, training, "Dice") }}
{% if health %}
<h3>Health</h3>
<p class="lead">A latent that has collapsed shows as a spread of its means near 0, one that drowns in noise as a v² and
a variance that grow while the KL stays flat. Pseudo-labels are compared with labels that training never sees.</p>
{{ parts.picture(health, "Signs of health of the latent and of the pseudo-labels over the steps") }}
{% endif %}
{% if reconstructions %}
<h3>Reconstructions</h3>
<p class="lead">Slices of unlabelled patches and their reconstructions after the first stage.</p>
{{ parts.picture(reconstructions, "Inputs in the first row, reconstructions in the second") }}
{% endif %}
</section>

{% if every_case %}
<section class="dense">
<h2>Every case</h2>
<p class="lead">Worst first.</p>
{{ parts.grid(every_case) }}
</section>
{% endif %}

{{ parts.made(made) }}
{% endblock %}
"""
