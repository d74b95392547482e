"""Models, reports and bounds in files: what fits write, and what is read back."""

from fastmix.files.loading import load
from fastmix.files.template import bounds_template

__all__ = ["bounds_template", "load"]
