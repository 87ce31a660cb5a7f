"""What users may choose of trainings on pictures, scenes and slices."""

from dataclasses import dataclass
from typing import Any

from medssl.core.options import option
from natural_image_ext.methods.classification.np_match import DIVERGENCES
from natural_image_ext.methods.classification.recipes import METHODS
from natural_image_ext.methods.segmentation.recipes import FRAMEWORKS, HEADS

OF_RECIPE = "as the method is published for the data set by default"


@dataclass(frozen=True)
class PictureDataOptions:
    """What a training on pictures is told of its data."""

    dataset_name: str = option("folder", "the data set: cifar10, cifar100, stl10, imagenet or folder")
    dataset_dir: str = option("data", "the folder of the data set", place=True)
    image_size: int | None = option(None, "side of the squares that pictures become; the data set's by default")
    size: int | None = option(None, "side that the network sees; that of the pictures by default", at_least=1)
    num_classes: int | None = option(None, "classes of the network; the data set's by default", at_least=2)
    download: bool = option(False, "let torchvision fetch CIFAR and STL-10", place=True)
    labelled: int = option(40, "pictures trained with their labels", at_least=1)
    validation: int | float = option(0, "pictures to validate with, or their share", at_least=0)
    test: int | float = option(0.2, "pictures to test with, or their share, where the data set has none", at_least=0)
    split_seed: int = option(0, "draws validation and test pictures")
    seed: int = option(0, "draws the labelled pictures, the first weights and all else", incidental=True)
    keep_in_memory: bool = option(False, "hold pictures in memory once they are read", incidental=True)


@dataclass(frozen=True)
class PictureOptions:
    """What is trained on pictures, and how."""

    variant: str = option("np_match", "the method", choices=tuple(METHODS))
    divergence: str = option("js", "NP-Match: what it compares latents by", choices=tuple(DIVERGENCES))
    backbone: str | None = option(None, f"the network before the head; {OF_RECIPE}")
    dropout: float | None = option(None, f"probability of dropout; {OF_RECIPE}", at_least=0, at_most=1)
    hidden: int | None = option(None, f"units of the neural process; {OF_RECIPE}", at_least=1)
    norm_momentum: float | None = option(None, "momentum of batch norms; the backbone's own by default")
    bank_size: int = option(2560, "vectors that each memory bank of the neural process holds", at_least=1)
    samples: int = option(10, "latent vectors, or passes with dropout, of a prediction", at_least=1)
    batch_size: int | None = option(None, f"labelled pictures a step; {OF_RECIPE}", at_least=1)
    ratio: int | None = option(None, f"unlabelled pictures for each labelled one; {OF_RECIPE}", at_least=1)
    learning_rate: float | None = option(None, f"learning rate; {OF_RECIPE}", at_least=0)
    weight_decay: float | None = option(None, f"weight decay; {OF_RECIPE}", at_least=0)
    max_grad_norm: float | None = option(None, "length that longer gradients are cut to")
    confidence: float | None = option(None, f"least confidence of a pseudo-label; {OF_RECIPE}")
    uncertainty: float | None = option(None, f"highest uncertainty of a pseudo-label, in nats; {OF_RECIPE}")
    curriculum: bool | None = option(None, f"confidence asked of a class grows with what it learned; {OF_RECIPE}")
    align: bool = option(False, "let pseudo-labels have the distribution of the labels")
    unlabelled_weight: float | None = option(None, f"weight of unlabelled pictures; {OF_RECIPE}")
    divergence_weight: float = option(0.01, "NP-Match: weight of the divergence")
    ema_decay: float = option(0.999, "decay of the moving average that is evaluated", at_least=0, at_most=1)
    max_epochs: int = option(1024, "epochs", at_least=1)
    steps_per_epoch: int = option(1024, "steps an epoch", at_least=1)
    total_steps: int | None = option(None, "length of the cosine; all steps by default", at_least=1)
    test_batch: int = option(64, "pictures predicted at once", at_least=1, incidental=True)


