"""What users may choose of trainings on pictures, scenes and slices."""

from dataclasses import dataclass
from typing import Any

from medssl.core.options import option
from medssl.core.prediction_options import MOST_SAMPLES
from natural_image_ext.methods.classification.np_match import DIVERGENCES, NORMALISE
from natural_image_ext.methods.classification.recipes import METHODS
from natural_image_ext.methods.segmentation.recipes import FRAMEWORKS, HEADS
from natural_image_ext.networks.np_head import ACTIVATIONS, HEAD_NORMS

OF_RECIPE = "default: as published for the data set"


@dataclass(frozen=True)
class PictureDataOptions:
    """What a training on pictures is told of its data."""

    dataset_name: str = option("folder", "the data set: cifar10, cifar100, stl10, imagenet or folder")
    dataset_dir: str = option("data", "the folder of the data set", place=True)
    image_size: int | None = option(
        None, "pictures are resized to squares of this side (imagenet: 8/7 of it, and cut); default: the data set's"
    )
    size: int | None = option(None, "side of the squares that the network sees; default: image_size", at_least=1)
    num_classes: int | None = option(None, "number of classes of the network; default: the data set's", at_least=2)
    download: bool = option(False, "let torchvision download CIFAR or STL-10 if it is missing", place=True)
    labelled: int = option(40, "number of pictures trained with labels, of all classes together", at_least=1)
    validation: int | float = option(
        0, "number of labelled pictures kept for validation, or their share (below 1)", at_least=0
    )
    test: int | float = option(
        0.2, "number of test pictures, or their share, if the data set has no test part", at_least=0
    )
    split_seed: int = option(0, "random seed that draws the validation and test pictures")
    seed: int = option(0, "random seed of the labelled pictures, the first weights and all else", incidental=True)
    keep_in_memory: bool = option(False, "hold pictures in memory once they are read", incidental=True)


@dataclass(frozen=True)
class PictureOptions:
    """What is trained on pictures, and how."""

    variant: str = option("np_match", "the training method", choices=tuple(METHODS))
    divergence: str = option("js", "NP-Match: the divergence between the latents", choices=tuple(DIVERGENCES))
    backbone: str | None = option(None, f"the network before the head; {OF_RECIPE}")
    dropout: float | None = option(None, f"probability of dropout; {OF_RECIPE}", at_least=0, at_most=1)
    hidden: int | None = option(None, f"hidden units of the neural process; {OF_RECIPE}", at_least=1)
    activation: str = option(
        "softmax",
        "NP-Match: softmax of classes that exclude each other, or sigmoid of each class by itself",
        choices=ACTIVATIONS,
    )
    head_norm: str = option(
        "none", "NP-Match: normalisation of the decoder's layers, none or layer", choices=HEAD_NORMS
    )
    head_dropout: float = option(
        0.0, "NP-Match: probability of dropout in the decoder, in training only", at_least=0, at_most=1
    )
    head_width: int | None = option(
        None, "NP-Match: units of the decoder's layers; default: as many as the backbone has features", at_least=1
    )
    norm_momentum: float | None = option(None, "momentum of the batch norms; default: the backbone's own")
    bank_size: int = option(2560, "vectors that each memory bank of the neural process holds", at_least=1)
    samples: int = option(
        10, "samples of each prediction: latent vectors, or passes with dropout", at_least=1, at_most=MOST_SAMPLES
    )
    batch_size: int | None = option(None, f"labelled pictures in each step; {OF_RECIPE}", at_least=1)
    ratio: int | None = option(None, f"unlabelled pictures for each labelled one; {OF_RECIPE}", at_least=1)
    learning_rate: float | None = option(None, f"learning rate; {OF_RECIPE}", at_least=0)
    weight_decay: float | None = option(None, f"weight decay; {OF_RECIPE}", at_least=0)
    max_grad_norm: float | None = option(
        None,
        "gradients longer than this are shortened to it, 0: no limit; default: 3 for np_match, no limit for others",
        at_least=0,
    )
    confidence: float | None = option(None, f"lowest confidence at which a pseudo-label counts; {OF_RECIPE}")
    uncertainty: float | None = option(
        None, f"highest uncertainty (nats; ups: deviation) at which a pseudo-label counts; {OF_RECIPE}"
    )
    curriculum: bool | None = option(
        None, f"FlexMatch's curriculum: lower confidence for classes learned less well; {OF_RECIPE}"
    )
    align: bool = option(False, "distribution alignment: divide probabilities by their mean over the batch first")
    unlabelled_weight: float | None = option(None, f"weight of the loss on unlabelled pictures; {OF_RECIPE}")
    divergence_weight: float = option(0.01, "NP-Match: weight of the divergence between the latents")
    normalise: str = option(
        "accepted",
        "NP-Match: the loss on pseudo-labels is the mean over the accepted ones, or over all unlabelled pictures",
        choices=NORMALISE,
    )
    ema_decay: float = option(
        0.999, "decay of the moving average of the weights, which is evaluated", at_least=0, at_most=1
    )
    max_epochs: int = option(1024, "number of epochs", at_least=1)
    steps_per_epoch: int = option(1024, "steps in each epoch", at_least=1)
    total_steps: int | None = option(
        None, "steps that the cosine of the learning rate is stretched over; default: all steps", at_least=1
    )
    test_batch: int = option(64, "pictures predicted at once", at_least=1, incidental=True)


