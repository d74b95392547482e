"""Files of fits: saved models, reports, and bounds files."""

from fastmix.files.loading import load
from fastmix.files.template import bounds_template

__all__ = ["bounds_template", "load"]
