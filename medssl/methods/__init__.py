"""Training methods: each a module from a batch to its named losses, and nothing more."""

from medssl.methods.gbdl import LatentLearning, PosteriorLearning
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.methods.self_training import TeacherLearning, UNetTeacher
from medssl.methods.supervised import Supervised
from medssl.methods.variants import VARIANTS, build_first_stage, build_second_stage, build_teacher, gbdl_variant

__all__ = [
    "VARIANTS",
    "LatentLearning",
    "PosteriorLearning",
    "PseudoLabels",
    "Supervised",
    "TeacherLearning",
    "UNetTeacher",
    "build_first_stage",
    "build_second_stage",
    "build_teacher",
    "gbdl_variant",
]
