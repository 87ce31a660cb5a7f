"""Keys of a bundle: known ones reach their part, mistyped ones are refused with the nearest."""

import json
import shutil
from dataclasses import dataclass

import pytest

from medssl import __version__
from medssl.bundle import Command, ScanData, run_bundle
from medssl.bundle.command import started
from medssl.bundle.evaluation import InferenceOptions, window_of
from medssl.bundle.keys import given_options
from medssl.bundle.scans import begin_gbdl, begin_scans
from medssl.core.errors import ConfigError
from medssl.core.options import option

SCANS = ["dataset_name", "dataset_dir", "target", "window", "download", "labelled", "unlabelled", "validation", "test",
         "lists_dir", "split_seed", "seed", "paper_crop", "slice_size", "region_size", "patch_size", "cache",
         "cache_dir"]  # fmt: skip
ALL = ["bundle_root", "num_workers", "runs_dir", "title", "output_dir", "resume", "mlflow", "tracking_uri", "device",
       "amp", "batch_size", "learning_rate", "max_epochs", "steps_per_epoch", "val_interval", "save_interval",
       "samples", "num_classes"]  # fmt: skip
WINDOWS = ["channels_last", "stride", "window_batch", "mode", "backend", "metric_workers", "window_size"]
SCENES = ["image_size", "crop", "variant", "head", "encoder", "encoder_weights", "channels", "detail", "dropout",
          "aggregator", "bank_size", "evaluation", "crop_to", "pavpu_window", "pavpu_threshold_nats", "head_factor",
          "weight_decay", "unlabelled_weight", "kl_weight", "dice_weight", "ema_decay", "warm_up"]  # fmt: skip
# the choices that train.json of commit b25d7b0 listed, without what was wiring (source, split, folder, ...)
OLD_KEYS = {
    "mcdropout_unet3d": [*SCANS, *ALL, *WINDOWS],
    "gbdl": [*SCANS, *ALL, *WINDOWS, "variant", "first_stage_from", "labelled_per_batch", "latent_batch_size",
             "latent_labelled_per_batch", "latent_learning_rate", "latent_epochs", "latent_steps", "posterior_steps",
             "health_cases", "ce_weight", "dice_weight", "mse_weight", "kl_weight", "beta_ce", "beta_dice",
             "pseudo_samples", "pseudo"],
    "np_match": [*ALL, "dataset_name", "dataset_dir", "image_size", "download", "labelled", "validation", "test",
                 "split_seed", "seed", "keep_in_memory", "variant", "divergence", "channels_last", "backbone",
                 "dropout", "hidden", "norm_momentum", "bank_size", "ratio", "weight_decay", "max_grad_norm",
                 "confidence", "uncertainty", "curriculum", "align", "unlabelled_weight", "divergence_weight",
                 "ema_decay", "total_steps", "test_batch", "size"],
    "np_semiseg": [*ALL, *SCENES, "dataset_name", "dataset_dir", "classes", "lists_dir", "labelled", "validation",
                   "test", "seed", "void", "total_steps"],
}  # fmt: skip
OLD_KEYS_OF_SLICES = [*SCANS, *SCENES, "structure_share", "slice_batch"]
METHODS = {"mcdropout_unet3d": "supervised", "teacher_student": "mean_teacher"}


