"""Training methods: each a module from a batch to its named losses, and nothing more."""

from medssl.methods.facts import Coefficient, MethodFacts, coefficients_of
from medssl.methods.gbdl import LatentLearning, PosteriorLearning
from medssl.methods.method import Method, Schedule
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.methods.registry import find_method, method_names
from medssl.methods.self_training import TeacherLearning, UNetTeacher
from medssl.methods.supervised import Supervised
from medssl.methods.variants import VARIANTS, build_first_stage, build_second_stage, build_teacher, gbdl_variant

__all__ = [
    "VARIANTS",
    "Coefficient",
    "LatentLearning",
    "Method",
    "MethodFacts",
    "PosteriorLearning",
    "PseudoLabels",
    "Schedule",
    "Supervised",
    "TeacherLearning",
    "UNetTeacher",
    "build_first_stage",
    "build_second_stage",
    "build_teacher",
    "coefficients_of",
    "find_method",
    "gbdl_variant",
    "method_names",
]
