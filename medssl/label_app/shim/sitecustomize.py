"""Lets pydicom-seg 0.4.1, which MONAI Label imports, find a module that pydicom 3 has merged into `pydicom.uid`."""

import contextlib
import sys

with contextlib.suppress(ImportError):
    import pydicom.uid

    sys.modules.setdefault("pydicom._storage_sopclass_uids", pydicom.uid)