@dataclass(frozen=True)
class SceneDataOptions:
    """What a training on scenes is told of its data."""

    dataset_name: str = option("folder", "the data set: voc, voc_blender, cityscapes, camvid or folder")
    dataset_dir: str = option("data", "the folder of the data set", place=True)
    classes: Any = option(None, "names of the classes of a folder; numbers by default")
    num_classes: int | None = option(None, "classes of the network; the data set's by default", at_least=2)
    void: int | None = option(None, "value of masks that stands for no class; the data set's by default", at_least=0)
    lists_dir: str | None = option(None, "folder with published lists that say which images are labelled", place=True)
    labelled: int | float = option(0.0625, "images trained with their masks, or their share")
    validation: int | float = option(0, "images to validate with, or their share", at_least=0)
    test: int | float = option(0.25, "images to test with, or their share, where the data set has none", at_least=0)
    seed: int = option(0, "draws the labelled images, the first weights and all else", incidental=True)


@dataclass(frozen=True)
class SceneOptions:
    """What is trained on scenes or slices, and how."""

    variant: str = option("u2pl", "the framework", choices=tuple(FRAMEWORKS))
    head: str = option("np", "neural process, Monte Carlo dropout, or neither", choices=tuple(HEADS))
    image_size: int | None = option(None, "longer side that images are brought to; their own by default", at_least=1)
    crop: int | None = option(None, f"side of the squares trained on; {OF_RECIPE}", at_least=1)
    encoder: str = option("resnet50", "the encoder, by its name in segmentation-models-pytorch")
    encoder_weights: str | None = option(None, "a file with the encoder's weights, or imagenet to fetch them")
    channels: int = option(256, "channels of context in the decoder", at_least=1)
    detail: int = option(256, "channels of fine detail beside them", at_least=1)
    dropout: float = option(0.1, "probability of the head with dropout", at_least=0, at_most=1)
    aggregator: str = option("attention", "how the neural process joins its context: attention or mean")
    bank_size: int = option(2560, "features a class that the neural process remembers", at_least=1)
    samples: int = option(5, "latent maps, or passes with dropout, of a prediction", at_least=0)
    evaluation: str | None = option(None, f"whole images, or sliding crops; {OF_RECIPE}")
    crop_to: int | None = option(None, f"centre of the test images that counts; {OF_RECIPE}", at_least=1)
    pavpu_window: int = option(64, "side of PAvPU's windows, in pixels", at_least=1)
    pavpu_threshold_nats: float = option(0.4, "PAvPU: certain below this entropy")
    batch_size: int | None = option(None, f"labelled, and unlabelled, images a step; {OF_RECIPE}", at_least=1)
    learning_rate: float | None = option(None, f"learning rate of the encoder; {OF_RECIPE}", at_least=0)
    head_factor: float | None = option(None, f"how many times faster all else learns; {OF_RECIPE}")
    weight_decay: float | None = option(None, f"weight decay; {OF_RECIPE}", at_least=0)
    unlabelled_weight: float | None = option(None, f"weight of unlabelled images; {OF_RECIPE}")
    kl_weight: float = option(0.005, "weight of the KL of a neural process")
    dice_weight: float = option(0.0, "weight of the Dice loss on labels, beside their cross-entropy", at_least=0)
    ema_decay: float | None = option(None, f"decay of the moving average that teaches; {OF_RECIPE}")
    warm_up: int | None = option(None, f"first steps, of labels alone; {OF_RECIPE}", at_least=0)
    max_epochs: int | None = option(None, f"epochs; {OF_RECIPE}", at_least=1)
    steps_per_epoch: int | None = option(None, "steps an epoch; every unlabelled image once by default", at_least=1)
    total_steps: int | None = option(None, "steps until the learning rate is 0; all steps by default", at_least=1)
    structure_share: float = option(0.5, "slices: share of labelled draws with a structure", at_least=0, at_most=1)
    slice_batch: int = option(8, "slices predicted at once", at_least=1, incidental=True)
