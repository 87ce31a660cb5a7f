"""Bundles that would make a file, the canary, if anything in them were executed: a stranger's, who knows MONAI well."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

OLD_RUN = Path(__file__).parents[1] / "old_runs" / "mcdropout_unet3d"
Config = dict[str, Any]


def touching(canary: Path) -> str:
    """A Python expression that makes the canary."""
    return f"__import__('pathlib').Path({str(canary)!r}).touch()"


def by_torch(canary: Path) -> str:
    """The same without the word import, which MONAI looks for."""
    return f"torch.os.system('touch {canary}')"


def called(name: str, **arguments: Any) -> Config:
    return {"_target_": name, **arguments}


# each changes an inference.json whose `samples` is asked for by whatever opens it
CONFIGS: dict[str, Callable[[Path], Config]] = {
    "expression": lambda c: {"samples": f"${touching(c)}"},
    "expression with a fallback": lambda c: {"samples": f"${touching(c)} or 5"},
    "expression in a list in a list": lambda c: {"stride": [[f"${touching(c)}"], 32, 8]},
    "expression in an argument": lambda c: {"network_def::dropout": f"${touching(c)} or 0.3"},
    "expression in metadata's key": lambda c: {"_meta_": {"version": f"${touching(c)}"}},
    "command": lambda c: {"samples": called("os.system", command=f"touch {c}")},
    "process": lambda c: {"samples": called("subprocess.run", args=["touch", str(c)])},
    "builtin": lambda c: {"samples": called("builtins.exec", source=touching(c))},
    "bare builtin": lambda c: {"samples": called("eval", source=touching(c))},
    "through torch": lambda c: {"samples": called("torch.os.system", command=f"touch {c}")},
    "through medssl": lambda c: {"samples": called("medssl.cli.training.subprocess.call", args=["touch", str(c)])},
    "MONAI's own": lambda c: {"samples": called("monai.utils.run_cmd", cmd_list=["touch", str(c)])},
    "another run": lambda c: {"samples": called("medssl.bundle.run_bundle", run_id="run", config_files=["e.json"])},
    "somebody's network": lambda c: {"network_def": called("hostile_package.Net")},
    "somebody's method": lambda c: {"method": "hostile_package:Net"},
    "trusting itself": lambda c: {"samples": called("medssl.inference.load_predictor", bundle="a", trust=True)},
    "trusting itself in a dict": lambda c: {"kept": {"trust": {"yes": 1}}},
    "trusting itself in a call": lambda c: {"samples": "$inference.load_predictor('a', trust=not 0)"},
    "import": lambda c: {"imports": ["$import os"], "samples": f"$os.system('touch {c}')"},
    "import from": lambda c: {"imports": ["$from os import system"], "samples": f"$system('touch {c}')"},
    "import of two": lambda c: {"imports": ["$import torch; import os"]},
    "import that runs": lambda c: {"imports": ["$import medssl.__main__"]},
    "import under an old name": lambda c: {"imports": ["$import os as data"], "samples": f"$data.system('touch {c}')"},
    "import by another file's name": lambda c: {"+imports": ["$import subprocess as engine"]},
    "alias of ours": lambda c: {
        "imports": ["$import medssl.cli.training as s"],
        "samples": f"$s.subprocess.call(['touch', '{c}'])",
    },
    "alias that looks like a reference": lambda c: {
        "imports": ["$import torch as _reference_0"],
        "samples": f"$[@seed, _reference_0.os.system('touch {c}')]",
    },
    "module of a module": lambda c: {"samples": f"$torch.os.system('touch {c}')"},
    "hidden names": lambda c: {"samples": "$().__class__.__base__.__subclasses__()"},
    "method that writes": lambda c: {
        "kept": called("torch.nn.Linear", in_features=1, out_features=1),
        "samples": f"$@kept.weight.data.numpy().tofile('{c.name}')",
    },
    "method by its object": lambda c: {"kept": "$@network_def.state_dict", "samples": "$@kept()"},
    "code behind a comment": lambda c: {"samples": f"$[@stride[0#+{by_torch(c)}\n]]"},
    "code in a key": lambda c: {
        "a": {"x": 1},
        f"a, {by_torch(c)}, @a": {"x": 1, "y": "$[@#x]"},
    },
    "code in a text with a reference": lambda c: {"samples": "$'@seed'"},
    "debugger": lambda c: {"samples": called("Dataset", data=[], _mode_="debug")},
    "debugger by its other name": lambda c: {"samples": called("Dataset", data=[], _debug_={"a": 1})},
    "callable": lambda c: {"samples": called("LoadImage", _mode_="callable")},
    "disabled by code": lambda c: {"samples": called("Dataset", data=[], _disabled_=f"${touching(c)}")},
    "required code": lambda c: {"samples": called("Dataset", data=[], _requires_=[f"${touching(c)}"])},
    "target that is made": lambda c: {"kept": "$'os.' + 'system'", "samples": {"_target_": "@kept"}},
    "target by an id": lambda c: {"network_def::_target_": "os.system", "network_def::command": f"touch {c}"},
    "target by an old id": lambda c: {"network_def#_target_": "os.system", "network_def#command": f"touch {c}"},
    "target by an odd id": lambda c: {
        "kept": {"": {"command": f"touch {c}"}},
        "kept:#:_target_": "os.system",
        "samples": "@kept::",
    },
    "merged target": lambda c: {"+network_def": called("os.system", command=f"touch {c}")},
    "reader": lambda c: {"samples": called("LoadImage", reader="subprocess.getoutput", cmd=f"touch {c}")},
    "merger": lambda c: {"samples": called("monai.inferers.PatchInferer", merger_cls="hostile_package.Net")},
    "pickles": lambda c: {"samples": called("NumpyReader", allow_pickle={"yes": 1})},
    "code of a hub": lambda c: {
        "samples": called("PerceptualLoss", spatial_dims=3, network_type="medicalnet_resnet10")
    },
    "macro of a file": lambda c: {"samples": f"%{c.parent}/evil.json::samples"},
    "macro of a file beside it": lambda c: {"samples": "%../evil.json::samples"},
    "macro of a file by its key": lambda c: {f"{c.parent}/evil.json": {"x": "%#samples"}},
    "weights elsewhere": lambda c: {"checkpoint": "../../evil.pt"},
    "weights at the root": lambda c: {"checkpoint": f"$'' + '{c.parent}/evil.pt'"},
    "weights at the root by a key": lambda c: {"nothing": "", "checkpoint": f"$@nothing + '{c.parent}/evil.pt'"},
    "file that is overwritten": lambda c: {
        "nothing": "",
        "imports": ["$import medssl.data.content_cache as cache"],
        "samples": f"$cache.save_cache(@nothing + '{c}', @data_facts)",
    },
    "method that is put together": lambda c: {"samples": "$methods.find_method('hostile_' + 'package:Net')"},
    "memory bomb": lambda c: {"samples": "$[0] * 10 * 1000000000000"},
    "training": lambda c: {"samples": called("medssl.bundle.ScanTraining", output_dir="out")},
    "address": lambda c: {"samples": called("medssl.data.scans_in", source="http://127.0.0.1/a")},
}


def hostile_run(name: str, folder: Path, canary: Path) -> Path:
    """A copy of an old run with a change of CONFIGS in its bundle."""
    run = shutil.copytree(OLD_RUN, folder)
    file = run / "bundle" / "configs" / "inference.json"
    changes = CONFIGS[name](canary)
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, **changes}))
    return run


FILES: dict[str, Callable[[Path, Path], Any]] = {
    "module": lambda bundle, c: (bundle / "evil.py").write_text(touching(c)),
    "YAML beside it": lambda bundle, c: (bundle / "configs" / "inference.yaml").write_text(f"samples: ${touching(c)}"),
    "link": lambda bundle, c: (bundle / "configs" / "more").symlink_to("/etc"),
    "another configuration": lambda bundle, c: (bundle / "configs" / "train.json").write_text(
        json.dumps({"samples": f"${touching(c)}"})
    ),
    "metadata": lambda bundle, c: (bundle / "configs" / "metadata.json").write_text(
        json.dumps({"name": f"${touching(c)}"})
    ),
    "logging": lambda bundle, c: (bundle / "configs" / "logging.conf").write_text(
        f"[loggers]\nkeys=root\n[handlers]\nkeys=h\n[handler_h]\nclass=StreamHandler\nargs=({touching(c)},)\n"
    ),
}
