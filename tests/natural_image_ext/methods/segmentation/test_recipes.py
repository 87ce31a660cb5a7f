"""Settings of the frameworks on the data sets of the thesis."""

from dataclasses import replace

import pytest

from medssl.core.errors import ConfigError
from natural_image_ext.methods.segmentation import FRAMEWORKS, BetaCutMix, seg_recipe


def test_recipes_are_those_of_the_thesis():
    voc, city = seg_recipe("u2pl", "voc", "np"), seg_recipe("u2pl", "cityscapes", "dropout")
    assert (voc.crop, voc.batch_size, voc.learning_rate, voc.epochs) == (480, 12, 1e-3, 80)
    assert (city.crop, city.batch_size, city.learning_rate, city.weight_decay) == (580, 8, 5e-3, 5e-4)
    assert voc.title == "U2PL w/ NP-SemiSeg" and city.title == "U2PL w/ MC dropout"
    assert seg_recipe("mean_teacher", "camvid", "plain").title == "MT"
    assert seg_recipe("augseg", "cityscapes").epochs == 240
    assert (voc.evaluation, voc.crop_to) == ("whole", 480) and (city.evaluation, city.crop_to) == ("sliding", None)
    own = seg_recipe("u2pl", "camvid")
    assert (own.evaluation, own.crop_to, own.crop) == ("whole", None, 480)
    assert (voc.warm_up_epochs, seg_recipe("mean_teacher", "voc").warm_up_epochs) == (1, 0)
    for name, weights in {"ps_mt": (0.6, 1.5, 3.0), "cps": (1.0, 1.0, 6.0), "mean_teacher": (100, 100, 100)}.items():
        sets = ("voc", "voc_blender", "cityscapes")
        assert tuple(seg_recipe(name, data_set).unlabelled_weight for data_set in sets) == weights
    for name in FRAMEWORKS:
        classic, blender = seg_recipe(name, "voc"), seg_recipe(name, "voc_blender")
        assert replace(classic, unlabelled_weight=blender.unlabelled_weight) == blender
    with pytest.raises(ConfigError, match="'fixmatch' is unknown"):
        seg_recipe("fixmatch", "voc")
    with pytest.raises(ConfigError, match="head 'linear' is unknown"):
        seg_recipe("u2pl", "voc", "linear")


def test_frameworks_mix_as_their_authors_do():
    assert seg_recipe("augseg", "voc").options["mixer"].beta == (4.0, 4.0)
    assert seg_recipe("augseg", "voc").options["mixer"].labelled_beta == (8.0, 2.0)
    assert type(seg_recipe("ps_mt", "voc").options["mixer"]) is BetaCutMix
    assert seg_recipe("ps_mt", "cityscapes").options["mixer"].boxes == 3


def test_encoders_begin_with_imagenet_weights():
    for dataset in ("voc", "cityscapes", "folder"):
        assert {seg_recipe(name, dataset).encoder_weights for name in FRAMEWORKS} == {"imagenet"}
