"""Chunks that are decoded once: their blocks stay in memory, if all of them fit a public limit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastmix._system import free_memory
from fastmix.data.chunks import Chunk, Chunks, Records, Streaming


@dataclass
class Room:
    """Bytes that the blocks of a table may still take."""

    left: int


class KeptChunk(Chunk):
    """A chunk whose first pass keeps its blocks for the others; without room it is read again.

    The blocks are those that were decoded, bit for bit, and nobody can write to them.
    """

    def __init__(self, chunk: Chunk, room: Room) -> None:
        self._chunk, self._room = chunk, room
        self._blocks: Sequence[Records] | None = None
        self.name, self.length, self.blocks = chunk.name, chunk.length, chunk.blocks

    def read(self) -> Iterator[Records]:
        if self._blocks is not None:
            yield from self._blocks
            return
        kept: list[Records] = []
        for X, y in self._chunk.read():
            self._room.left -= X.nbytes + y.nbytes
            if self._room.left >= 0:
                X.flags.writeable = y.flags.writeable = False
                kept.append((X, y))
            else:
                kept.clear()
            yield X, y
        if self._room.left >= 0:
            self._blocks = kept

    def read_ids(self) -> Iterator[Any]:
        return self._chunk.read_ids()

    def read_weights(self) -> Iterator[Any]:
        return self._chunk.read_weights()


def decoded_once(table: Chunks) -> Chunks:
    """Return the same table, decoded once if it is read here and may fit its memory.

    It takes half of the memory that is free at most. What is kept changes no value of a fit.
    """
    memory = int(min(table.memory, free_memory() / 2))
    needed = 8 * (table.d + 1) * (table.n or 0)
    decoded = all(chunk.decodes for chunk in table.chunks)
    if not decoded or not isinstance(table.executor, Streaming) or not 0 < memory >= needed:
        return table
    room = Room(memory)
    return replace(table, chunks=[KeptChunk(chunk, room) for chunk in table.chunks])
