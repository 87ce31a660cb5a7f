"""What the commands are for: the sections of the help, and an example of each command."""

from typing import Any

SECTIONS: dict[str, tuple[str, ...]] = {
    "Prepare": ("phantom", "check-data", "bundles", "check-bundle", "explain"),
    "Train": ("train", "evaluate", "benchmark", "sweep", "ui"),
    "Predict": ("predict", "quantise"),
    "Review": ("review", "label"),
    "Measure": ("report", "samples", "compare-modes", "simulate-review", "reproduce"),
}
EXAMPLES: dict[str, str] = {
    "phantom": "medssl phantom data/phantom --count 12",
    "check-data": "medssl check-data my_data",
    "bundles": "medssl bundles --copy gbdl my_bundle",
    "check-bundle": "medssl check-bundle my_bundle",
    "explain": "medssl explain labelled --bundle gbdl",
    "train": "medssl train gbdl --overlay bench --dataset_name folder --dataset_dir my_data --output_dir runs/mine",
    "evaluate": "medssl evaluate runs/mine --samples 50",
    "benchmark": "medssl benchmark my_data --labelled 4 --budget 2h --overlay bench --output_dir runs/benchmark",
    "sweep": "medssl sweep gbdl --labelled 4,16 --seeds 0,1,2 --output_dir runs/grid --dataset_dir data/kits19",
    "ui": "medssl ui --runs_dir runs",
    "predict": "medssl predict new_scans out --bundle runs/mine",
    "quantise": "medssl quantise runs/mine --samples 20",
    "review": "medssl review new_scans --bundle runs/mine --budget 30min",
    "label": "medssl label --studies new_scans --bundle runs/mine",
    "report": "medssl report runs/grid/gbdl_4_seed0 runs/grid/gbdl_16_seed0 --markdown table.md",
    "samples": "medssl samples runs/mine --values 1,5,20",
    "compare-modes": "medssl compare-modes runs/mine --samples 20 --stride 8,8,8",
    "reproduce": "medssl reproduce 3.2 --data data --output_dir runs/thesis --bench",
    "simulate-review inspect": "medssl simulate-review inspect runs/mine --output_dir runs/inspection",
    "simulate-review rounds": "medssl simulate-review rounds mcdropout_unet3d --output_dir runs/rounds --overlay bench",
}


def position(command: str) -> int:
    """The place of a command in the help; one that no section names comes last."""
    order = [name for names in SECTIONS.values() for name in names]
    return order.index(command) if command in order else len(order)


def write_sections(group: Any, context: Any, formatter: Any) -> None:
    """Write the commands of `group`, a section a task."""
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    for title, names in _sections_of(list(commands)).items():
        rows = [(name, commands[name].get_short_help_str(limit=110)) for name in names]
        with formatter.section(title):
            formatter.write_dl(rows)


def write_example(context: Any, formatter: Any) -> None:
    """Write the example of the command that `context` is of, on a line of its own, so that it can be copied."""
    example = EXAMPLES.get(name_of(context))
    if example is not None:
        with formatter.section("Example"):
            formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def name_of(context: Any) -> str:
    """`simulate-review rounds`: the words of a command without the program's."""
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, context.info_name)
        context = context.parent
    return " ".join(words)


def _sections_of(names: list[str]) -> dict[str, list[str]]:
    sections = {title: [name for name in members if name in names] for title, members in SECTIONS.items()}
    others = [name for name in names if not any(name in members for members in SECTIONS.values())]
    return {title: members for title, members in {**sections, "Others": others}.items() if members}
