"""A generated abdomen as tissue fractions: trunk, spine, organs and bowel around the kidneys.

Lengths are those of a child of about five years, so that the whole trunk fits 64 voxels of 3 mm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from medssl.data.phantom_kidneys import paint_kidneys
from medssl.data.phantom_shapes import (
    Tissue,
    TissueFractions,
    Volume,
    both,
    either,
    ellipse_column_mm,
    ellipsoid_mm,
    in_frame,
    rotation,
    smooth_field,
    tube_mm,
)


def draw_abdomen(
    rng: np.random.Generator, shape: Sequence[int], spacing_mm: NDArray[np.float64]
) -> TissueFractions:
    """One random abdomen on a grid of `shape`, first axis to the left, second to the back, third upwards."""
    tissues = TissueFractions(shape, border_mm=float(spacing_mm[0]))
    scanner_mm = _scanner_positions_mm(shape, spacing_mm)
    position_mm = _posed(scanner_mm, rng)
    position_mm += _bending_mm(rng, shape)
    half_width_mm, half_depth_mm = rng.uniform(78, 90), rng.uniform(56, 66)
    tissues.paint(Tissue.COUCH, np.abs(scanner_mm[1] + 76 - 0.004 * scanner_mm[0] ** 2) - 1.5)
    cavity_mm = _paint_trunk(tissues, position_mm, half_width_mm, half_depth_mm, rng)
    _paint_upper_organs(tissues, position_mm, cavity_mm, rng)
    _paint_bowel(tissues, position_mm, cavity_mm, rng)
    _paint_back_muscles(tissues, position_mm, half_depth_mm, rng)
    _paint_great_vessels(tissues, position_mm, rng)
    paint_kidneys(tissues, position_mm, cavity_mm, rng)
    _paint_spine(tissues, position_mm, rng)
    return tissues


def _scanner_positions_mm(shape: Sequence[int], spacing_mm: NDArray[np.float64]) -> Volume:
    """Left, front and up position of each voxel, from the middle of the volume."""
    steps = [(np.arange(size) - (size - 1) / 2) * step for size, step in zip(shape, spacing_mm, strict=True)]
    left, back, up = np.meshgrid(*steps, indexing="ij")
    return np.stack([left, -back, up]).astype(np.float32)


def _posed(scanner_mm: Volume, rng: np.random.Generator) -> Volume:
    """Positions in a patient who lies a little turned, off the middle, scanned higher or lower, larger or smaller."""
    offset_mm = rng.uniform([-7, -6, -16], [7, 6, 16])
    turn = rotation(rng.uniform([-4, -4, -7], [4, 4, 7]))
    return in_frame(scanner_mm, offset_mm, turn) / np.float32(rng.uniform(1.0, 1.18))


def _bending_mm(rng: np.random.Generator, shape: Sequence[int]) -> Volume:
    """Smooth displacement of every position: what makes no two trunks alike."""
    coarse = np.stack([smooth_field(rng, shape, knots=3) for _ in range(3)]) * 6
    fine = np.stack([smooth_field(rng, shape, knots=6) for _ in range(3)]) * 2.5
    return coarse + fine


def _paint_trunk(
    tissues: TissueFractions, position_mm: Volume, half_width_mm: float, half_depth_mm: float, rng: np.random.Generator
) -> Volume:
    """Paint skin, fat, muscle wall, ribs and the fat inside; returns the signed distance to the cavity."""
    left, front, up = position_mm
    fat_mm = rng.uniform(3, 13) * (1.0 + 0.35 * smooth_field(rng, up.shape, knots=4))
    wall_mm = rng.uniform(6, 9)
    surface = _trunk_mm(position_mm, half_width_mm, half_depth_mm)
    cavity = surface + fat_mm + wall_mm
    tissues.paint(Tissue.SKIN, surface)
    tissues.paint(Tissue.FAT, surface + 1.8)
    tissues.paint(Tissue.MUSCLE, surface + fat_mm)
    tissues.paint(Tissue.FAT, cavity)
    _paint_ribs(tissues, position_mm, cavity, wall_mm)
    linea_alba = both(np.abs(left) - 2, 25 - front, -(cavity - 1))
    tissues.paint(Tissue.FAT, both(linea_alba, surface + fat_mm))
    return cavity


def _trunk_mm(position_mm: Volume, half_width_mm: float, half_depth_mm: float) -> Volume:
    """Signed distance to the body surface: a rounded box, flatter at the back, with a waist and a furrow behind."""
    left, front, up = position_mm
    width = half_width_mm * (1 + 0.0006 * up + 0.000012 * up**2)
    depth = half_depth_mm * np.where(front < 0, 0.93, 1.0) * (1 - 0.0006 * np.abs(up))
    level = (np.abs(left / width) ** 2.5 + np.abs(front / depth) ** 2.5) ** 0.4 + 1e-6
    furrow = 4 * np.exp(-((left / 9) ** 2)) * (front < 0)
    return np.hypot(left, front) * (1 - 1 / level) + furrow


def _paint_ribs(tissues: TissueFractions, position_mm: Volume, cavity_mm: Volume, wall_mm: float) -> None:
    """Ribs run in the muscle wall, falling from the spine to the front; the lowest ones end early."""
    left, front, up = position_mm
    fall = up + 0.55 * front + 12
    along = np.abs((fall % 19) - 9.5) - 3.2
    in_wall = np.abs(cavity_mm - wall_mm / 2) - 2.6
    below_the_last = 8 + 0.5 * np.maximum(front, -20) - fall * 0.6
    rib = both(along, in_wall, below_the_last, 22 - np.abs(left))
    tissues.paint(Tissue.BONE, rib)
    tissues.paint(Tissue.MARROW, rib + 2)


def _paint_upper_organs(
    tissues: TissueFractions, position_mm: Volume, cavity_mm: Volume, rng: np.random.Generator
) -> None:
    inside = cavity_mm + 1.5
    shift = lambda reach: rng.uniform(-reach, reach, 3)  # noqa: E731
    _paint_stomach(tissues, position_mm, inside, np.array([32, 16, 40]) + shift(8), rng)
    liver = _liver_mm(position_mm, np.array([-36, 6, 42]) + shift(7), rng.uniform(0.88, 1.15))
    tissues.paint(Tissue.LIVER, both(liver, inside))
    _paint_liver_vessels(tissues, position_mm, both(liver, inside), rng)
    tissues.paint(Tissue.SPLEEN, both(_spleen_mm(position_mm, rng), inside))
    bladder = ellipsoid_mm(in_frame(position_mm, np.array([-26, 26, 12]) + shift(5)), rng.uniform(6, 10) * np.array([1, 1, 1.5]))
    tissues.paint_hollow(Tissue.BOWEL_WALL, Tissue.WATER, both(bladder, inside), wall_mm=1.5)
    pancreas = np.array([[-24, 10, -2], [-18, 12, 8], [0, 15, 14], [18, 7, 18], [38, -4, 24]]) + shift(4)
    tissues.paint(Tissue.PANCREAS, both(tube_mm(position_mm, pancreas, [8, 9, 6, 6, 5]), inside))
    lung = rng.uniform(64, 80) + 0.45 * position_mm[1] - 0.004 * position_mm[0] ** 2 - position_mm[2]
    tissues.paint(Tissue.LUNG, both(lung, cavity_mm, 16 - np.hypot(position_mm[0], position_mm[1] + 22)))


def _liver_mm(position_mm: Volume, centre_mm: NDArray[np.float64], size: float) -> Volume:
    """Right lobe, hollowed from below where kidney and bowel press on it, and a flat left lobe."""
    right = ellipsoid_mm(in_frame(position_mm, centre_mm), np.array([46, 50, 46]) * size)
    left = ellipsoid_mm(in_frame(position_mm, centre_mm + [42, 22, 8]), np.array([40, 17, 24]) * size)
    hollow = ellipsoid_mm(in_frame(position_mm, centre_mm + [18, -18, -46]), np.array([34, 40, 34]))
    return both(either(right, left), -hollow)


def _paint_liver_vessels(
    tissues: TissueFractions, position_mm: Volume, liver_mm: Volume, rng: np.random.Generator
) -> None:
    trunk = np.array([-14, 8, 26]) + rng.uniform(-3, 3, 3)
    for tip in ([-50, -12, 40], [-52, 22, 44], [-34, 5, 68], [12, 28, 52]):
        end = np.array(tip) + rng.uniform(-6, 6, 3)
        bend = (trunk + end) / 2 + rng.uniform(-6, 6, 3)
        tissues.paint(Tissue.VEIN, both(tube_mm(position_mm, [trunk, bend, end], [3.4, 2.6, 1.4]), liver_mm + 3))


def _spleen_mm(position_mm: Volume, rng: np.random.Generator) -> Volume:
    """Crescent against the left wall, hollowed on the side of the kidney; sometimes large enough to reach below it."""
    size = rng.uniform(0.8, 1.35)
    centre = np.array([57, -14, 36 - 14 * (size - 1)]) + rng.uniform(-6, 6, 3)
    turned = in_frame(position_mm, centre, rotation((-25, 8, 20)))
    hollow = in_frame(turned, (-25 * size, 6, -4))
    return both(ellipsoid_mm(turned, np.array([19, 32, 34]) * size), -ellipsoid_mm(hollow, np.array([17, 24, 34]) * size))


def _paint_stomach(
    tissues: TissueFractions,
    position_mm: Volume,
    inside_mm: Volume,
    centre_mm: NDArray[np.float64],
    rng: np.random.Generator,
) -> None:
    radii = np.array([25, 21, 28]) * rng.uniform(0.75, 1.2)
    outline = both(ellipsoid_mm(in_frame(position_mm, centre_mm, rotation((0, -25, 0))), radii), inside_mm)
    meal = rng.choice([Tissue.WATER, Tissue.CHYME, Tissue.ORAL_CONTRAST])
    tissues.paint_hollow(Tissue.BOWEL_WALL, Tissue(meal), outline, wall_mm=3)
    gas_level_mm = centre_mm[1] + rng.uniform(-2, 14)
    tissues.paint(Tissue.BOWEL_GAS, both(outline + 3, gas_level_mm - position_mm[1]))


def _paint_bowel(
    tissues: TissueFractions, position_mm: Volume, cavity_mm: Volume, rng: np.random.Generator
) -> None:
    """Small bowel as winding loops in front, colon as a frame around it that lies next to the kidneys."""
    inside = cavity_mm + 1
    for _ in range(int(rng.integers(7, 12))):
        radius = rng.uniform(5.5, 10)
        _paint_loop(tissues, position_mm, inside, _winding_path_mm(rng), radius, rng)
    flank = rng.uniform(50, 62, 2)
    depth = rng.uniform(-26, 4, 2)
    ascending = [[-flank[0], depth[0], up] for up in range(-90, 1, 9)]
    descending = [[flank[1], depth[1], up] for up in range(-90, 28, 9)]
    across = [[-flank[0] + 8, 22, 2], [-28, 42, -8], [0, 46, -12], [28, 42, 0], [flank[1] - 6, 18, 24]]
    for course, widest_mm in ((ascending, 14), (across, 12), (descending, 10)):
        path = np.array(course, dtype=float)
        path += rng.uniform(-3, 3, path.shape)
        _paint_loop(tissues, position_mm, inside, path, rng.uniform(6, widest_mm), rng)


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


def _paint_loop(
    tissues: TissueFractions,
    position_mm: Volume,
    inside_mm: Volume,
    path_mm: NDArray[np.float64],
    radius_mm: float,
    rng: np.random.Generator,
) -> None:
    radii = radius_mm * rng.uniform(0.75, 1.15, len(path_mm))
    outline = both(tube_mm(position_mm, path_mm, radii), inside_mm)
    content = rng.choice([Tissue.WATER, Tissue.CHYME, Tissue.ORAL_CONTRAST, Tissue.BOWEL_GAS], p=[0.2, 0.5, 0.15, 0.15])
    tissues.paint(Tissue.FAT, outline - 1.2)
    tissues.paint_hollow(Tissue.BOWEL_WALL, Tissue(content), outline, wall_mm=2)


def _paint_back_muscles(
    tissues: TissueFractions, position_mm: Volume, half_depth_mm: float, rng: np.random.Generator
) -> None:
    bulk = rng.uniform(0.85, 1.15)
    for side in (-1, 1):
        back = in_frame(position_mm, (side * 19, 12 - 0.93 * half_depth_mm, 0))
        tissues.paint(Tissue.MUSCLE, ellipse_column_mm(back, (16 * bulk, 10.5)))
        flank = in_frame(position_mm, (side * 40, 17 - 0.93 * half_depth_mm, 0), rotation((0, 0, -side * 25)))
        tissues.paint(Tissue.MUSCLE, ellipse_column_mm(flank, (13 * bulk, 5)))
        psoas = [[side * 15, -24, 40], [side * 21, -21, 0], [side * 29, -15, -60], [side * 33, -10, -90]]
        tissues.paint(Tissue.MUSCLE, tube_mm(position_mm, psoas, np.array([3, 8, 12, 13]) * bulk))


def _paint_great_vessels(tissues: TissueFractions, position_mm: Volume, rng: np.random.Generator) -> None:
    heights = np.array([90, 40, 0, -45, -90])
    sway = rng.uniform(-2.5, 2.5, (2, 5))
    aorta = np.stack([5 + sway[0], np.full(5, -4.5), heights], axis=1)
    cava = np.stack([-11 + sway[1], np.array([2, -1, -3, -4, -5]), heights], axis=1)
    mesenteric = np.array([[4, 0, 16], [3, 9, 4], [0, 16, -20], [-6, 20, -60]]) + rng.uniform(-2, 2, 3)
    tissues.paint(Tissue.VEIN, tube_mm(position_mm, cava, rng.uniform(5.5, 8)))
    tissues.paint(Tissue.ARTERY, tube_mm(position_mm, aorta, rng.uniform(5, 6.5)))
    tissues.paint(Tissue.ARTERY, tube_mm(position_mm, mesenteric, 2.2))
    tissues.paint(Tissue.VEIN, tube_mm(position_mm, mesenteric + [-6, 1, 0], 3))


def _paint_spine(tissues: TissueFractions, position_mm: Volume, rng: np.random.Generator) -> None:
    """Vertebrae of cortical bone around marrow, discs between them, canal, arches and processes behind."""
    spine = in_frame(position_mm, (0, -24, 0))
    height_mm = rng.uniform(20, 24)
    level = np.abs((spine[2] + rng.uniform(0, height_mm)) % height_mm - height_mm / 2)
    in_vertebra = level - 0.38 * height_mm
    column = ellipse_column_mm(spine, (15, 11.5))
    tissues.paint(Tissue.DISC, column)
    tissues.paint(Tissue.BONE, both(column, in_vertebra))
    tissues.paint(Tissue.MARROW, both(column + 2.4, in_vertebra + 2))
    canal = in_frame(spine, (0, -17, 0))
    ring = ellipse_column_mm(canal, (11.5, 9))
    tissues.paint(Tissue.BONE, both(ring, column * -1, level - 0.3 * height_mm))
    _paint_processes(tissues, spine, level - 0.2 * height_mm)
    tissues.paint(Tissue.SPINAL_CANAL, ellipse_column_mm(canal, (7.5, 6)))


def _paint_processes(tissues: TissueFractions, spine_mm: Volume, in_arch_mm: Volume) -> None:
    sideways = both(np.abs(spine_mm[1] + 15) - 2.5, np.abs(spine_mm[0]) - 25, in_arch_mm)
    backwards = both(np.abs(spine_mm[0]) - 2.2, np.abs(spine_mm[1] + 27) - 8, in_arch_mm)
    tissues.paint(Tissue.BONE, both(either(sideways, backwards), -ellipse_column_mm(spine_mm, (12, 9))))
