"""The pages and figures of runs on natural images; `medssl report` asks for them by the run's kind."""

from natural_image_ext.report.content import picture_figures, pictures_content
from natural_image_ext.report.page import PICTURES_REPORT
from natural_image_ext.report.scene_page import SCENES_REPORT
from natural_image_ext.report.scenes import scene_content, scene_figures

PAGES = {"classification": (PICTURES_REPORT, pictures_content), "scenes": (SCENES_REPORT, scene_content)}
FIGURES = {"classification": picture_figures, "scenes": scene_figures}

__all__ = ["FIGURES", "PAGES"]
