"""The columns of tables on disk: other programs read them by these names, in this order."""

from medssl.inference import comparison, evaluation, sample_curve


def test_columns_of_scans_are_as_they_always_were():
    assert ",".join(evaluation.COLUMNS) == (
        "case,structure,dice,jaccard,hd95_mm,asd_mm,assd_mm,empty,label_ml,predicted_ml,"
        "mean_entropy_bits,pavpu,uce,ece,seconds"
    )
    assert ",".join(sample_curve.COLUMNS) == "case,samples,dice,pavpu,ece,seconds,patch_seconds,mode"
    assert ",".join(comparison.SCORES) == "dice,pavpu,dice_difference,pavpu_difference,entropy_correlation,seconds"
