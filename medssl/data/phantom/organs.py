"""The phantom's organs around the kidneys: liver, spleen, stomach, pancreas, bowel, and the lungs above them.

Spleen and bowel come as bright as the kidneys in many cases and lie next to them: what a network must not mix up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from medssl.data.phantom.shapes import (
    Canvas,
    Tissue,
    Volume,
    both,
    either,
    ellipsoid_mm,
    in_frame,
    rotation,
    tube_mm,
)

BOWEL_CONTENTS = {Tissue.WATER: 0.2, Tissue.CHYME: 0.5, Tissue.ORAL_CONTRAST: 0.15, Tissue.BOWEL_GAS: 0.15}


def paint_organs(canvas: Canvas, cavity_mm: Volume, rng: np.random.Generator) -> None:
    """Paint all organs but the kidneys inside the abdominal cavity."""
    inside_mm = cavity_mm + 1.5
    _paint_stomach(canvas, inside_mm, rng)
    _paint_liver(canvas, inside_mm, rng)
    _paint_spleen(canvas, inside_mm, rng)
    _paint_gallbladder_and_pancreas(canvas, inside_mm, rng)
    _paint_lungs(canvas, cavity_mm, rng)
    _paint_small_bowel(canvas, inside_mm, rng)
    _paint_colon(canvas, inside_mm, rng)


def _near(centre_mm: Sequence[float], reach_mm: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """A random position at most `reach_mm` from the centre along each axis."""
    return np.array(centre_mm) + rng.uniform(-reach_mm, reach_mm, 3)


def _paint_stomach(canvas: Canvas, inside_mm: Volume, rng: np.random.Generator) -> None:
    """A bag that holds a meal and, as the patient lies on the back, a bubble of gas in front."""
    centre = _near([32, 16, 40], 8, rng)
    radii = np.array([25, 21, 28]) * rng.uniform(0.75, 1.2)
    local = in_frame(canvas.position_mm, centre, rotation((0, -25, 0)))
    outline = both(ellipsoid_mm(local, radii), inside_mm)
    meal = Tissue(rng.choice([Tissue.WATER, Tissue.CHYME, Tissue.ORAL_CONTRAST]))
    canvas.paint_hollow(Tissue.BOWEL_WALL, meal, outline, wall_mm=3)
    gas_level_mm = centre[1] + rng.uniform(-2, 14)
    canvas.paint(Tissue.BOWEL_GAS, both(outline + 3, gas_level_mm - canvas.position_mm[1]))


def _paint_liver(canvas: Canvas, inside_mm: Volume, rng: np.random.Generator) -> None:
    """Right lobe, hollowed from below where kidney and bowel press on it, a flat left lobe, and the portal veins."""
    centre = _near([-36, 6, 42], 7, rng)
    size = rng.uniform(0.88, 1.15)
    at_left_lobe, at_hollow = (
        in_frame(canvas.position_mm, centre + np.array(offset)) for offset in ([42, 22, 8], [18, -18, -46])
    )
    right_lobe = ellipsoid_mm(in_frame(canvas.position_mm, centre), np.array([46, 50, 46]) * size)
    left_lobe = ellipsoid_mm(at_left_lobe, np.array([40, 17, 24]) * size)
    liver = both(either(right_lobe, left_lobe), -ellipsoid_mm(at_hollow, (34, 40, 34)), inside_mm)
    canvas.paint(Tissue.LIVER, liver)
    gate = _near([-14, 8, 26], 3, rng)
    for tip in ([-50, -12, 40], [-52, 22, 44], [-34, 5, 68], [12, 28, 52]):
        end = _near(tip, 6, rng)
        bend = (gate + end) / 2 + rng.uniform(-6, 6, 3)
        branch = tube_mm(canvas.position_mm, [gate, bend, end], [3.4, 2.6, 1.4])
        canvas.paint(Tissue.VEIN, both(branch, liver + 3))


def _paint_spleen(canvas: Canvas, inside_mm: Volume, rng: np.random.Generator) -> None:
    """Crescent against the left wall, hollowed on its inner side; a large one reaches down beside the kidney."""
    size = rng.uniform(0.8, 1.35)
    centre = _near([57, -14, 36 - 14 * (size - 1)], 6, rng)
    local = in_frame(canvas.position_mm, centre, rotation((-25, 8, 20)))
    body = ellipsoid_mm(local, np.array([19, 32, 34]) * size)
    hollow = ellipsoid_mm(in_frame(local, (-25 * size, 6, -4)), np.array([17, 24, 34]) * size)
    canvas.paint(Tissue.SPLEEN, both(body, -hollow, inside_mm))


def _paint_gallbladder_and_pancreas(canvas: Canvas, inside_mm: Volume, rng: np.random.Generator) -> None:
    bladder_radii = rng.uniform(6, 10) * np.array([1, 1, 1.5])
    bladder = ellipsoid_mm(in_frame(canvas.position_mm, _near([-26, 26, 12], 5, rng)), bladder_radii)
    canvas.paint_hollow(Tissue.BOWEL_WALL, Tissue.WATER, both(bladder, inside_mm), wall_mm=1.5)
    course = np.array([[-24, 10, -2], [-18, 12, 8], [0, 15, 14], [18, 7, 18], [38, -4, 24]]) + rng.uniform(-4, 4, 3)
    canvas.paint(Tissue.PANCREAS, both(tube_mm(canvas.position_mm, course, [8, 9, 6, 6, 5]), inside_mm))


def _paint_lungs(canvas: Canvas, cavity_mm: Volume, rng: np.random.Generator) -> None:
    """Lung bases above the dome of the diaphragm, which falls to the back and the sides."""
    left, front, up = canvas.position_mm
    diaphragm_up_mm = rng.uniform(64, 80) + 0.45 * front - 0.004 * left**2
    mediastinum = np.hypot(left, front + 22) - 16
    canvas.paint(Tissue.LUNG, both(diaphragm_up_mm - up, cavity_mm, -mediastinum))


def _paint_small_bowel(canvas: Canvas, inside_mm: Volume, rng: np.random.Generator) -> None:
    """Loops that wind through the front of the abdomen."""
    for _ in range(int(rng.integers(7, 12))):
        _paint_loop(canvas, inside_mm, _winding_path_mm(rng), rng.uniform(5.5, 10), rng)


def _paint_colon(canvas: Canvas, inside_mm: Volume, rng: np.random.Generator) -> None:
    """Up on the right, across in front, down on the left: a frame whose sides lie next to the kidneys."""
    right, left = rng.uniform(50, 62, 2)
    right_front, left_front = rng.uniform(-26, 4, 2)
    ascending = [[-right, right_front, up] for up in range(-90, 1, 9)]
    descending = [[left, left_front, up] for up in range(-90, 28, 9)]
    across = [[8 - right, 22, 2], [-28, 42, -8], [0, 46, -12], [28, 42, 0], [left - 6, 18, 24]]
    for course, widest_mm in ((ascending, 14), (across, 12), (descending, 10)):
        path = np.array(course) + rng.uniform(-3, 3, (len(course), 3))
        _paint_loop(canvas, inside_mm, path, rng.uniform(6, widest_mm), rng)


def _paint_loop(
    canvas: Canvas, inside_mm: Volume, path_mm: NDArray[np.float64], radius_mm: float, rng: np.random.Generator
) -> None:
    radii = radius_mm * rng.uniform(0.75, 1.15, len(path_mm))
    outline = both(tube_mm(canvas.position_mm, path_mm, radii), inside_mm)
    content = Tissue(rng.choice(list(BOWEL_CONTENTS), p=list(BOWEL_CONTENTS.values())))
    canvas.paint(Tissue.FAT, outline - 1.2)
    canvas.paint_hollow(Tissue.BOWEL_WALL, content, outline, wall_mm=2)


def _winding_path_mm(rng: np.random.Generator) -> NDArray[np.float64]:
    """A smooth random walk in the front half of the abdomen, mostly below the stomach."""
    low, high = np.array([-52, -8, -80]), np.array([52, 42, 14])
    path = [rng.uniform(low, high)]
    heading = rng.standard_normal(3)
    for _ in range(9):
        heading = 0.6 * heading + rng.standard_normal(3) * [1, 0.8, 0.6]
        step = 14 * heading / np.linalg.norm(heading)
        outside = (path[-1] + step < low) | (path[-1] + step > high)
        heading[outside] *= -1
        step[outside] *= -1
        path.append(path[-1] + step)
    return np.array(path)
