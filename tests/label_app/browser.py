"""OHIF, as MONAI Label serves it, in Debian's headless Chromium: what a radiologist clicks, and what is then seen."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WAIT_SECONDS = 120

_VOXELS = "return [volume.dimensions, Array.from(volume.voxelManager.getCompleteScalarDataArray())]"
_SCAN = "const volume = cornerstone.cache.getVolumes()[0];"
_LABELS = "const volume = services.segmentationService.getLabelmapVolume('1');"
_PICTURE = "const picture = cornerstone.getRenderingEngines()[0]?.getViewports()[0]?.getCornerstoneImage();"
_PAINTED = """
const {imageIds} = services.segmentationService.getSegmentations()[0].representationData.Labelmap;
const inside = id => cornerstone.cache.getImage(id).getPixelData().reduce((count, label) => count + (label > 0), 0);
const painted = imageIds.map(inside);
"""
_TO_FULLEST = (
    "cornerstone.getRenderingEngines()[0].getViewports()[0].setImageIdIndex(painted.indexOf(Math.max(...painted)))"
)
# a scan is drawn in grey; the canvas is without the texts that lie above it
_COLOURED = """
return Array.from(document.querySelectorAll('canvas.cornerstone-canvas')).map(canvas => {
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [red, green, blue] = data.subarray(i, i + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 25) found += 1;
  }
  return found;
});
"""


def require_chromium() -> None:
    """Skips the test where Chromium, its driver or Selenium is missing."""
    pytest.importorskip("selenium", reason="needs pip install 'medssl[dev]'")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with its driver here; `make setup-label` installs them")


class Viewer:
    """One window of OHIF in its MONAI Label mode."""

    def __init__(self, driver) -> None:
        self._driver = driver

    def open_study(self, server_url: str, study_uid: str) -> None:
        """Opens the study in the three planes, and waits until all its slices are there."""
        self._driver.get(f"{server_url}/ohif/monai-label?StudyInstanceUIDs={study_uid}")
        self._wait_for_scan()
        for button in self._find("//button[contains(., 'Confirm and Hide')]"):
            button.click()

    def address(self) -> str:
        """Of the label server, as the panel proposes it."""
        return self._find("//input[@id='monailabelServerURL']")[0].get_attribute("value")

    def listed_studies(self) -> int:
        """How many studies are listed as the patient's."""
        return len(self._find("//*[@data-cy='studyBrowser-panel']//*[text()='02-Jan-2020']"))

    def connect(self) -> list[str]:
        """Clicks on the round arrow, and returns the models that are then offered."""
        self._find("//*[@class='settingsTable']//button")[0].click()
        self.wait_until(lambda: self._run(f"{_LABELS} return !!volume"), "the segments")
        options = self._find("//button[@title='Run Segmentation']/ancestor::table[1]//option")
        return [option.get_attribute("value") for option in options]

    def run(self, model: str) -> None:
        """Chooses the model, clicks on Run, and waits until OHIF shows its answer."""
        from selenium.webdriver.support.select import Select

        table = "//button[@title='Run Segmentation']/ancestor::table[1]"
        Select(self._find(f"{table}//select")[0]).select_by_value(model)
        before = self.labels()
        self._find("//button[@title='Run Segmentation']")[0].click()
        self.wait_until(lambda: not np.array_equal(before, self.labels()), f"segments of {model}")

    def next_sample(self, strategy: str) -> str:
        """Asks for the next sample by a strategy, agrees to open it, and returns the UID of the study then open."""
        from selenium.webdriver.support.select import Select

        self._find("//label[text()='Active Learning']")[0].click()
        tab = "//input[@name='activelearning']/.."
        self.wait_until(self._find(f"{tab}//button")[0].is_displayed, "the tab")
        Select(self._find(f"{tab}//select")[0]).select_by_value(strategy)
        self._find(f"{tab}//button[text()='Next Sample']")[0].click()
        self.wait_until(lambda: bool(self._find("//*[@class='nextSampleForm']//button")), "the next sample")
        self._run("window.isOldPage = true")
        self._find("//*[@class='nextSampleForm']//button")[0].click()
        self._driver.switch_to.alert.accept()
        self.wait_until(lambda: self._run("return !window.isOldPage"), "another page")
        self._wait_for_scan()
        return self._run("return new URLSearchParams(location.search).get('StudyInstanceUIDs')")

    def open_in_segmentation_mode(self, server_url: str, study_uid: str) -> None:
        """Opens the study where OHIF has a brush, and waits for a slice."""
        self._driver.get(f"{server_url}/ohif/segmentation?StudyInstanceUIDs={study_uid}")
        self.wait_until(lambda: self._run(f"{_PICTURE} return !!picture"), "a slice")

    def load_segmentation(self, structure: str) -> None:
        """Double-clicks on the segmentation that the archive has of the study, agrees to open it, chooses a segment.

        Then goes to the slice with the most labelled voxels.
        """
        self._click("//*[@data-cy='study-browser-thumbnail-no-image']", times=2)
        self._click("//button[normalize-space()='Yes']")
        self.wait_until(lambda: self.painted() > 0, "the segmentation")
        self._click(f"//*[text()='{structure}']")
        self._run(f"{_PAINTED} {_TO_FULLEST}")
        self.wait_until(lambda: max(self.coloured_pixels()) > 50, "the segment")

    def add_segmentation(self, structure: str) -> None:
        """Begins a new one, with a segment of that name."""
        self._click("//*[text()='Add Segmentation']")
        self._click("(//*[text()='Segment 1']/following::button)[last()]")
        self._click("//*[@role='menuitem' and contains(., 'Rename')]")
        self.wait_until(lambda: bool(self._find("//*[text()='Edit Segment Label']")), "the dialog")
        self._find("//input")[0].send_keys(structure)
        self._click("//*[text()='Save']")
        self.wait_until(lambda: structure in self.segments(), "the name")

    def paint(self) -> None:
        """Draws one stroke with the brush on the slice that is shown, and waits until it is there."""
        from selenium.webdriver import ActionChains

        before = self.painted()
        self._click("//*[@data-cy='Brush']")
        canvas = self._find("//canvas[contains(@class, 'cornerstone-canvas')]")[0]
        begin = ActionChains(self._driver).move_to_element_with_offset(canvas, -150, 0)
        begin.click_and_hold().move_by_offset(40, 10).move_by_offset(10, 20).release().perform()
        self.wait_until(lambda: self.painted() > before, "what was painted")

    def painted(self) -> int:
        """How many voxels of the study are labelled, in the Segmentation mode."""
        return self._run(f"{_PAINTED} return painted.reduce((sum, count) => sum + count, 0)")

    def download(self, name: str, folder: Path) -> Path:
        """Downloads the segmentation of that name as a DICOM SEG file into the folder."""
        self._driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
        self._choose(name, "Download DICOM SEG")
        self.wait_until((folder / name).is_file, "the file")
        return folder / name

    def export(self, name: str) -> str:
        """Stores the segmentation of that name in the archive, and returns what OHIF then says."""
        self._choose(name, "Export DICOM SEG")
        self._click("//button[normalize-space()='Save']")
        notice = "//*[@data-title and text()='Export DICOM SEG']/following-sibling::*"
        # while it fades in, it is there and has no text that can be seen
        self.wait_until(lambda: any(found.text for found in self._find(notice)), "a notice")
        return self._find(notice)[0].text

    def _choose(self, name: str, item: str) -> None:
        """Clicks on an item of the menu of a segmentation."""
        self._click(f"//button[normalize-space()='{name}']/preceding::button[1]")
        self._click("//*[@role='menuitem' and contains(., 'Export & Download')]")
        self._click(f"//*[@role='menuitem' and text()='{item}']")

    def scan(self) -> np.ndarray:
        """Voxels (X, Y, Z) of the scan, as the viewer has them."""
        return self._voxels(_SCAN)

    def labels(self) -> np.ndarray:
        """Numbers of the segments (X, Y, Z), as the viewer has them; segments() names them."""
        return self._voxels(_LABELS)

    def segments(self) -> dict[str, int]:
        """Name to number of all segments."""
        found = self._run("return services.segmentationService.getSegmentations()[0].segments")
        return {segment["label"]: int(number) for number, segment in found.items()}

    def go_to(self, voxel: Sequence[int]) -> None:
        """Scrolls each of the three planes to the slice that the voxel lies in."""
        place = f"volume.imageData.indexToWorld({[int(index) for index in voxel]})"
        planes = "cornerstone.getRenderingEngines().flatMap(engine => engine.getViewports())"
        self._run(f"{_SCAN} const place = {place}; {planes}.forEach(plane => plane.jumpToWorld(place))")

    def coloured_pixels(self) -> list[int]:
        """How many pixels are not grey, in each of the three planes."""
        return self._run(_COLOURED)

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        assert self._driver.save_screenshot(str(path))

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Returns once the condition holds; raises TimeoutException that says what was not shown."""
        from selenium.common.exceptions import JavascriptException
        from selenium.webdriver.support.wait import WebDriverWait

        wait = WebDriverWait(self._driver, WAIT_SECONDS, 0.5, ignored_exceptions=[JavascriptException])
        wait.until(lambda _: condition(), f"OHIF did not show {what}")

    def _wait_for_scan(self) -> None:
        self.wait_until(lambda: self._run("return !!document.getElementById('monailabelServerURL')"), "the panel")
        self.wait_until(lambda: self._run(f"{_SCAN} return !!volume?.loadStatus?.loaded"), "the scan")

    def _click(self, path: str, times: int = 1) -> None:
        """Clicks (twice: double-clicks) on what the path leads to, once it is there and no welcome text above it."""
        from selenium.webdriver import ActionChains

        self.wait_until(lambda: any(found.is_displayed() for found in self._find(path)), path)
        for button in self._find("//button[contains(., 'Confirm and Hide')]"):
            button.click()
        found = next(found for found in self._find(path) if found.is_displayed())
        if times == 2:
            ActionChains(self._driver).double_click(found).perform()
        else:
            found.click()

    def _voxels(self, script: str) -> np.ndarray:
        shape, values = self._run(f"{script} {_VOXELS}")
        return np.reshape(values, shape, order="F")

    def _run(self, script: str):
        return self._driver.execute_script(script)

    def _find(self, path: str) -> list:
        return self._driver.find_elements("xpath", path)


@contextlib.contextmanager
def headless_chromium(profile: Path) -> Iterator[Viewer]:
    """A window of 1500 x 950 pixels, drawn without a graphics card, that reaches nothing but loopback."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = ["--headless=new", "--enable-unsafe-swiftshader", "--window-size=1500,950", "--disable-dev-shm-usage"]
    flags += [
        f"--user-data-dir={profile}",
        "--no-proxy-server",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium's own condition for root
    for flag in flags:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_script_timeout(WAIT_SECONDS)
    try:
        yield Viewer(driver)
    finally:
        driver.quit()