@pytest.fixture
def check(bundles_dir, monkeypatch):
    """Begins a training by a command with these keys, as train.json does, without anything that lasts."""
    monkeypatch.setattr("medssl.bundle.keys.be_deterministic", lambda seed: None)
    monkeypatch.setattr("medssl.bundle.keys.explain_errors", lambda debug=None: None)

    def checked(bundle="teacher_student", overlays=(), root=None, **keys):
        from natural_image_ext.bundle import begin_pictures, begin_scenes

        root = root or bundles_dir / bundle
        files = (str(root / "configs" / "train.json"), *map(str, overlays))
        with started(Command.of_arguments(run_id="training", config_file=list(files), **keys)):
            if bundle == "np_match":
                begin_pictures(root, 0)
            elif bundle == "np_semiseg":
                begin_scenes(root, 0)
            elif bundle == "gbdl":
                begin_gbdl(root, 0)
            else:
                begin_scans(root, 0, METHODS[bundle])

    return checked


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("labeled", "labelled"),
        ("labelle", "labelled"),  # what another key begins with
        ("consistency_wieght", "consistency_weight"),
        ("sample", "samples"),
        ("max_epoch", "max_epochs"),
        ("outputdir", "output_dir"),
        ("patchsize", "patch_size"),
        ("start_form", "start_from"),
    ],
)
def test_a_mistyped_key_is_refused_with_the_nearest(check, typed, meant):
    with pytest.raises(ConfigError, match=rf"key '{typed}' is unknown\. Did you mean '{meant}'\?"):
        check(**{typed: 4})


@pytest.mark.parametrize("key", ["role", "checkpoint", "predictor", "version", "monai_version", "shard"])
def test_a_key_of_prediction_evaluation_or_metadata_means_nothing_to_a_training(check, key):
    with pytest.raises(ConfigError, match=f"key '{key}' is unknown"):
        check("mcdropout_unet3d", **{key: "x"})


@pytest.mark.parametrize(
    ("key", "finding"),
    [
        ("train#optimizer", "train#optimizer: part 'optimizer' is unknown"),
        ("train#datset", "train#datset: part 'datset' is unknown. Did you mean 'dataset'?"),
        ("train::trianer", "part 'trianer' is unknown. Did you mean 'trainer'?"),
        ("validate#evaluators", "part 'evaluators' is unknown. Did you mean 'evaluator'?"),
    ],
)
def test_a_nested_key_that_nothing_reads_is_refused(check, key, finding):
    with pytest.raises(ConfigError) as caught:
        check(**{key: 1})
    assert finding in str(caught.value)


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("train#optimizer#lr", "optimizer"),
        ("netwrok_def#widths", "netwrok_def"),
        ("train#trianer#max_epochs", "trianer"),
    ],
)
def test_a_key_below_something_that_is_not_there_is_refused_by_monai(bundles_dir, key, part):
    with pytest.raises(KeyError, match=f"query key: {part}"):
        run_bundle("training", [bundles_dir / "teacher_student" / "configs" / "train.json"], **{key: 1})


@pytest.mark.parametrize("key", ["network_def#widths", "network_def#dropout", "train#trainer#max_epochs"])
def test_a_nested_key_of_something_that_is_built_is_accepted(check, key):
    check(**{key: 1})


def test_a_key_in_an_overlay_is_checked_like_one_on_the_command_line(check, tmp_path):
    overlay = tmp_path / "mine.json"
    overlay.write_text(json.dumps({"labelled": 4, "ema_dacay": 0.9}))
    with pytest.raises(ConfigError, match=r"key 'ema_dacay' is unknown\. Did you mean 'ema_decay'\?"):
        check(overlays=[overlay])


def test_an_own_key_that_another_value_refers_to_is_accepted(check, tmp_path):
    overlay = tmp_path / "mine.json"
    overlay.write_text(json.dumps({"my_width": 8, "network_def#widths": ["@my_width", "$2 * @my_width"]}))
    check(overlays=[overlay])
    overlay.write_text(json.dumps({"my_width": 8, "network_def#widths": ["@my_widths", 16], "my_widths": 4}))
    with pytest.raises(ConfigError, match="key 'my_width' is unknown"):
        check(overlays=[overlay])


def test_a_value_of_a_wrong_type_is_refused_before_anything_is_built(check, tmp_path):
    with pytest.raises(ConfigError, match=r"ema_decay 'slow': expected a number"):
        check(ema_decay="slow")
    overlay = tmp_path / "mine.json"
    overlay.write_text(json.dumps({"save_interval": 0.5}))
    with pytest.raises(ConfigError, match=r"save_interval 0.5: expected a whole number"):
        check(overlays=[overlay])


