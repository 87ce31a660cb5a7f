"""What methods for scans share: learning from labels, a moving average of the weights, stages before the last one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from medssl.core.options import option
from medssl.methods.method import EarlierStage, Method, Schedule
from medssl.methods.parts import boxes_of_sides, moving_average, pasted_alike


@dataclass(frozen=True)
class ScanMethodOptions:
    """What any method for scans may take besides what is its own."""

    ema_decay: float = option(
        0.0, "decay of the moving average of the weights, which is evaluated; 0: none", at_least=0, at_most=1
    )
    copy_paste: float = option(
        0.0, "labelled patches paste a box into each other: its share of each side; 0: none", at_least=0, at_most=1
    )


@dataclass(frozen=True)
class PretrainedOptions(ScanMethodOptions):
    """What methods may take besides that learn from unlabelled patches."""

    pretraining: float = option(
        0.0, "share of the compute that supervised training on the labels has first", at_least=0, at_most=0.9
    )


class ScanMethod(Method):
    """A method that trains `network` on scans. Its average, where it has one, is evaluated and may teach.

    It starts from the weights that `network` has: those of the stage before, where there is one.
    """

    Options: ClassVar[Any] = ScanMethodOptions
    teaches_itself: ClassVar[bool] = False  # by its moving average, which it then always has

    def __init__(
        self, network: nn.Module, loss: nn.Module, options: Any = None, schedule: Schedule | None = None
    ) -> None:
        super().__init__(network, loss, options, schedule)
        has_average = self.teaches_itself or self.options.ema_decay > 0
        self.average = moving_average(network, self.options.ema_decay) if has_average else None

    @classmethod
    def earlier_stages(cls, options: Any) -> Sequence[EarlierStage]:
        """Supervised training on the labels, where `pretraining` gives it a share."""
        share = getattr(options, "pretraining", 0.0)
        if not share:
            return ()
        shared = ScanMethodOptions(ema_decay=options.ema_decay, copy_paste=options.copy_paste)
        return (EarlierStage("pretraining", LabelledLearning, shared, share),)

    @property
    def averaged(self) -> nn.Module:
        """The network with averaged weights; its norms are those of the live one."""
        if self.average is None:
            raise AttributeError(f"{type(self).__name__} has no moving average: ema_decay is 0.")
        return self.average.module

    @property
    def evaluated(self) -> nn.Module:
        return self.network if self.average is None else self.averaged

    @property
    def teachers(self) -> tuple[nn.Module, ...]:
        return (self.averaged,) if self.teaches_itself else ()

    def after_step(self) -> None:
        super().after_step()
        if self.average is not None:
            self.average.update_parameters(self.network)

    def labelled_patches(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """The images and labels of the labelled patches, with boxes of each other where `copy_paste` asks for it."""
        image, label = batch["image"], batch["label"]
        if "is_labelled" in batch:
            labelled = batch["is_labelled"].bool()
            image, label = image[labelled], label[labelled]
        if self.options.copy_paste and len(image) > 1:
            masks = boxes_of_sides(len(image), image.shape[2:], self.options.copy_paste, image.device)
            image, label = pasted_alike((image, label), (image.roll(1, 0), label.roll(1, 0)), masks)
        return image, label

    def labelled_terms(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """The segmentation loss on the labelled patches."""
        image, label = self.labelled_patches(batch)
        return self.loss(self.network(image), label)


class LabelledLearning(ScanMethod):
    """The segmentation loss on labelled patches, and nothing else."""

    needs_unlabelled = False

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        return self.labelled_terms(batch)
