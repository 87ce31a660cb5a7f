"""The page of one run that segments scenes, report.html."""

SCENES_REPORT = """{% extends "base" %}
{% import "parts" as parts %}
{% block content %}
{{ parts.head(head, tiles) }}

{% if classes %}
<section>
<h2>Classes</h2>
<p class="lead">Intersection over union of all pixels of all test images.</p>
{{ parts.grid(classes) }}
</section>

<section>
<h2>Best, median and worst image</h2>
{% if panels %}
<p class="lead">By the mean IoU of the classes that an image's label or prediction has: image, label, prediction,
uncertainty (entropy in nats). Pixels without a label are white.</p>
{{ parts.picture(panels, "Image, label, prediction and uncertainty of three test images") }}
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
<p class="lead">Over all test images, with T samples each.</p>
{{ parts.picture(samples, "Time, mIoU and PAvPU against the number of samples") }}
</section>
{% endif %}

<section>
{{ parts.training(curves, training, "mIoU") }}
</section>

{% if images %}
<section class="dense">
<h2>Every image</h2>
<p class="lead">Worst first.</p>
{{ parts.grid(images) }}
</section>
{% endif %}

{{ parts.made(made) }}
{% endblock %}
"""
