"""The phantom's labelled structures: kidneys in their usual and unusual forms, and lesions in them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from medssl.data.phantom.shapes import (
    Canvas,
    Tissue,
    Volume,
    both,
    ellipsoid_mm,
    in_frame,
    rotation,
    share_of,
    tube_mm,
)

# Shares of the ways a pair of kidneys is laid out; frequent enough that 32 cases show them all and 4 do not.
LAYOUT_SHARES = {"normal": 0.64, "single": 0.09, "horseshoe": 0.06, "ptotic": 0.08, "atrophic": 0.06, "dilated": 0.07}
LESION_SHARE = 0.67
KIDNEY, LESION = 1, 2


@dataclass(frozen=True)
class Kidney:
    """One kidney: side is +1 for left and -1 for right, `pelvis` the size of the urine-filled pelvis (usual: 1)."""

    side: int
    centre_mm: NDArray[np.float64]
    radii_mm: NDArray[np.float64]
    turn_degrees: tuple[float, float, float]
    pelvis: float = 1.0

    @property
    def axes(self) -> NDArray[np.float32]:
        """Columns: towards the kidney's outer rim, its front and its upper pole."""
        mirror = np.diag([self.side, 1, 1]).astype(np.float32)
        return mirror @ rotation(self.turn_degrees)

    def to_patient_mm(self, share_of_radii: NDArray[np.float64]) -> NDArray[np.float64]:
        """Patient position of a point given in shares of the kidney's radii."""
        return self.centre_mm + self.axes @ (share_of_radii * self.radii_mm)


def paint_kidneys(canvas: Canvas, cavity_mm: Volume, rng: np.random.Generator) -> None:
    """Paint one or two kidneys with their fat, vessels and perhaps a lesion, inside the abdominal cavity."""
    layout = str(rng.choice(list(LAYOUT_SHARES), p=list(LAYOUT_SHARES.values())))
    kidneys = draw_kidneys(layout, rng)
    fat_mm = rng.uniform(0, 6)
    for kidney in kidneys:
        surface = both(bean_mm(canvas.position_mm, kidney), cavity_mm)
        canvas.paint(Tissue.FAT, both(surface - fat_mm, cavity_mm))
    for kidney in kidneys:
        _paint_vessels(canvas, kidney)
        _paint_kidney(canvas, cavity_mm, kidney)
    if layout == "horseshoe":
        _paint_isthmus(canvas, cavity_mm, kidneys)
    if rng.random() < LESION_SHARE:
        _paint_lesion(canvas, cavity_mm, kidneys[rng.integers(len(kidneys))], rng)


def kidney_label(fractions: Volume) -> NDArray[np.uint8]:
    """Label map: 1 where kidney fills at least half of a voxel, 2 where most of that is lesion, else 0."""
    parenchyma = share_of(fractions, Tissue.KIDNEY_CORTEX, Tissue.KIDNEY_MEDULLA)
    lesion = share_of(fractions, Tissue.TUMOUR, Tissue.CYST)
    labelled = parenchyma + lesion >= 0.5
    return np.where(labelled, np.where(lesion > parenchyma, LESION, KIDNEY), 0).astype(np.uint8)


def draw_kidneys(layout: str, rng: np.random.Generator) -> list[Kidney]:
    """The kidneys of one case: [left, right] for most layouts, one of them for "single"."""
    pair = [_draw_kidney(side, rng) for side in (1, -1)]
    changed = int(rng.integers(2))
    if layout == "single":
        # The remaining kidney grows, as it does after the other one was lost.
        return [replace(pair[changed], radii_mm=pair[changed].radii_mm * 1.15)]
    if layout == "horseshoe":
        return [_horseshoe_half(kidney) for kidney in pair]
    pair[changed] = _unusual(pair[changed], layout, rng)
    return pair


def _draw_kidney(side: int, rng: np.random.Generator) -> Kidney:
    """A healthy kidney of random size and pose; the right one lies lower, below the liver."""
    lower_on_the_right = 0 if side > 0 else -8
    centre = np.array([side * 43.0, -17.0, lower_on_the_right - 6.0]) + rng.uniform([-4, -4, -9], [4, 5, 9])
    radii = np.array([18.5, 16.0, 35.0]) * rng.uniform(0.84, 1.14) * rng.uniform(0.92, 1.08, 3)
    # Upper poles lean to the spine and to the back; the hilum faces the spine and the front.
    turn = (float(rng.uniform(-2, 16)), -float(rng.uniform(4, 20)), -float(rng.uniform(15, 50)))
    return Kidney(side, centre, radii, turn, pelvis=float(rng.uniform(0.8, 1.2)))


def _horseshoe_half(kidney: Kidney) -> Kidney:
    """The kidney moved down and inwards, its lower pole leaning to the middle."""
    centre = kidney.centre_mm + np.array([-kidney.side * 9, 8, -12])
    tilt, _, turn = kidney.turn_degrees
    return replace(kidney, centre_mm=centre, turn_degrees=(tilt, 22.0, turn - 15))


