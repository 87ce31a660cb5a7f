"""In words where the PAvPU of a run's evaluation was counted: values over different regions cannot be compared."""

from medssl.report.run import Run

WHOLE_SCAN = "the whole scan"


def counted_where(run: Run) -> str:
    """`the whole scan`, `the body` or `10 mm around structures`; empty for a run that is not of scans."""
    if not run.task.of_scans:
        return ""
    region = run.settings.get("pavpu_region", "scan")  # runs made before counted everywhere
    if region == "structures":
        return f"{run.settings.get('pavpu_distance_mm', 0):g} mm around structures"
    return {"scan": WHOLE_SCAN, "body": "the body"}.get(region, str(region))
