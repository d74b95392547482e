"""Linear maps from n rows to few, as values: they know nothing of epsilon.

A `Sketch` is a distribution, ``sample`` draws a `SketchDraw` from it, and a draw can be
applied to data, transposed, and asked for what the privacy analysis needs of it.
"""

from fastmix.sketches.base import BlockDraw, Sketch, SketchDraw
from fastmix.sketches.kerdock import KerdockSketch
from fastmix.sketches.sparse import SparseSketch
from fastmix.sketches.subsampled import SRHT, SubsampledDCT

__all__ = [
    "SRHT",
    "BlockDraw",
    "KerdockSketch",
    "Sketch",
    "SketchDraw",
    "SparseSketch",
    "SubsampledDCT",
]
