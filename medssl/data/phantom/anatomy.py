"""A generated abdomen as tissue fractions: pose and shape of the trunk, its wall, spine, muscles and great vessels.

Lengths are those of a child of about five years, so that the whole trunk fits 64 voxels of 3 mm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from medssl.data.phantom.kidneys import paint_kidneys
from medssl.data.phantom.organs import paint_organs
from medssl.data.phantom.shapes import (
    Canvas,
    Tissue,
    Volume,
    both,
    either,
    ellipse_column_mm,
    in_frame,
    rotation,
    smooth_field,
    tube_mm,
)


def draw_abdomen(rng: np.random.Generator, shape: Sequence[int], spacing_mm: Sequence[float]) -> Volume:
    """Tissue fractions (*shape, tissue) of one random abdomen; the axes run to the left, to the back and upwards."""
    scanner_mm = _scanner_positions_mm(shape, spacing_mm)
    canvas = Canvas(_posed(scanner_mm, rng) + _bending_mm(rng, shape), border_mm=spacing_mm[0])
    # The couch does not bend with the patient.
    canvas.paint(Tissue.COUCH, np.abs(scanner_mm[1] + 76 - 0.004 * scanner_mm[0] ** 2) - 1.5)
    half_width_mm, front_mm = rng.uniform(78, 90), rng.uniform(59, 67)
    back_mm = 0.93 * front_mm
    cavity_mm = _paint_wall(canvas, _trunk_mm(canvas.position_mm, half_width_mm, front_mm, back_mm), rng)
    paint_organs(canvas, cavity_mm, rng)
    _paint_back_muscles(canvas, back_mm, rng)
    _paint_great_vessels(canvas, rng)
    paint_kidneys(canvas, cavity_mm, rng)
    _paint_spine(canvas, back_mm, rng)
    return canvas.fractions()


def _scanner_positions_mm(shape: Sequence[int], spacing_mm: Sequence[float]) -> Volume:
    """Left, front and up position of each voxel, from the middle of the volume."""
    steps = [(np.arange(size) - (size - 1) / 2) * step for size, step in zip(shape, spacing_mm, strict=True)]
    left, back, up = np.meshgrid(*steps, indexing="ij")
    return np.stack([left, -back, up]).astype(np.float32)


def _posed(scanner_mm: Volume, rng: np.random.Generator) -> Volume:
    """Positions in a patient who lies a little turned, off the middle, scanned higher or lower, larger or smaller."""
    offset_mm = rng.uniform([-5, -4, -13], [5, 4, 13])
    turn = rotation(rng.uniform([-3, -3, -6], [3, 3, 6]))
    return in_frame(scanner_mm, offset_mm, turn) / np.float32(rng.uniform(1.02, 1.17))


def _bending_mm(rng: np.random.Generator, shape: Sequence[int]) -> Volume:
    """Smooth displacement of every position: what makes no two trunks alike."""
    coarse = np.stack([smooth_field(rng, shape, knots=3) for _ in range(3)]) * 4.5
    fine = np.stack([smooth_field(rng, shape, knots=6) for _ in range(3)]) * 2
    return coarse + fine


def _trunk_mm(position_mm: Volume, half_width_mm: float, front_mm: float, back_mm: float) -> Volume:
    """Signed distance to the body surface: a rounded box, flatter at the back, with a waist and a furrow behind."""
    left, front, up = position_mm
    width = half_width_mm * (1 + 0.0006 * up + 0.000012 * up**2)
    depth = np.where(front < 0, back_mm, front_mm) * (1 - 0.0006 * np.abs(up))
    level = (np.abs(left / width) ** 2.5 + np.abs(front / depth) ** 2.5) ** 0.4 + 1e-6
    furrow = 4 * np.exp(-((left / 9) ** 2)) * (front < 0)
    return np.hypot(left, front) * (1 - 1 / level) + furrow


def _paint_wall(canvas: Canvas, surface_mm: Volume, rng: np.random.Generator) -> Volume:
    """Paint skin, fat, muscle wall, ribs and the fat inside; returns the signed distance to the abdominal cavity."""
    fat_mm = rng.uniform(3, 13) * (1 + 0.35 * smooth_field(rng, surface_mm.shape, knots=4))
    muscle_mm = rng.uniform(6, 9)
    cavity_mm = surface_mm + fat_mm + muscle_mm
    canvas.paint(Tissue.SKIN, surface_mm)
    canvas.paint(Tissue.FAT, surface_mm + 1.8)
    canvas.paint(Tissue.MUSCLE, surface_mm + fat_mm)
    canvas.paint(Tissue.FAT, cavity_mm)
    _paint_ribs(canvas, cavity_mm - muscle_mm / 2)
    left, front, _ = canvas.position_mm
    seam_between_front_muscles = both(np.abs(left) - 2, 25 - front, 1 - cavity_mm, surface_mm + fat_mm)
    canvas.paint(Tissue.FAT, seam_between_front_muscles)
    return cavity_mm


def _paint_ribs(canvas: Canvas, from_mid_wall_mm: Volume) -> None:
    """Ribs run in the muscle wall, falling from the spine to the front; the lowest ones end early."""
    left, front, up = canvas.position_mm
    along_the_fall = up + 0.55 * front + 12
    in_a_rib = np.abs(along_the_fall % 19 - 9.5) - 3.2
    below_the_last = 8 + 0.5 * np.maximum(front, -20) - 0.6 * along_the_fall
    rib = both(in_a_rib, np.abs(from_mid_wall_mm) - 2.6, below_the_last, 22 - np.abs(left))
    canvas.paint(Tissue.BONE, rib)
    canvas.paint(Tissue.MARROW, rib + 2)


def _paint_back_muscles(canvas: Canvas, back_mm: float, rng: np.random.Generator) -> None:
    """Erector spinae and quadratus lumborum behind, psoas beside the spine and growing downwards."""
    bulk = rng.uniform(0.85, 1.15)
    for side in (-1, 1):
        erector = in_frame(canvas.position_mm, (side * 19, 12 - back_mm, 0))
        canvas.paint(Tissue.MUSCLE, ellipse_column_mm(erector, (16 * bulk, 10.5)))
        quadratus = in_frame(canvas.position_mm, (side * 40, 17 - back_mm, 0), rotation((0, 0, -side * 25)))
        canvas.paint(Tissue.MUSCLE, ellipse_column_mm(quadratus, (13 * bulk, 5)))
        psoas = [[side * 15, -24, 40], [side * 21, -21, 0], [side * 29, -15, -60], [side * 33, -10, -90]]
        canvas.paint(Tissue.MUSCLE, tube_mm(canvas.position_mm, psoas, np.array([3, 8, 12, 13]) * bulk))


def _paint_great_vessels(canvas: Canvas, rng: np.random.Generator) -> None:
    """Aorta, vena cava and the mesenteric pair in front of them."""
    heights = np.array([90, 40, 0, -45, -90])
    aorta, cava = (
        np.stack([left + rng.uniform(-2.5, 2.5, 5), np.broadcast_to(front, 5), heights], axis=1)
        for left, front in ((5.0, np.array([-4.5])), (-11.0, np.array([2, -1, -3, -4, -5])))
    )
    mesenteric = np.array([[4, 0, 16], [3, 9, 4], [0, 16, -20], [-6, 20, -60]]) + rng.uniform(-2, 2, 3)
    _paint_vessel(canvas, Tissue.VEIN, cava, rng.uniform(5.5, 8))
    _paint_vessel(canvas, Tissue.ARTERY, aorta, rng.uniform(5, 6.5))
    _paint_vessel(canvas, Tissue.ARTERY, mesenteric, 2.2)
    _paint_vessel(canvas, Tissue.VEIN, mesenteric + np.array([-6, 1, 0]), 3)


def _paint_vessel(canvas: Canvas, blood: Tissue, path_mm: ArrayLike, radius_mm: float) -> None:
    canvas.paint(blood, tube_mm(canvas.position_mm, path_mm, radius_mm))


def _paint_spine(canvas: Canvas, back_mm: float, rng: np.random.Generator) -> None:
    """Vertebrae of cortical bone around marrow, discs between them, canal, arches and processes behind."""
    spine = in_frame(canvas.position_mm, (0, 34 - back_mm, 0))
    height_mm = rng.uniform(20, 24)
    from_mid_vertebra = np.abs((spine[2] + rng.uniform(0, height_mm)) % height_mm - height_mm / 2)
    in_vertebra = from_mid_vertebra - 0.38 * height_mm
    column = ellipse_column_mm(spine, (15, 11.5))
    canvas.paint(Tissue.DISC, column)
    canvas.paint(Tissue.BONE, both(column, in_vertebra))
    canvas.paint(Tissue.MARROW, both(column + 2.4, in_vertebra + 2))
    _paint_arches(canvas, spine, from_mid_vertebra / height_mm)


def _paint_arches(canvas: Canvas, spine_mm: Volume, share_of_height: Volume) -> None:
    """The ring around the spinal canal and its processes; `share_of_height` is 0 at mid-vertebra, 0.5 at the disc."""
    outside_body = -ellipse_column_mm(spine_mm, (13, 10))
    canal = in_frame(spine_mm, (0, -17, 0))
    ring = both(ellipse_column_mm(canal, (11.5, 9)), 22 * (share_of_height - 0.3))
    sideways = both(np.abs(spine_mm[1] + 15) - 2.5, np.abs(spine_mm[0]) - 25, 22 * (share_of_height - 0.2))
    backwards = both(np.abs(spine_mm[0]) - 2.2, np.abs(spine_mm[1] + 24) - 4.5, 22 * (share_of_height - 0.2))
    canvas.paint(Tissue.BONE, both(either(ring, sideways, backwards), outside_body))
    canvas.paint(Tissue.SPINAL_CANAL, ellipse_column_mm(canal, (7.5, 6)))
