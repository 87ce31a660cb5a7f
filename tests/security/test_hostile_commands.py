"""No command, and not the label server, runs anything of a bundle that check-bundle finds something in."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest
from security.hostile_bundles import CONFIGS, FILES, OLD_RUN, hostile_run, touching

from medssl import cli
from medssl.bundle import run_bundle
from medssl.core.errors import CheckpointError, ConfigError, error_behind
from medssl.inference import load_predictor
from medssl.report import write_report
from medssl.review.simulation.pool import score_pool
from medssl.security import check_bundle, require_harmless
from medssl.security.opening import parser_of, read_configs
from medssl.sweep import sweeps_of_file

ROOT = Path(__file__).parents[2]


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that only executed code makes, in the working folder; what hostile bundles name lies there, too."""
    file = tmp_path / "canary"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.json").write_text(json.dumps({"samples": f"${touching(file)}"}))
    (tmp_path / "hostile_package.py").write_text(f"{touching(file)}\n\n\nclass Net:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield file
    sys.modules.pop("hostile_package", None)


@pytest.fixture
def scan(tmp_path):
    """A scan that is not looked at: the bundle is refused before."""
    file = tmp_path / "scans" / "scan.nii.gz"
    file.parent.mkdir()
    file.touch()
    return file


@pytest.fixture
def run(monkeypatch, capsys):
    """The exit code of a command and what it says, all of it."""

    def made(*arguments):
        monkeypatch.setattr(sys, "argv", ["medssl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out + said.err

    return made


def evaluated(folder, **keys):
    """What the stock command says of a run that it is to evaluate."""
    with pytest.raises(RuntimeError) as caught:
        run_bundle(
            "evaluating", [ROOT / "bundles/mcdropout_unet3d/configs/evaluate.json"], output_dir=str(folder), **keys
        )
    return error_behind(caught.value)


def commands(folder, scan):
    yield "predict", scan, "out", "--bundle", folder
    yield "review", scan.parent, "--bundle", folder, "--output", "queue"
    yield "samples", folder, "--values", "1"
    yield "compare-modes", folder
    yield "quantise", folder
    yield "evaluate", folder
    yield "label", "--studies", scan.parent, "--bundle", folder, "--port", 0
    yield "label", "--studies", scan.parent, "--bundle", folder / "bundle", "--port", 0


def require_refusal_everywhere(folder, scan, canary, run):
    for command in commands(folder, scan):
        code, text = run(*command)
        assert code == 1 and "--trust opens it all the same" in text, (command[0], text)
        assert not canary.exists(), command[0]
    error = evaluated(folder)
    assert isinstance(error, ConfigError) and "--trust" in str(error) and not canary.exists()
    code, text = run("check-bundle", folder / "bundle")
    assert code == 1 and "0 findings" not in text and not canary.exists()
    assert not {"hostile_package"} & set(sys.modules)


@pytest.mark.parametrize("name", CONFIGS)
def test_hostile_configuration_is_refused_by_every_command_and_not_executed(name, tmp_path, scan, canary, run):
    require_refusal_everywhere(hostile_run(name, tmp_path / "run", canary), scan, canary, run)


@pytest.mark.parametrize("name", FILES)
def test_hostile_file_beside_the_configuration_is_refused_by_every_command(name, tmp_path, scan, canary, run):
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    FILES[name](folder / "bundle", canary)
    require_refusal_everywhere(folder, scan, canary, run)


# the others need a file elsewhere, a terminal, or end in an error of MONAI's before
EXECUTED = [
    "expression", "command", "process", "through torch", "somebody's network", "import", "import under an old name",
    "alias of ours", "alias that looks like a reference", "code behind a comment", "code in a key", "disabled by code",
    "required code", "target by an odd id", "macro of a file",
]  # fmt: skip


@pytest.mark.parametrize("name", EXECUTED)
def test_canary_is_made_where_nothing_is_checked(name, tmp_path, canary):
    """The hostile configurations are what they seem to be: MONAI itself runs them."""
    folder = hostile_run(name, tmp_path / "deep" / "run", canary)
    wanted = "network_def" if name == "somebody's network" else "samples"
    config = read_configs([folder / "bundle" / "configs" / "inference.json"])
    wanted = next((key for key in config if "@a" in key), wanted)
    try:
        parser_of(config).get_parsed_content(wanted)
    except Exception as error:  # what comes after the code does not matter
        print(error)
    assert canary.exists()


def pickled(bundle, canary):
    """Put a pickle that makes the canary where the weights were, with the checksum that it needs."""
    text = f"cpathlib\nPath.touch\n(cpathlib\nPath\n(S'{canary}'\ntRtR.".encode()
    weights = bundle / "models" / "model.pt"
    weights.write_bytes(text)
    weights.with_name("model.pt.sha256").write_text(hashlib.sha256(text).hexdigest())


def test_pickle_for_weights_is_refused_by_every_command_even_if_trusted(tmp_path, phantom_dir, scan, canary, run):
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    Path("PHANTOMS").symlink_to(phantom_dir)  # the scans are there: the weights alone are wrong
    pickled(folder / "bundle", canary)
    for command in commands(folder, scan):
        if command[0] in ("label", "evaluate"):  # load in another process, see below
            continue
        for trust in ((), ("--trust",)):
            code, text = run(*command, *trust)
            assert code == 1 and ("model.pt" in text or "nncf" in text) and not canary.exists(), (command[0], text)
    with pytest.raises(RuntimeError) as caught:
        load_predictor(folder, trust=True)
    assert isinstance(error_behind(caught.value), CheckpointError) and not canary.exists()


def test_bundle_that_is_trusted_is_opened(tmp_path, phantom_dir, canary, run, monkeypatch):
    folder = hostile_run("expression with a fallback", tmp_path / "run", canary)
    case = next((phantom_dir / "images").iterdir())
    monkeypatch.setattr(sys, "argv", ["medssl", "predict", str(case), "out", "--bundle", str(folder), "--trust"])
    try:
        cli.main()
    except SystemExit as ended:
        assert not ended.code
    assert canary.exists() and list(Path("out").glob("*_seg.nii.gz"))


@pytest.mark.parametrize("trust", ["true", True])
def test_evaluation_opens_what_is_trusted_by_its_key(tmp_path, phantom_dir, canary, trust):
    folder = hostile_run("expression with a fallback", tmp_path / "run", canary)
    Path("PHANTOMS").symlink_to(phantom_dir)
    evaluate = ROOT / "bundles/mcdropout_unet3d/configs/evaluate.json"
    run_bundle("evaluating", [evaluate], output_dir=str(folder), trust=trust, stride=[32, 32, 8], metric_workers=0)
    assert canary.exists()


def test_weights_that_lie_elsewhere_by_a_reference_are_refused_when_they_are_asked_for(tmp_path, canary):
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    file = folder / "bundle" / "configs" / "inference.json"
    changes = {"elsewhere": "evil.pt", "checkpoint": "@elsewhere"}  # in the working folder, not in the bundle
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    assert check_bundle(folder) == []
    with pytest.raises(ConfigError, match=r"evil\.pt' leaves the bundle"):
        load_predictor(folder)


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("text", ['["$open(1)"]', "{", '"%evil.json"'])
def test_configuration_that_is_no_json_object_is_an_error_of_one_sentence(tmp_path, text, trust):
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    (folder / "bundle" / "configs" / "inference.json").write_text(text)
    with pytest.raises(ConfigError, match=r"inference\.json: cannot be read"):
        load_predictor(folder, trust=trust)


def test_network_of_a_package_of_ones_own_needs_trust(tmp_path, monkeypatch):
    (tmp_path / "my_networks.py").write_text("from medssl.networks import MCDropoutUNet3D\n\nMyNet = MCDropoutUNet3D\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    file = folder / "bundle" / "configs" / "inference.json"
    content = json.loads(file.read_text())
    content["network_def"]["_target_"] = "my_networks.MyNet"
    file.write_text(json.dumps(content))
    with pytest.raises(
        ConfigError, match=r"'my_networks\.MyNet' is code of 'my_networks', neither of MONAI nor of medssl"
    ):
        load_predictor(folder)
    assert "my_networks" not in sys.modules
    assert load_predictor(folder, trust=True).weights_digest() == load_predictor(OLD_RUN).weights_digest()
    sys.modules.pop("my_networks")


def test_folder_without_a_bundle_is_named(tmp_path):
    folder = shutil.copytree(OLD_RUN, tmp_path / "run", ignore=shutil.ignore_patterns("bundle"))
    with pytest.raises(
        ConfigError, match=r"no bundle, it has no folder configs\. Give a bundle, or the folder of a finished"
    ):
        require_harmless(folder)


def test_error_names_five_findings_the_number_of_others_and_the_way_round(tmp_path, canary):
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    config = {f"x{number}": "$open('a')" for number in range(7)}
    (folder / "bundle" / "configs" / "more.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError) as caught:
        require_harmless(folder)
    text = str(caught.value)
    assert text.startswith(f"{folder / 'bundle'}: ") and text.count("configs/more.json") == 5 and "And 2 more." in text
    assert f"'medssl check-bundle {folder / 'bundle'}' lists them." in text
    assert text.endswith("--trust opens it all the same: then it can run any code.")
    require_harmless(folder, trust=True)


def test_train_sweep_and_rounds_refuse_a_hostile_bundle_before_any_training(tmp_path, bundles_dir, canary, run):
    bundle = shutil.copytree(bundles_dir / "mcdropout_unet3d", tmp_path / "bundle")
    (bundle / "configs" / "bench.json").write_text(json.dumps({"seed": f"${touching(canary)}"}))
    keys = ("--output", "out", "--dataset_name", "phantom")
    sweep, rounds = ("sweep", bundle, "--labelled", "4", *keys), ("simulate-review", "rounds", bundle, *keys)
    for command in (sweep, rounds, ("train", bundle, "--overlay", "bench", "--output_dir", "out")):
        code, text = run(*command)
        assert code == 1 and "--trust opens it all the same" in text and not canary.exists()
        assert not Path("out").exists()


def test_run_of_a_round_is_refused_unless_trusted(tmp_path, canary):
    with pytest.raises(ConfigError, match="--trust"):
        score_pool(hostile_run("expression", tmp_path / "run", canary))
    assert not canary.exists()


@pytest.mark.parametrize(
    ("keys", "overlays"),
    [
        ({"seed": "$__import__('os').abort()"}, []),
        ({"network_def#_target_": "os.abort"}, []),
        ({"network_def": "{'_target_': 'os.abort'}"}, []),
        ({"network_def": {"_target_": "os.abort"}}, []),
        ({}, ["../../evil"]),
    ],
)
def test_file_of_grids_with_hostile_keys_is_refused(tmp_path, keys, overlays):
    rows = {"a": {"bundle": "bundles/gbdl", "keys": keys, "overlays": overlays}}
    file = tmp_path / "grids.json"
    file.write_text(json.dumps({"rows": rows, "grids": {"g": {"labelled": [1], "seeds": [0], "rows": ["a"]}}}))
    with pytest.raises(ConfigError, match=r"grids\.json: .*--trust opens it all the same"):
        sweeps_of_file(file, tmp_path)
    assert len(sweeps_of_file(file, tmp_path, trust=True)) == 1


def label_app():
    pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
    from medssl.label_app.model import ServedModel
    from medssl.label_app.recipe import find_recipe
    from medssl.label_app.workspace import Workspace

    return ServedModel, find_recipe, Workspace


def test_label_server_opens_neither_a_hostile_model_nor_a_pickle(tmp_path, canary):
    served_model, _, workspace = label_app()
    hostile = served_model(workspace(tmp_path), hostile_run("expression", tmp_path / "run", canary))
    for opened in (lambda: hostile.structures, hostile.load):
        with pytest.raises(ConfigError, match="--trust"):
            opened()
    folder = shutil.copytree(OLD_RUN, tmp_path / "pickle")
    pickled(folder / "bundle", canary)
    with pytest.raises(RuntimeError) as caught:
        served_model(workspace(tmp_path), folder, trust=True).load()
    assert isinstance(error_behind(caught.value), CheckpointError) and not canary.exists()


@pytest.mark.parametrize(
    "choices",
    [
        {"network_def::_target_": "os.system", "network_def::command": "touch canary"},
        {"pavpu": "[[\"$__import__('os').abort()\"]]"},
        {"pavpu": '{"_target_": "os.abort"}'},
        {"method": "hostile_package:Net"},
    ],
)
def test_label_server_trains_with_no_hostile_choice_of_a_run(tmp_path, canary, choices):
    _, find_recipe, _ = label_app()
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    facts["config"] |= choices
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match=r"run\.json: .*--trust opens it all the same"):
        find_recipe(folder / "bundle")
    assert "hostile_package" not in sys.modules
    assert find_recipe(folder / "bundle", trust=True).keys


def test_label_server_trains_by_no_hostile_bundle_that_a_run_names(tmp_path, bundles_dir, canary):
    _, find_recipe, _ = label_app()
    bundle = shutil.copytree(bundles_dir / "mcdropout_unet3d", tmp_path / "elsewhere")
    (bundle / "configs" / "train.json").write_text(json.dumps({"seed": f"${touching(canary)}"}))
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    facts["config"]["bundle_root"] = str(bundle)
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match=r"elsewhere: .*--trust opens it all the same"):
        find_recipe(folder / "bundle")


def test_report_of_a_hostile_run_executes_nothing_and_shows_its_texts_as_texts(tmp_path, canary):
    folder = hostile_run("expression", tmp_path / "run", canary)
    facts = json.loads((folder / "run.json").read_text())
    script = "<script>alert(1)</script>"
    texts = {key: f"{value}{script}" for key, value in facts.items() if isinstance(value, str) and key != "status"}
    texts["config"] = {**facts["config"], "seed": f"${touching(canary)}", f"key{script}": script}
    texts.pop("task", None)
    (folder / "run.json").write_text(json.dumps({**facts, **texts, "structures": {"1": f"kidney{script}"}}))
    metadata = folder / "bundle" / "configs" / "metadata.json"
    metadata.write_text(metadata.read_text().replace('"version": "', f'"version": "{script}'))
    page = write_report(folder).read_text()
    assert not canary.exists() and script not in page and "&lt;script&gt;" in page


def test_runs_that_were_exported_before_have_no_findings():
    runs = [path.parents[1] for path in (ROOT / "tests" / "old_runs").glob("*/bundle/configs")]
    assert len(runs) >= 3
    assert {str(folder): check_bundle(folder) for folder in runs} == {str(folder): [] for folder in runs}


def test_predictions_in_the_folder_of_a_bundle_are_no_findings(tmp_path):
    folder = shutil.copytree(OLD_RUN / "bundle", tmp_path / "bundle")
    record = {"id": "a", "scan": "/data/a.nii.gz", "structures": {"Kidney (left)": {"ml": 1.5}}}
    (folder / "predictions").mkdir()
    (folder / "predictions" / "a.json").write_text(json.dumps(record))
    assert check_bundle(folder) == []


def test_bundle_that_was_changed_is_checked_again(tmp_path):
    folder = shutil.copytree(OLD_RUN, tmp_path / "run")
    assert check_bundle(folder) == []
    (folder / "bundle" / "configs" / "more.json").write_text('{"x": "$open(1)"}')
    assert len(check_bundle(folder)) == 1


def test_only_the_room_of_security_reads_configurations():
    words = ("ConfigParser", "read_config(", "load_config_file", "ConfigWorkflow", "create_workflow")
    sources = [path for package in ("medssl", "natural_image_ext") for path in (ROOT / package).rglob("*.py")]
    readers = {
        str(path.relative_to(ROOT))
        for path in sources
        if any(word in path.read_text() for word in words) and path.parent != ROOT / "medssl" / "security"
    }
    assert len(sources) > 100 and readers == set()