def test_a_training_says_first_what_it_is_going_to_do(check, capsys):
    with pytest.raises(ConfigError):
        check(dataset_name="liver", labeled=4)
    assert f"medssl {__version__}: training with the bundle teacher_student on liver" in capsys.readouterr().out


def test_options_of_another_method_are_refused(check):
    with pytest.raises(ConfigError, match="key 'consistency_weight' is unknown"):
        check("mcdropout_unet3d", consistency_weight=0.1)


@pytest.mark.parametrize("bundle", OLD_KEYS)
def test_every_key_of_the_bundles_of_before_is_accepted(check, bundle, monkeypatch):
    monkeypatch.setattr("medssl.bundle.keys.check_values", lambda parts: None)
    for key in OLD_KEYS[bundle]:
        check(bundle, **{key: "x"})


def test_every_key_of_the_overlay_for_slices_of_before_is_accepted(check, bundles_dir, monkeypatch):
    monkeypatch.setattr("medssl.bundle.keys.check_values", lambda parts: None)
    overlay = bundles_dir / "np_semiseg" / "configs" / "scans.json"
    for key in OLD_KEYS_OF_SLICES:
        check("np_semiseg", [overlay], **{key: "x"})
    with pytest.raises(ConfigError, match="key 'classes' is unknown"):
        check("np_semiseg", [overlay], classes="x")


@pytest.mark.parametrize("bundle", [*OLD_KEYS, "teacher_student"])
def test_shipped_overlays_have_known_keys(check, bundles_dir, bundle):
    configs = bundles_dir / bundle / "configs"
    others = ("train.json", "metadata.json", "scans")
    for overlay in sorted(configs.glob("*.json")):
        if not overlay.name.startswith(others) and not overlay.name.endswith(("evaluate.json", "inference.json")):
            check(bundle, [overlay])
    if bundle == "np_semiseg":
        check(bundle, [configs / "scans.json", configs / "scans_smoke.json"])
        check(bundle, [configs / "scans.json", configs / "scans_bench.json"])


def test_a_copy_with_keys_of_its_own_knows_them(check, bundles_dir, tmp_path):
    copy = shutil.copytree(bundles_dir / "teacher_student", tmp_path / "mine")
    train = json.loads((copy / "configs" / "train.json").read_text())
    (copy / "configs" / "train.json").write_text(json.dumps({**train, "site": "here"}))
    check(root=copy, site="there")


def test_started_from_python_alone_a_training_is_refused_with_the_function_to_use(bundles_dir, monkeypatch):
    from medssl.bundle.keys import check_keys

    monkeypatch.setattr("sys.argv", ["pytest"])
    with pytest.raises(ConfigError, match=r"would be lost\. Start it by medssl\.bundle\.run_bundle"):
        check_keys(bundles_dir / "gbdl", [])


def refusal(check, *arguments, **keys):
    """The text of the error that a command with these keys ends with."""
    with pytest.raises(ConfigError) as caught:
        check(*arguments, **keys)
    return str(caught.value)


def test_a_section_of_the_configuration_takes_no_plain_value(check, tmp_path):
    text = refusal(check, validate=3)
    assert text.startswith("key 'validate': 3 given, but it is a section of the configuration and takes no value.")
    assert "Did you mean 'validation'?" in text and "validate#evaluator" in text
    for section in ("imports", "initialize", "run", "finalize", "data", "scans", "train", "network_def", "training"):
        assert f"key '{section}': 3 given" in refusal(check, **{section: 3})
    overlay = tmp_path / "mine.json"
    overlay.write_text(json.dumps({"validate": 3}))
    assert "key 'validate': 3 given" in refusal(check, overlays=[overlay])


