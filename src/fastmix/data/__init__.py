"""The one view of the data that mechanisms have: rows of bounded norm, read in passes."""

from fastmix.data.array import ArrayRows, AugmentedRows
from fastmix.data.chunks import ArrayChunk, Chunk, ChunkRows, Chunks, Report, Streaming
from fastmix.data.maps import LabelMap, RowMap, TargetMap
from fastmix.data.reductions import Measure
from fastmix.data.rows import Rows, TransformedRows

__all__ = [
    "ArrayChunk",
    "ArrayRows",
    "AugmentedRows",
    "Chunk",
    "ChunkRows",
    "Chunks",
    "LabelMap",
    "Measure",
    "Report",
    "RowMap",
    "Rows",
    "Streaming",
    "TargetMap",
    "TransformedRows",
]
