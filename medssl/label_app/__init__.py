"""The MONAI Label app: segment, see where the model is unsure, review the most uncertain scan first, learn from it.

launch.py (`medssl label`) starts server.py, which serves app.py; edge.py checks what comes in, background.py what of
it reaches the processes of tasks, tags.py who stores what; viewer.py fits OHIF.
datastore.py is a folder of scans, series.py studies that are DICOM series: series_folder.py those of a folder (found by
series_map.py), archive.py those of a DICOMweb archive. studies.py keeps what model.py says of them, queue.py scores and
orders them, training.py trains on what was reviewed. Nothing is imported here: MONAI Label is an extra, and slow to
import.
"""
