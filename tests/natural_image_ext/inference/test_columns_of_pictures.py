"""The columns of tables on disk: other programs read them by these names, in this order."""

from natural_image_ext.inference import batch, evaluation, sample_curve, scene_batch, scene_curve, scene_evaluation


def test_columns_of_pictures_are_as_they_always_were():
    assert ",".join(evaluation.COLUMNS) == "sample,label,predicted,confidence,uncertainty_nats,error,top5_error"
    assert ",".join(sample_curve.COLUMNS) == "samples,error,uce,seconds"
    assert ",".join(batch.COLUMNS) == "sample,predicted,confidence,uncertainty_nats"


def test_columns_of_scenes_are_as_they_always_were():
    assert ",".join(scene_evaluation.COLUMNS) == "case,structure,miou,accuracy,pavpu,mean_entropy_nats,seconds"
    assert ",".join(scene_curve.COLUMNS) == "samples,miou,pavpu,seconds"
    assert ",".join(scene_batch.COLUMNS) == "sample,mean_entropy_nats"
