"""Semi-supervised methods on pictures, one file each: classification and segmentation."""
