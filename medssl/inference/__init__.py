"""Inference: from a trained network and a scan to probabilities and uncertainty on the scan's own grid."""

from medssl.inference.batch import PredictionEngine
from medssl.inference.dicom_outputs import write_dicom
from medssl.inference.evaluation import Evaluation, evaluation_folder
from medssl.inference.export import export_bundle, require_bundle
from medssl.inference.mc_dropout import MCDropoutInferer
from medssl.inference.predictor import Prediction, Predictor, load_predictor
from medssl.inference.reconstructions import write_reconstructions
from medssl.inference.slice_export import export_slices
from medssl.inference.slice_sampling import SliceInferer

__all__ = [
    "Evaluation",
    "MCDropoutInferer",
    "Prediction",
    "PredictionEngine",
    "Predictor",
    "SliceInferer",
    "evaluation_folder",
    "export_bundle",
    "export_slices",
    "load_predictor",
    "require_bundle",
    "write_dicom",
    "write_reconstructions",
]
