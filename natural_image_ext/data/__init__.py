"""Natural images: sets by name, balanced splits, weak and strong views."""

from natural_image_ext.data.sources import ImageSource, Pictures, open_images
from natural_image_ext.data.splits import ImageSplit, split_images
from natural_image_ext.data.views import LabelledPictures, Views, make_picture_loader, read_picture

__all__ = [
    "ImageSource",
    "ImageSplit",
    "LabelledPictures",
    "Pictures",
    "Views",
    "make_picture_loader",
    "open_images",
    "read_picture",
    "split_images",
]
