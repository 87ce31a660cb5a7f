"""Our bundles hold choices and no logic; `check_bundle` refuses what would run a stranger's code."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from medssl.security import check_bundle, check_config

BUNDLES = sorted(path for path in (Path(__file__).parents[2] / "bundles").iterdir() if path.is_dir())
CONFIGS = sorted(path for bundle in BUNDLES for path in (bundle / "configs").glob("*.json"))
PACKAGES = {"monai", "torch", "ignite", "medssl", "natural_image_ext"}
MOST_EXPRESSIONS = 15


def texts(config: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(config, dict):
        for name, value in config.items():
            yield from texts(value, name)
    elif isinstance(config, list):
        for value in config:
            yield from texts(value, key)
    elif isinstance(config, str):
        yield key, config


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_our_bundles_have_no_findings(bundle):
    assert check_bundle(bundle) == []


def test_trained_bundle_has_no_findings(trained_run):
    assert check_bundle(trained_run / "bundle") == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parents[1].name}/{path.name}")
def test_targets_are_of_known_packages_and_expressions_few(path):
    config = json.loads(path.read_text())
    targets = [text for key, text in texts(config) if key.endswith("_target_")]
    assert all(target.split(".")[0] in PACKAGES or "." not in target for target in targets)
    expressions = [text for _, text in texts(config) if text.startswith("$") and not text.startswith("$import ")]
    print(f"{path.name}: {len(expressions)} expressions")
    assert len(expressions) <= MOST_EXPRESSIONS
    parsed = [ast.walk(ast.parse(text[1:].replace("@", "_").replace("#", "_"), mode="eval")) for text in expressions]
    assert not [node for tree in parsed for node in tree if isinstance(node, ast.Lambda | ast.ListComp | ast.IfExp)]
    if path.name != "metadata.json":
        assert not [text for _, text in texts(config) if text.startswith(("/", "~", "C:"))]


HOSTILE = {
    "os.system": {"x": {"_target_": "os.system", "command": "id"}},
    "posix": {"x": {"_target_": "posix.system", "command": "id"}},
    "subprocess": {"x": {"_target_": "subprocess.run", "args": ["id"]}},
    "builtins.eval": {"x": {"_target_": "builtins.eval", "source": "1"}},
    "bare builtin": {"x": {"_target_": "eval", "source": "1"}},
    "bare open": {"x": {"_target_": "open", "file": "a"}},
    "importlib": {"x": {"_target_": "importlib.import_module", "name": "os"}},
    "runpy": {"x": {"_target_": "runpy.run_path", "path_name": "a"}},
    "pickle": {"x": {"_target_": "pickle.load", "file": "@f"}},
    "through torch": {"x": {"_target_": "torch.os.system", "command": "id"}},
    "through medssl": {"x": {"_target_": "medssl.cli.subprocess.run", "args": ["id"]}},
    "through an allowed part": {"x": {"_target_": "medssl.engine.explaining.sys.exit"}},
    "through torch.nn": {"x": {"_target_": "torch.nn.modules.module.functools.reduce"}},
    "torch.load": {"x": {"_target_": "torch.load", "f": "model.pt"}},
    "torch.hub": {"x": {"_target_": "torch.hub.load", "repo_or_dir": "a/b", "model": "c"}},
    "C++ extension": {"x": {"_target_": "torch.utils.cpp_extension.load", "name": "a", "sources": ["a.cpp"]}},
    "torch script": {"x": {"_target_": "torch.jit.load", "f": "a.ts"}},
    "MONAI's run_cmd": {"x": {"_target_": "monai.utils.run_cmd", "cmd_list": ["id"]}},
    "bare run_cmd": {"x": {"_target_": "run_cmd", "cmd_list": ["id"]}},
    "MONAI's import": {"x": {"_target_": "monai.data.utils.optional_import", "module": "os"}},
    "MONAI's pickle": {"x": {"_target_": "monai.data.utils.pickle_hashing", "item": "a"}},
    "a method of somebody's": {"method": "os:system"},
    "a method of somebody's by its builder": {"x": {"_target_": "medssl.methods.find_method", "name": "os.path:join"}},
    "another configuration": {"x": {"_target_": "medssl.bundle.run_bundle", "run_id": "run", "config_files": []}},
    "another bundle": {"x": {"_target_": "monai.bundle.run", "config_file": "b.json"}},
    "a script beside it": {"x": {"_target_": "scripts.evil.main"}},
    "target expression": {"x": {"_target_": "$@model.forward"}},
    "target reference": {"x": {"_target_": "@a"}},
    "target list": {"x": {"_target_": ["os.system"]}},
    "hidden target": {"x": {"_target_": "torch.nn.Module.__subclasses__"}},
    "overlay key": {"network_def#_target_": "os.system"},
    "overlay key, new": {"network_def::_target_": "os.system"},
    "deep": {"a": [{"b": [{"c": {"_target_": "os.system"}}]}]},
    "debugger": {"x": {"_target_": "Dataset", "_mode_": "debug"}},
    "callable": {"x": {"_target_": "LoadImage", "_mode_": "callable"}},
    "disabled by code": {"x": {"_target_": "Dataset", "_disabled_": "$__import__('os').system('id')"}},
    "required code": {"x": {"_target_": "Dataset", "_requires_": ["$exec('import os')"]}},
    "reader": {"x": {"_target_": "LoadImaged", "keys": "image", "reader": "subprocess.getoutput", "cmd": "id"}},
    "reader list": {"x": {"_target_": "LoadImage", "reader": ["NibabelReader", "os.abort"]}},
    "reader reference": {"x": {"_target_": "LoadImage", "reader": "@r"}, "r": "$'os.' + 'abort'"},
    "pickled array": {"x": {"_target_": "NumpyReader", "allow_pickle": True}},
    "pickled weights": {"x": {"_target_": "CheckpointLoader", "load_path": "a.pt", "weights_only": False}},
    "import os": {"imports": ["$import os"]},
    "import as": {"imports": ["$import subprocess as data"]},
    "from import": {"imports": ["$from os import system"]},
    "two statements": {"imports": ["$import torch; import os"]},
    "two names": {"imports": ["$import torch, os"]},
    "import anywhere": {"x": "$import os"},
    "__import__": {"x": "$__import__('os').system('id')"},
    "eval": {"x": "$eval('1+1')"},
    "open": {"x": "$open('a').read()"},
    "getattr": {"x": "$getattr(@a, 'b')"},
    "dunder chain": {"x": "$().__class__.__bases__[0].__subclasses__()"},
    "dunder of a reference": {"x": "$@network.__init__.__globals__['os']"},
    "hidden attribute": {"x": "$@loader._iterator"},
    "module of a module": {"x": "$torch.os.system('id')"},
    "torch.load expression": {"x": "$torch.load('a.pt')"},
    "alias": {"imports": ["$import medssl.cli as c"], "x": "$c.subprocess.run(['id'])"},
    "module object": {"m": "$torch", "x": "$@m.os.system('id')"},
    "MONAI expression": {"x": "$monai.transforms.LoadImage('os.abort')"},
    "numpy": {"x": "$np.load('a.npy', allow_pickle=True)"},
    "lambda": {"x": "$(lambda: 1)()"},
    "comprehension": {"x": "$[i for i in @cases]"},
    "condition": {"x": "$1 if @a else 2"},
    "walrus": {"x": "$(a := @b)"},
    "f-string": {"x": "$f'{@a}'"},
    "format": {"x": "$'{0.__class__}'.format(@a)"},
    "bytes": {"x": "$b'abc'"},
    "power": {"x": "$9 ** 9 ** 9"},
    "syntax": {"x": "$@a +"},
    "absolute path": {"dataset_dir": "/etc"},
    "home": {"dataset_dir": "~/.ssh"},
    "drive": {"dataset_dir": "C:\\Users"},
    "parent": {"output_dir": "runs/../../x"},
    "absolute in expression": {"x": "$'/etc/passwd'"},
    "parent in expression": {"x": "$@bundle_root + '/../../x'"},
    "macro": {"x": "%/etc/passwd#x"},
    "macro parent": {"x": "%../other.json#x"},
    "macro file": {"x": "%other.json#x"},
    "macro address": {"x": "%https://example.org/a.json#x"},
    "address": {"tracking_uri": "http://example.org"},
    "file address": {"x": "file:///etc/passwd"},
    "root by an empty text": {"a": "", "x": "$@a + '/etc/passwd'"},
    "root by an empty folder": {"bundle_root": "", "x": "$@bundle_root + '/etc/passwd'"},
    "root by a blank folder": {"output_dir": " ", "x": "$@output_dir + '/etc'"},
    "root by a folder of a key": {"a": "", "bundle_root": "@a", "x": "$@bundle_root + '/etc'"},
    "root by a copied folder": {"a": "", "bundle_root": "%a", "x": "$@bundle_root + '/etc'"},
    "root by a made folder": {"bundle_root": "$@facts.title", "x": "$@bundle_root + '/etc'"},
    "root by a merged folder": {"+bundle_root": "", "x": "$@bundle_root + '/etc'"},
    "folder that is a list": {"bundle_root": ["a"]},
    "parent in two pieces": {"x": "$'.' + './x'"},
    "parent in a folder and a piece": {"x": "$@bundle_root + '/.' + './x'"},
    "parent by a folder's end": {"bundle_root": ".", "x": "$@bundle_root + './x'"},
    "parent of a data set": {"dataset_dir": "$'../' + @dataset_name"},
    "text of two keys": {"a": "th", "b": "is:x", "method": "$@a + @b"},
    "text of two constants": {"x": "$'a' + 'b'"},
    "text by a format": {"a": "th%s", "method": "$@a % 'is:x'"},
    "text by a list": {"x": "$[@a] + ['b']"},
    "path by a division": {"x": "$inference.evaluation_folder(@a, @b) / 'c'"},
    "text of a file": {"imports": ["$import medssl.engine as e"], "x": "$e.read_facts('a')['output_dir']"},
    "product of a list": {"x": "$[0] * 10 * 1000000000000"},
    "product of a text": {"x": "$'a' * 1000000"},
    "product of a list by its key": {"a": [0], "x": "$@a * 1000000"},
    "product of a text by its key": {"a": "b", "x": "$@a * 1000"},
    "product of an expression": {"a": "$[0]", "x": "$@a * 1000"},
    "product of an attribute": {"x": "$@a.patch_size * 1000"},
    "product of a product": {"a": 1000, "b": "$@a * @a", "x": "$(@b - 1) * (@b - 1)"},
    "product of large numbers": {"x": "$1000000000000 * 2"},
    "product with a large number by its key": {"a": 1000000000000, "x": "$@a * 2"},
    "copies of copies": {"a": ["x"] * 9, "b": ["%a"] * 9, "c": ["%b"] * 9},
    "writes a cache": {"imports": ["$import medssl.data.content_cache as cc"], "x": "$cc.save_cache('x', @d)"},
    "writes a cache by its place": {"x": {"_target_": "medssl.data.content_cache.save_cache", "path": "x"}},
    "writes phantoms": {"x": {"_target_": "medssl.data.write_phantoms", "folder": "x"}},
    "writes a table": {"x": {"_target_": "medssl.report.write_differences_csv", "path": "x"}},
    "run folder": {"x": {"_target_": "medssl.core.run_folder.RunFolder", "path": "x"}},
    "finds a method": {"imports": ["$import medssl.methods as m"], "x": "$m.find_method(@a)"},
    "finds a method by target": {"x": {"_target_": "medssl.methods.find_method", "name": "@a"}},
    "exports": {"x": {"_target_": "medssl.inference.export.export_bundle"}},
    "sends to a server": {"x": {"_target_": "MLFlowHandler", "tracking_uri": "@a"}},
    "writes checkpoints": {"x": {"_target_": "CheckpointSaver", "save_dir": "x", "save_dict": {}}},
    "writes checkpoints by ignite": {"x": {"_target_": "ignite.handlers.DiskSaver", "dirname": "x"}},
    "reads checkpoints": {"x": {"_target_": "CheckpointLoader", "load_path": "x", "load_dict": {}}},
    "writes events": {"x": {"_target_": "TensorBoardStatsHandler", "log_dir": "x"}},
    "writes images": {"x": {"_target_": "SaveImaged", "keys": "image"}},
    "writes classes": {"x": {"_target_": "SaveClassificationd", "keys": "image"}},
    "reads pickled arrays": {"x": {"_target_": "LoadImage"}},
    "keeps a cache": {"x": {"_target_": "PersistentDataset", "data": [], "transform": [], "cache_dir": "x"}},
    "trainer of MONAI": {"x": {"_target_": "SupervisedTrainer"}},
    "weights of a server": {"x": {"_target_": "DenseNet121", "pretrained": True}},
    "weights of a server by default": {"x": {"_target_": "EfficientNetBN", "model_name": "efficientnet-b0"}},
    "weights of an address": {"x": {"_target_": "HoVerNet", "pretrained_url": "@a"}},
    "rates in a file": {"x": {"_target_": "monai.optimizers.LearningRateFinder", "cache_dir": "x"}},
    "merger in a file": {"x": {"_target_": "monai.inferers.ZarrAvgMerger", "store": "x"}},
    "import of the command line": {"imports": ["$import medssl.cli.app as a"]},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_configuration_is_refused(tmp_path, name):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "train.json").write_text(json.dumps(HOSTILE[name]))
    findings = check_bundle(tmp_path)
    assert findings and all(finding.startswith("configs/train.json: ") for finding in findings)


HARMLESS = {
    "classes": {"x": {"_target_": "monai.networks.nets.UNet"}, "y": {"_target_": "torch.optim.Adam", "lr": 0.1}},
    "bare class": {"x": {"_target_": "ValidationHandler", "interval": 1}},
    "own function": {"x": {"_target_": "medssl.data.read_split", "path": "data/split.json"}},
    "own call": {"imports": ["$import medssl.data as data"], "x": "$data.scans_in(@folder)"},
    "references": {"x": "@a#b", "y": "$@a::b.role('test')", "z": "$not @##c", "w": "%run", "v": "%a#b"},
    "arithmetic": {
        "x": "$@max_epochs * (@steps - 1) // 2",
        "y": "$@bundle_root + '/models/model.pt'",
        "z": "$@steps + 1",
    },
    "cuda": {"x": "$torch.cuda.is_available()", "y": "$torch.device('cpu')"},
    "file names": {"x": "split.json", "y": "model.pt", "z": "test.list", "version": "1.0.2", "r": "NibabelReader"},
    "number times a number of the bundle": {"steps": 50, "x": "$@steps * 2"},
    "data set": {"dataset_name": "kits19", "dataset_dir": "$'data/' + @dataset_name"},
    "folder of a folder": {"bundle_root": ".", "dataset_dir": "$@bundle_root + '/scans'"},
    "place of definition": {"x": {"_target_": "medssl.data.pipeline.Pipeline"}},
    "networks": {"x": {"_target_": "SegResNet"}, "y": {"_target_": "medssl.networks.unet.MCDropoutUNet3D"}},
    "parts": {"x": {"_target_": "DiceLoss"}, "y": {"_target_": "SlidingWindowInferer"}, "z": {"_target_": "Flipd"}},
    "own parts": {"x": {"_target_": "medssl.losses.DiceCE"}, "method": "medssl.methods.supervised:Supervised"},
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_configuration_passes(name):
    assert check_config(HARMLESS[name]) == []


def test_name_imported_in_one_file_is_known_in_its_overlay(tmp_path):
    (tmp_path / "train.json").write_text('{"imports": ["$import medssl.engine as engine"]}')
    (tmp_path / "ddp.json").write_text('{"+initialize": ["$engine.start_process_group()"]}')
    assert check_bundle(tmp_path) == []
    (tmp_path / "other.json").write_text('{"imports": ["$import os as engine"]}')
    assert check_bundle(tmp_path) != [], "an overlay must not give the name another meaning"


LOGGING = "[loggers]\nkeys=root\n[handlers]\nkeys=h\n[handler_h]\nclass={kind}\nargs={args}\n"


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("StreamHandler", "(__import__('os').system('id'),)"),
        ("__import__('os').system", "('id',)"),
        ("FileHandler", "('/etc/cron.d/x',)"),
        ("handlers.SocketHandler", "('example.org', 80)"),
    ],
)
def test_logging_configuration_that_would_be_evaluated_is_refused(tmp_path, kind, args):
    (tmp_path / "train.json").write_text("{}")
    (tmp_path / "logging.conf").write_text(LOGGING.format(kind=kind, args=args))
    assert check_bundle(tmp_path) != []
    (tmp_path / "logging.conf").write_text(LOGGING.format(kind="StreamHandler", args="(sys.stderr,)"))
    assert check_bundle(tmp_path) == []


@pytest.mark.parametrize("name", ["scripts/evil.py", "models/model.ts", "configs/train.yaml", "models/weights.pkl"])
def test_files_that_can_hold_code_are_refused(tmp_path, name):
    (tmp_path / "train.json").write_text("{}")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    assert [finding for finding in check_bundle(tmp_path) if name in finding]


def test_link_out_of_the_bundle_is_refused(tmp_path):
    (tmp_path / "train.json").write_text("{}")
    (tmp_path / "data").symlink_to("/etc")
    assert [finding for finding in check_bundle(tmp_path) if "link" in finding]


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00", '{"x": ' * 2000 + "1" + "}" * 2000])
def test_file_that_cannot_be_read_is_a_finding_and_no_crash(tmp_path, text):
    (tmp_path / "train.json").write_text(text)
    assert any("cannot be read" in finding for finding in check_bundle(tmp_path))


def test_folder_without_a_configuration_is_a_finding(tmp_path):
    assert "no configuration" in check_bundle(tmp_path)[0]


@pytest.mark.parametrize("name", ["inference.json", "scans_inference.json"])
def test_configuration_that_predicts_starts_no_training(tmp_path, name):
    (tmp_path / "configs").mkdir()
    config = {"imports": ["$import medssl.bundle as bundle"], "x": {"_target_": "medssl.bundle.ScanTraining"}}
    (tmp_path / "configs" / "train.json").write_text(json.dumps(config))
    assert check_bundle(tmp_path) == []
    (tmp_path / "configs" / name).write_text(json.dumps(config))
    findings = check_bundle(tmp_path)
    assert len(findings) == 2 and all("starts a training" in finding for finding in findings)


def test_folder_of_another_file_of_the_bundle_may_not_be_empty(tmp_path):
    (tmp_path / "train.json").write_text('{"bundle_root": ".", "x": "$@bundle_root + \'/etc\'"}')
    assert check_bundle(tmp_path) == []
    (tmp_path / "other.json").write_text('{"bundle_root": ""}')
    assert ["empty path" in finding for finding in check_bundle(tmp_path)] == [True]


def test_list_of_another_file_of_the_bundle_is_no_factor(tmp_path):
    (tmp_path / "train.json").write_text('{"steps": 2, "x": "$@steps * 1000"}')
    assert check_bundle(tmp_path) == []
    (tmp_path / "other.json").write_text('{"steps": [2]}')
    assert ["fill the memory" in finding for finding in check_bundle(tmp_path)] == [True]
