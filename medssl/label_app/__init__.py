"""The MONAI Label app: segment, see where the model is unsure, review the most uncertain scan first, learn from it.

`medssl label` (launch.py) starts it. Nothing is imported here: MONAI Label is an extra, and slow to import.
"""