def test_a_whole_section_may_be_replaced_by_an_overlay(check, tmp_path):
    overlay = tmp_path / "mine.json"
    network = {"_target_": "UNet", "spatial_dims": 3, "in_channels": 1, "out_channels": "@num_classes",
               "channels": [4, 8], "strides": [[2, 2, 1]], "norm": ["group", {"num_groups": 2}]}  # fmt: skip
    overlay.write_text(json.dumps({"network_def": network, "finalize": ["$print('done')"]}))
    check(overlays=[overlay])
    overlay.write_text(json.dumps({"network_def": {**network, "chanels": [4, 8]}}))
    assert "UNet: argument 'chanels' is unknown. Did you mean 'channels'?" in refusal(check, overlays=[overlay])


def test_an_unknown_key_is_never_answered_with_wiring_or_a_wall_of_keys(check):
    text = refusal(check, zzqx=1)
    assert "The nearest of " in text and text.count(",") == 7
    assert "'medssl explain KEY' says what a key means" in text
    for typed in ("initialise", "import", "finalise", "trian"):
        hint = refusal(check, **{typed: 1})
        assert not any(f"'{name}'?" in hint for name in ("initialize", "imports", "finalize", "train", "run"))


def test_a_key_of_another_bundle_is_refused_with_the_bundles_that_know_it(check):
    text = refusal(check, "mcdropout_unet3d", variant="ic")
    assert "variant is a key of gbdl, np_match, np_semiseg, not of mcdropout_unet3d." in text


@pytest.mark.parametrize(
    ("key", "value", "finding"),
    [
        ("network_def#dropoutt", 0.1, "argument 'dropoutt' is unknown. Did you mean 'dropout'?"),
        ("network_def#widths", [4, "x"], "'x' is a text. MCDropoutUNet3D expects numbers. Give numbers"),
        ("network_def#dropout", "much", "'much' is a text. MCDropoutUNet3D expects numbers"),
        ("train#trainer#max_epoch", 3, "argument 'max_epoch' is unknown. Did you mean 'max_epochs'?"),
        ("device", "cud", "device 'cud': no such kind of device. Expected cpu, cuda or cuda:0. Leave --device out"),
        ("device", "cuda:99", "device 'cuda:99': this machine has"),
        ("samples", 100_000_000, "samples 100000000: expected at least 0 and at most 10000 (Monte Carlo samples"),
    ],
)
def test_a_value_that_nothing_can_be_built_with_is_refused_in_a_sentence(check, key, value, finding):
    assert finding in refusal(check, **{key: value})


@dataclass(frozen=True)
class Part:
    listed: int = option(1, "in train.json")
    unlisted: list[int] = option((1, 1), "not in train.json")
    third: float | None = option(None, "nowhere")


@pytest.fixture
def command_of(tmp_path):
    """A command with these keys on top of a small train.json."""
    file = tmp_path / "train.json"
    file.write_text(json.dumps({"listed": 2, "other": "@listed"}))
    return lambda **keys: started(Command((str(file),), keys))


def test_an_option_that_train_json_does_not_list_reaches_its_part(command_of):
    with command_of(unlisted="3,4"):
        assert given_options(Part, {"listed": 5}) == Part(5, [3, 4])
    with command_of():
        assert given_options(Part, {"listed": 5}) == Part(5)
        assert given_options(Part, {}) == Part(2), "as the configuration has it"


def test_a_bad_value_of_an_unlisted_option_is_refused_by_name(command_of):
    with command_of(unlisted="wide"), pytest.raises(ConfigError, match="unlisted: expected whole numbers"):
        given_options(Part, {})


@pytest.mark.parametrize("expression", ["$1 + 1", "@listed", "%listed"])
def test_an_expression_for_an_unlisted_option_is_refused(command_of, expression):
    with command_of(third=expression):
        if expression.startswith("%"):  # MONAI puts the value in its place
            assert given_options(Part, {}).third == 2
        else:
            with pytest.raises(ConfigError, match=r"third .*an expression\. This key takes a plain value"):
                given_options(Part, {})


