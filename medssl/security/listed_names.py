"""The classes and functions of ours that a bundle may name, one by one: what our bundles of today and of before name.

A new name in a bundle of ours needs its line here; a test says which lines are missing and which nobody needs.
"""

# start a training, or prepare one: train.json and its overlays name them, and evaluate.json names check_scans
TRAINING_NAMES = frozenset(
    [
        "medssl.bundle.GBDLTraining",
        "medssl.bundle.ScanData",
        "medssl.bundle.ScanTraining",
        "medssl.bundle.begin_evaluation",
        "medssl.bundle.begin_gbdl",
        "medssl.bundle.begin_scans",
        "medssl.bundle.bundle_root",
        "medssl.bundle.check_scans",
        "medssl.bundle.local_device",
        "medssl.bundle.require_cases",
        "medssl.bundle.start_process_group",
        "medssl.bundle.stop_process_group",
        "medssl.bundle.tell_evaluation",
        "medssl.bundle.trainer_of",
        "natural_image_ext.bundle.PictureChoices",
        "natural_image_ext.bundle.PictureData",
        "natural_image_ext.bundle.PictureTraining",
        "natural_image_ext.bundle.SceneChoices",
        "natural_image_ext.bundle.SceneData",
        "natural_image_ext.bundle.SceneTraining",
        "natural_image_ext.bundle.SliceTraining",
        "natural_image_ext.bundle.begin_pictures",
        "natural_image_ext.bundle.begin_scenes",
        "natural_image_ext.bundle.picture_network",
        "natural_image_ext.bundle.scene_network",
    ]
)
# of bundles that were exported before the slices of scans moved to medssl
OLD_NAMES = frozenset(["natural_image_ext.inference.SliceInferer"])
OUR_NAMES = (
    TRAINING_NAMES
    | OLD_NAMES
    | frozenset(
        [
            "medssl.data.Pipeline",
            "medssl.data.facts_from_json",
            "medssl.data.read_split",
            "medssl.data.scans_in",
            "medssl.engine.explain_errors",
            "medssl.engine.local_device",
            "medssl.engine.read_facts",
            "medssl.inference.Evaluation",
            "medssl.inference.MCDropoutInferer",
            "medssl.inference.PredictionEngine",
            "medssl.inference.Predictor",
            "medssl.inference.SliceInferer",
            "medssl.inference.evaluation_folder",
            "medssl.inference.load_predictor",
            "medssl.methods.build_teacher",
            "medssl.methods.gbdl_variant",
            "medssl.security.gate.require_harmless",
            "natural_image_ext.data.read_image_split",
            "natural_image_ext.data.read_scene_split",
            "natural_image_ext.inference.PictureEvaluation",
            "natural_image_ext.inference.PicturePredictions",
            "natural_image_ext.inference.PicturePredictor",
            "natural_image_ext.inference.SampledInferer",
            "natural_image_ext.inference.SceneEvaluation",
            "natural_image_ext.inference.ScenePredictions",
            "natural_image_ext.inference.ScenePredictor",
            "natural_image_ext.inference.find_pictures",
            "natural_image_ext.inference.kept_settings",
            "natural_image_ext.inference.load_picture_predictor",
            "natural_image_ext.inference.load_scene_predictor",
            "natural_image_ext.inference.scene_inferer",
            "natural_image_ext.networks.build_classifier",
            "natural_image_ext.networks.build_segmentation",
        ]
    )
)
# every network, loss and method of ours is a module of torch: it computes, and neither reads nor writes a file
MODULE_PACKAGES = tuple(
    f"{package}.{part}" for package in ("medssl", "natural_image_ext") for part in ("networks", "losses", "methods")
)
IMPORTED_MODULES = frozenset(name.rpartition(".")[0] for name in OUR_NAMES)