@dataclass(frozen=True)
class SceneDataOptions:
    """What a training on scenes is told of its data."""

    dataset_name: str = option("folder", "the data set: voc, voc_blender, cityscapes, camvid or folder")
    dataset_dir: str = option("data", "the folder of the data set", place=True)
    classes: Any = option(None, "names of the classes of a folder; default: numbers")
    num_classes: int | None = option(None, "number of classes of the network; default: the data set's", at_least=2)
    void: int | None = option(None, "mask value that stands for no class; default: the data set's", at_least=0)
    lists_dir: str | None = option(None, "folder with published lists that say which images are labelled", place=True)
    labelled: int | float = option(0.0625, "number, or share below 1, of images trained with masks")
    validation: int | float = option(
        0, "number of labelled images kept for validation, or their share (below 1)", at_least=0
    )
    test: int | float = option(
        0.25, "number of test images, or their share, if the data set has no test part", at_least=0
    )
    seed: int = option(0, "random seed of the labelled images, the first weights and all else", incidental=True)


@dataclass(frozen=True)
class SceneOptions:
    """What is trained on scenes or slices, and how."""

    variant: str = option("u2pl", "the semi-supervised framework", choices=tuple(FRAMEWORKS))
    head: str = option(
        "np", "the head: np (neural process), dropout (Monte Carlo dropout) or plain", choices=tuple(HEADS)
    )
    image_size: int | None = option(
        None, "images are resized so that their longer side is this; default: not resized", at_least=1
    )
    crop: int | None = option(None, f"side of the square training crops, in pixels; {OF_RECIPE}", at_least=1)
    encoder: str = option("resnet50", "the encoder, by its name in segmentation-models-pytorch")
    encoder_weights: str | None = option(
        None,
        "weights the encoder begins with: imagenet (downloaded), a file, or null for random ones; default: imagenet",
    )
    channels: int = option(256, "channels of context in the decoder", at_least=1)
    detail: int = option(256, "channels of fine detail in the decoder", at_least=1)
    dropout: float = option(0.1, "probability of dropout, for head dropout", at_least=0, at_most=1)
    aggregator: str = option("attention", "how the neural process joins its context: attention, per_channel or mean")
    bank_size: int = option(2560, "vectors of each class that the neural process remembers", at_least=1)
    samples: int = option(
        5,
        "samples of each prediction: latent maps, or passes with dropout; 0: one pass",
        at_least=0,
        at_most=MOST_SAMPLES,
    )
    evaluation: str | None = option(
        None, f"predict test images whole, or in sliding windows of side crop (sliding); {OF_RECIPE}"
    )
    crop_to: int | None = option(
        None, f"only this many pixels a side, at the centre, count in tests; {OF_RECIPE}", at_least=1
    )
    pavpu_window: int = option(64, "side of PAvPU's windows, in pixels", at_least=1)
    pavpu_threshold_nats: float = option(0.4, "PAvPU: a window below this entropy is certain, in nats")
    batch_size: int | None = option(
        None, f"labelled images in each step, and as many unlabelled ones; {OF_RECIPE}", at_least=1
    )
    learning_rate: float | None = option(None, f"learning rate of the encoder; {OF_RECIPE}", at_least=0)
    head_factor: float | None = option(
        None, f"all but the encoder learns at this many times learning_rate; {OF_RECIPE}"
    )
    weight_decay: float | None = option(None, f"weight decay; {OF_RECIPE}", at_least=0)
    unlabelled_weight: float | None = option(None, f"weight of the loss on unlabelled images; {OF_RECIPE}")
    kl_weight: float = option(0.005, "weight of the neural process' KL divergence")
    dice_weight: float = option(0.0, "weight of the Dice loss on labels; the cross-entropy has weight 1", at_least=0)
    ema_decay: float | None = option(None, f"decay of the moving average of the weights, which teaches; {OF_RECIPE}")
    warm_up: int | None = option(None, f"number of first steps that learn from labels alone; {OF_RECIPE}", at_least=0)
    max_epochs: int | None = option(None, f"number of epochs; {OF_RECIPE}", at_least=1)
    steps_per_epoch: int | None = option(None, "steps in each epoch; default: every unlabelled image once", at_least=1)
    total_steps: int | None = option(None, "steps until the learning rate is 0; default: all steps", at_least=1)
    structure_share: float = option(
        0.5, "slices: share of labelled draws taken from slices with a structure", at_least=0, at_most=1
    )
    slice_batch: int = option(8, "slices predicted at once", at_least=1, incidental=True)
