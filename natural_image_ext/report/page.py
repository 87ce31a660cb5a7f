"""The page of one classification run, report.html."""

PICTURES_REPORT = """{% extends "base" %}
{% import "parts" as parts %}
{% block content %}
{{ parts.head(head, tiles) }}

{% if classes %}
<section>
<h2>Classes</h2>
<p class="lead">Uncertainty is the entropy of the mean prediction. Where it can be relied on, classes with a higher one
have a lower accuracy.</p>
<div class="pair">
{{ parts.grid(classes) }}
{{ parts.picture(class_uncertainty, "Accuracy of every class against its mean uncertainty") }}
</div>
</section>

<section>
<h2>Uncertainty</h2>
<p class="lead">UCE is the mean distance of the bars from the diagonal, each weighted by its share of the pictures.</p>
{{ parts.picture(calibration, "Error against uncertainty, and how many pictures have it") }}
</section>

<section>
<h2>Pictures to look at</h2>
{% if telling %}
<p class="lead">Above each picture: its label, and what was predicted instead where that differs.</p>
{{ parts.picture(telling, "The most uncertain pictures and the surest mistakes") }}
{% else %}<p class="lead">{{ problem }}</p>
{% endif %}
</section>
{% else %}
<section>
<h2>Accuracy</h2>
<p class="lead">This run has no evaluation yet.</p>
</section>
{% endif %}

{% if samples %}
<section>
<h2>Number of samples</h2>
<p class="lead">Over all test pictures, with T samples each. Time is that of the network alone.</p>
{{ parts.picture(samples, "Time, error and UCE against the number of samples") }}
</section>
{% endif %}

<section>
{{ parts.training(curves, training, "accuracy") }}
{% if accepted %}
<h3>Pseudo-labels</h3>
<p class="lead">Share of the unlabelled pictures of a batch whose pseudo-label was accepted.</p>
{{ parts.picture(accepted, "Share of accepted pseudo-labels over the steps") }}
{% endif %}
</section>

{{ parts.made(made) }}
{% endblock %}
"""
