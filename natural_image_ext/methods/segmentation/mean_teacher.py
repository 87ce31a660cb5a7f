"""Mean Teacher: the student's probabilities of a strong view follow the teacher's of the weak one."""

from typing import Any

from torch import Tensor

from natural_image_ext.methods.segmentation.step import Learned, Taught, TeacherStudent


class MeanTeacher(TeacherStudent):
    """Squared error of the probabilities, averaged over classes and pixels; 100 is its usual weight."""

    def unlabelled_loss(self, learned: Learned, taught: Taught, batch: dict[str, Any]) -> Tensor:
        each = (learned.unlabelled.softmax(1) - taught.probs).square().mean(1)
        return (each * taught.valid).sum() / taught.valid.sum().clamp_min(1)
