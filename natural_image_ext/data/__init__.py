"""Natural images: sets by name, balanced splits, checks, weak and strong views."""

from natural_image_ext.data.checks import check_pictures
from natural_image_ext.data.sources import ImageSource, Pictures, open_images
from natural_image_ext.data.splits import ImageSplit, read_image_split, split_images
from natural_image_ext.data.views import (
    LabelledPictures,
    SemiSupervisedPictures,
    Views,
    make_picture_loader,
    read_picture,
)

__all__ = [
    "ImageSource",
    "ImageSplit",
    "LabelledPictures",
    "Pictures",
    "SemiSupervisedPictures",
    "Views",
    "check_pictures",
    "make_picture_loader",
    "open_images",
    "read_image_split",
    "read_picture",
    "split_images",
]
