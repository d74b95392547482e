"""The one view of the data that mechanisms have: rows of bounded norm, read in passes."""

from fastmix.rows.array import ArrayRows
from fastmix.rows.augmented import AugmentedRows
from fastmix.rows.base import Rows
from fastmix.rows.chunks import ArrayChunk, Chunk, ChunkRows, Chunks, Report, Streaming
from fastmix.rows.maps import RowMap, TargetMap

__all__ = [
    "ArrayChunk",
    "ArrayRows",
    "AugmentedRows",
    "Chunk",
    "ChunkRows",
    "Chunks",
    "Report",
    "RowMap",
    "Rows",
    "Streaming",
    "TargetMap",
]
