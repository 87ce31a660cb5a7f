"""The page and the figures of a classification run; `medssl report` asks for them."""

from natural_image_ext.report.content import picture_figures, pictures_content
from natural_image_ext.report.page import PICTURES_REPORT

__all__ = ["PICTURES_REPORT", "picture_figures", "pictures_content"]