def _unusual(kidney: Kidney, layout: str, rng: np.random.Generator) -> Kidney:
    """The kidney as the layout changes it: sunken, shrunken or with a dilated pelvis; as it is for "normal"."""
    if layout == "ptotic":
        drop = np.array([-kidney.side * rng.uniform(0, 8), rng.uniform(5, 16), -rng.uniform(22, 36)])
        return replace(kidney, centre_mm=kidney.centre_mm + drop)
    if layout == "atrophic":
        return replace(kidney, radii_mm=kidney.radii_mm * rng.uniform(0.55, 0.7))
    if layout == "dilated":
        return replace(kidney, pelvis=float(rng.uniform(1.5, 1.8)), radii_mm=kidney.radii_mm * 1.1)
    return kidney


def bean_mm(position_mm: Volume, kidney: Kidney) -> Volume:
    """Signed distance to the kidney's outer surface: an ellipsoid with a notch at the hilum, on its inner side."""
    local = in_frame(position_mm, kidney.centre_mm, kidney.axes)
    wide, thick, long = kidney.radii_mm
    bent = local.copy()
    # Poles curve inwards, towards the spine, as in a bean.
    bent[0] += 0.22 * wide * (local[2] / long) ** 2 - 0.08 * wide
    notch = in_frame(local, (-1.15 * wide, 0, 0))
    return both(ellipsoid_mm(bent, kidney.radii_mm), -ellipsoid_mm(notch, (0.6 * wide, 0.7 * thick, 0.32 * long)))


def _paint_kidney(canvas: Canvas, cavity_mm: Volume, kidney: Kidney) -> None:
    """Cortex and medulla around a sinus of fat that holds the urine-filled pelvis; only the first two are labelled."""
    surface = both(bean_mm(canvas.position_mm, kidney), cavity_mm)
    local = in_frame(canvas.position_mm, kidney.centre_mm, kidney.axes)
    wide, thick, long = kidney.radii_mm
    sinus = in_frame(local, (-0.62 * wide, 0, 0))
    sinus_radii = np.array([0.55 * wide, 0.38 * thick, 0.45 * long]) * kidney.pelvis**0.7
    canvas.paint(Tissue.KIDNEY_CORTEX, surface)
    canvas.paint(Tissue.KIDNEY_MEDULLA, both(surface + 5, _pyramids_mm(local, long)))
    canvas.paint(Tissue.FAT, both(ellipsoid_mm(sinus, sinus_radii), surface + 1))
    pelvis_radii = sinus_radii * (0.3 + 0.38 * kidney.pelvis)
    canvas.paint(Tissue.URINE, both(ellipsoid_mm(sinus, pelvis_radii), surface + 2))


def _pyramids_mm(local_mm: Volume, long_mm: float) -> Volume:
    """Pyramid-like sectors around the hilum, parted by columns of cortex."""
    angle = np.arctan2(local_mm[1], local_mm[0] + 1e-3)
    level = np.cos(3 * angle) * np.cos(3.5 * np.pi * local_mm[2] / long_mm)
    return 3 * (-0.35 - level)


def _paint_isthmus(canvas: Canvas, cavity_mm: Volume, kidneys: list[Kidney]) -> None:
    """The bridge between the lower poles of a horseshoe kidney."""
    poles = [kidney.to_patient_mm(np.array([0.1, 0.0, -0.72])) for kidney in kidneys]
    # It passes in front of the aorta and the vena cava.
    middle = np.mean(poles, axis=0) + np.array([0, 9, 0])
    bridge = tube_mm(canvas.position_mm, [poles[0], middle, poles[1]], [10, 7.5, 10])
    canvas.paint(Tissue.KIDNEY_CORTEX, both(bridge, cavity_mm))


def _paint_vessels(canvas: Canvas, kidney: Kidney) -> None:
    """Renal artery from the aorta and, in front of it, renal vein to the vena cava."""
    hilum = kidney.to_patient_mm(np.array([-0.45, 0, 0]))
    up = hilum[2] + 4
    artery = np.array([(5, -4, up + 4), (kidney.side * 18, -3, up + 3), hilum])
    vein = np.array([(-11, -3, up), (kidney.side * 18, 4, up), hilum])
    canvas.paint(Tissue.ARTERY, tube_mm(canvas.position_mm, artery, 2.2))
    canvas.paint(Tissue.VEIN, tube_mm(canvas.position_mm, vein, 3.2))


def _paint_lesion(canvas: Canvas, cavity_mm: Volume, kidney: Kidney, rng: np.random.Generator) -> None:
    """A cyst, or a tumour that has a dead core once it is large."""
    direction = rng.standard_normal(3)
    direction /= np.linalg.norm(direction)
    # Lesions grow outwards: the hilum is on the inner side.
    direction[0] = abs(direction[0])
    centre = kidney.to_patient_mm(direction * rng.uniform(0.55, 0.9))
    radii = rng.uniform(4.5, 12) * rng.uniform(0.85, 1.15, 3)
    outline = both(ellipsoid_mm(in_frame(canvas.position_mm, centre), radii), cavity_mm + 1)
    if rng.random() < 0.4:
        canvas.paint(Tissue.CYST, outline)
        return
    canvas.paint(Tissue.TUMOUR, outline)
    if radii.mean() > 9:
        canvas.paint(Tissue.CYST, outline + 0.65 * radii.mean())