def test_windows_of_validation_and_tests_are_those_of_window_size(command_of):
    data = ScanData(dataset_name="phantom", patch_size=[32, 32, 8])
    with command_of(window_size=[16, 16, 8]):
        assert window_of(given_options(InferenceOptions, {}), data) == (16, 16, 8)
    with command_of():
        assert window_of(given_options(InferenceOptions, {}), data) == (32, 32, 8)


def test_old_keys_of_pictures_and_scenes_have_their_old_meaning(command_of, picture_dir, scene_dir):
    from natural_image_ext.bundle import PictureChoices, PictureData, SceneChoices, SceneData

    given = {"total_steps": 70, "num_classes": 5, "size": 8, "void": 3, "max_epochs": 2, "steps_per_epoch": 3}
    pictures, scenes = ({"dataset_name": "folder", "dataset_dir": str(folder)} for folder in (picture_dir, scene_dir))
    with command_of(**given):
        data = PictureData(**pictures)
        assert (data.size, data.num_classes, PictureChoices(data).total_steps) == (8, 5, 70)
        data = SceneData(**scenes)
        assert (data.void, data.num_classes, SceneChoices(data).total_steps) == (3, 5, 70)
    with command_of(max_epochs=2, steps_per_epoch=3):
        data = PictureData(**pictures)
        assert (data.size, data.num_classes, PictureChoices(data).total_steps) == (data.source.size, 3, 6)
        data = SceneData(**scenes)
        assert (data.void, data.num_classes, SceneChoices(data).total_steps) == (255, 3, 6)


def test_none_for_a_recipes_value_is_wanted_where_the_configuration_does_not_list_it(command_of):
    from natural_image_ext.bundle import SceneChoices, SceneData

    data = SceneData(dataset_name="voc", dataset_dir="voc")
    with command_of():
        assert SceneChoices(data, crop=None).of_recipe("crop_to") == 480
    with command_of(crop_to=None, crop=None):
        choices = SceneChoices(data, crop=None)
        assert choices.of_recipe("crop_to") is None
        assert choices.of_recipe("crop") == choices.recipe.crop, "listed: null stands for the recipe's"


def test_encoder_weights_are_the_users_or_imagenets_unless_all_weights_are_replaced(command_of, tmp_path):
    from natural_image_ext.bundle import SceneChoices, SceneData
    from natural_image_ext.bundle.scene_training import first_encoder_weights

    data = SceneData(dataset_name="voc", dataset_dir="voc")

    def chosen(**keys):
        with command_of(**keys):
            return first_encoder_weights(SceneChoices(data))

    (tmp_path / "run.json").write_text("{}")
    assert chosen() == "imagenet"
    assert chosen(encoder_weights=None) is None, "null in an overlay"
    assert chosen(encoder_weights="null") is None, "null on the command line"
    assert chosen(encoder_weights="mine.pth") == "mine.pth"
    assert chosen(start_from="run") is None and chosen(resume=True, output_dir=str(tmp_path)) is None
    assert chosen(resume=True, output_dir=str(tmp_path / "new")) == "imagenet"


@pytest.mark.parametrize("overlay", ["smoke", "bench", "scans"])
def test_overlays_for_a_cpu_and_for_scans_need_no_internet(bundles_dir, overlay):
    listed = json.loads((bundles_dir / "np_semiseg" / "configs" / f"{overlay}.json").read_text())
    assert listed["encoder_weights"] is None


def test_gradients_are_limited_by_the_recipe_unless_the_user_says_otherwise(command_of):
    from natural_image_ext.bundle import PictureChoices, PictureData

    data = PictureData(dataset_name="cifar10", dataset_dir="x")
    with command_of():
        assert PictureChoices(data).of_recipe("max_grad_norm") == 3.0
        assert PictureChoices(data, variant="fixmatch").of_recipe("max_grad_norm") is None
    with command_of(max_grad_norm=0):
        assert PictureChoices(data).of_recipe("max_grad_norm") == 0
