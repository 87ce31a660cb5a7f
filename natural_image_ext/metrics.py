"""What is measured of pictures and scenes, besides what scans have, too."""

from medssl.metrics.catalogue import CASE_SECONDS, LATENT_SHARE, NATS, PAVPU, SECONDS, UCE, Metric

ERROR = Metric("error", "Error", "down", axis="error")
TOP5_ERROR = Metric("top5_error", "Top-5 error", "down")
UNCERTAINTY = Metric("uncertainty_nats", "Entropy", unit=NATS)
MEAN_UNCERTAINTY = Metric("mean_uncertainty_nats", "Mean entropy", unit=NATS)
CONFIDENCE = Metric("confidence", "Confidence")
PICTURE_ACCURACY = Metric("accuracy", "Accuracy", "up", axis="accuracy")

MIOU = Metric("miou", "mIoU", "up", importance=1)
PIXEL_ACCURACY = Metric("accuracy", "Pixel accuracy", "up", importance=2)
IMAGE_ACCURACY = Metric("accuracy", "Accuracy", "up")  # of a single image, in the table of all of them
SCENE_ENTROPY = Metric("mean_entropy_nats", "Entropy", unit=NATS)
SECONDS_PER_IMAGE = Metric("seconds_per_image", "Time an image", unit=SECONDS, importance=10)

PICTURE_METRICS = (UCE, ERROR, TOP5_ERROR, UNCERTAINTY, LATENT_SHARE)
PICTURE_COLUMNS = (CONFIDENCE, MEAN_UNCERTAINTY)
SCENE_METRICS = (MIOU, PIXEL_ACCURACY, PAVPU, SCENE_ENTROPY, SECONDS_PER_IMAGE, LATENT_SHARE)
SCENE_COLUMNS = (CASE_SECONDS,)
