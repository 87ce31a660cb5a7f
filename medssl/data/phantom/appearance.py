"""How a scanner sees the phantom: Hounsfield values of a CT in some contrast phase, or the grey values of an MR."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from medssl.data.phantom.shapes import Tissue, Volume, share_of, smooth_field

# Hounsfield values before contrast, and in the arterial, the venous and the excretory phase.
CT_PHASES = ("native", "arterial", "venous", "excretory")
CT_PHASE_SHARES = (0.08, 0.2, 0.52, 0.2)
TISSUE_HU: Mapping[Tissue, tuple[float, float, float, float]] = {
    Tissue.AIR: (-1000, -1000, -1000, -1000),
    Tissue.COUCH: (-350, -350, -350, -350),
    Tissue.SKIN: (10, 15, 20, 20),
    Tissue.FAT: (-102, -102, -100, -100),
    Tissue.MUSCLE: (50, 55, 60, 57),
    Tissue.LUNG: (-830, -820, -820, -820),
    Tissue.BONE: (480, 480, 480, 480),
    Tissue.MARROW: (190, 200, 210, 200),
    Tissue.DISC: (80, 80, 85, 85),
    Tissue.SPINAL_CANAL: (22, 25, 28, 28),
    Tissue.ARTERY: (42, 270, 140, 95),
    Tissue.VEIN: (42, 80, 145, 95),
    Tissue.LIVER: (56, 68, 106, 86),
    Tissue.SPLEEN: (46, 125, 115, 92),
    Tissue.PANCREAS: (40, 100, 90, 65),
    Tissue.BOWEL_WALL: (36, 85, 90, 62),
    Tissue.WATER: (8, 10, 10, 12),
    Tissue.CHYME: (30, 70, 80, 70),
    Tissue.ORAL_CONTRAST: (280, 280, 280, 280),
    Tissue.BOWEL_GAS: (-900, -900, -900, -900),
    Tissue.KIDNEY_CORTEX: (33, 172, 170, 140),
    Tissue.KIDNEY_MEDULLA: (31, 105, 160, 138),
    Tissue.URINE: (6, 8, 12, 380),
    Tissue.TUMOUR: (36, 95, 82, 66),
    Tissue.CYST: (9, 10, 12, 12),
}

# Relative brightness in a T1- and in a T2-weighted sequence; 1 is the brightest tissue.
TISSUE_T1_T2: Mapping[Tissue, tuple[float, float]] = {
    Tissue.AIR: (0, 0),
    Tissue.COUCH: (0, 0),
    Tissue.SKIN: (0.5, 0.4),
    Tissue.FAT: (1.0, 0.42),
    Tissue.MUSCLE: (0.42, 0.2),
    Tissue.LUNG: (0.05, 0.05),
    Tissue.BONE: (0.08, 0.06),
    Tissue.MARROW: (0.7, 0.5),
    Tissue.DISC: (0.4, 0.55),
    Tissue.SPINAL_CANAL: (0.28, 0.9),
    Tissue.ARTERY: (0.15, 0.1),
    Tissue.VEIN: (0.25, 0.25),
    Tissue.LIVER: (0.6, 0.3),
    Tissue.SPLEEN: (0.42, 0.55),
    Tissue.PANCREAS: (0.62, 0.42),
    Tissue.BOWEL_WALL: (0.45, 0.4),
    Tissue.WATER: (0.2, 1.0),
    Tissue.CHYME: (0.45, 0.6),
    Tissue.ORAL_CONTRAST: (0.8, 0.5),
    Tissue.BOWEL_GAS: (0.02, 0.02),
    Tissue.KIDNEY_CORTEX: (0.5, 0.55),
    Tissue.KIDNEY_MEDULLA: (0.4, 0.68),
    Tissue.URINE: (0.18, 1.0),
    Tissue.TUMOUR: (0.4, 0.6),
    Tissue.CYST: (0.2, 1.0),
}

# Organs whose value differs from patient to patient, beyond the phase, and is uneven inside.
UNEVEN_TISSUES = (
    Tissue.LIVER,
    Tissue.SPLEEN,
    Tissue.PANCREAS,
    Tissue.CHYME,
    Tissue.KIDNEY_CORTEX,
    Tissue.KIDNEY_MEDULLA,
    Tissue.TUMOUR,
    Tissue.MUSCLE,
)


def ct_scan(fractions: Volume, rng: np.random.Generator) -> NDArray[np.int16]:
    """Hounsfield values of a CT with a random phase, dose of contrast agent and noise of 15 to 25 HU."""
    phase = int(rng.choice(len(CT_PHASES), p=CT_PHASE_SHARES))
    enhancement = rng.uniform(0.85, 1.05)
    native, enhanced = (np.array([TISSUE_HU[tissue][column] for tissue in Tissue]) for column in (0, phase))
    tissue_hu = native + enhancement * (enhanced - native)
    tissue_hu[list(UNEVEN_TISSUES)] += rng.normal(0, 5, len(UNEVEN_TISSUES))
    tissue_hu[Tissue.CHYME] += rng.uniform(-30, 30)
    scan_hu = _seen(fractions, tissue_hu, texture=9, blur_voxels=rng.uniform(0.4, 0.7), rng=rng)
    noise_hu = rng.uniform(15, 25)
    scan_hu += noise_hu * _grainy_noise(rng, scan_hu.shape)
    return np.clip(np.rint(scan_hu), -1024, 3071).astype(np.int16)


def mr_scan(fractions: Volume, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Grey values of an MR: random weighting and scale, smooth bias field of 0.6 to 1.4, Rician noise."""
    t1, t2 = (np.array([TISSUE_T1_T2[tissue][column] for tissue in Tissue]) for column in (0, 1))
    t2_share = rng.choice([rng.uniform(0, 0.25), rng.uniform(0.75, 1)])
    brightness = (1 - t2_share) * t1 + t2_share * t2
    if rng.random() < 0.35:
        brightness[[Tissue.FAT, Tissue.MARROW]] *= 0.25  # fat suppression
    brightness[list(UNEVEN_TISSUES)] *= rng.uniform(0.85, 1.15, len(UNEVEN_TISSUES))
    scan = _seen(fractions, brightness, texture=0.05, blur_voxels=rng.uniform(0.4, 0.7), rng=rng)
    scan *= bias_field(rng, scan.shape)
    noise = rng.uniform(0.03, 0.06)
    real, imaginary = (noise * rng.standard_normal(scan.shape, dtype=np.float32) for _ in range(2))
    grey_values = rng.uniform(250, 2500) * np.hypot(scan + real, imaginary)
    return np.clip(np.rint(grey_values), 0, 65535).astype(np.uint16)


def bias_field(rng: np.random.Generator, shape: tuple[int, ...]) -> Volume:
    """Smooth multiplicative shading of the receive coil, reaching from 0.6 to 1.4."""
    field = ndimage.gaussian_filter(smooth_field(rng, shape, knots=3), np.array(shape) / 8)
    low, high = field.min(), field.max()
    return (0.6 + 0.8 * (field - low) / (high - low)).astype(np.float32)


def _seen(
    fractions: Volume, values: NDArray[np.float64], texture: float, blur_voxels: float, rng: np.random.Generator
) -> Volume:
    """The noiseless scan: mixed tissue values, uneven organs, blurred by the scanner."""
    mixed = fractions @ values.astype(np.float32)
    mixed += texture * share_of(fractions, *UNEVEN_TISSUES) * smooth_field(rng, mixed.shape, knots=10)
    return ndimage.gaussian_filter(mixed, blur_voxels)


def _grainy_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Volume:
    """Noise of standard deviation 1 with the grain a reconstruction leaves within a slice."""
    grain = ndimage.gaussian_filter(rng.standard_normal(shape, dtype=np.float32), (0.5, 0.5, 0))
    return grain / grain.std()
