"""Decisions in Parquet: what a row is, and how it is read back, in order or shuffled.

A data set is a folder that `domino export` has filled: parts `part-00000.parquet`, … and a manifest.json that says what
was played and how many rows each part has. Reading streams: no more than a buffer of rows is in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from domino_env.observation import layout_of
from domino_env.rules import Rules, describe_rules, get_rules

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "pyarrow":
        raise
    raise ImportError(
        "decisions in Parquet need pyarrow, which is not installed; install the extra export: "
        "pip install 'domino-lab[export]'"
    ) from None

FORMAT = 1  # of the columns and the manifest; moves when an older version could not read them
MANIFEST = "manifest.json"
GROUP = 1 << 14  # rows of a row group: what is read at once
BUFFER = 1 << 18  # rows that are shuffled together
NO_VALUE = int(np.iinfo(np.int16).min)  # in `values`, once read: the action is not legal

Rows = dict[str, npt.NDArray[Any]]  # by name of the column, all of the same length


class DataError(ValueError):
    """A data set that cannot be read or gone on with; the text says which and why, in one line."""


# -- what a row is ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column: its name never changes its meaning."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str


def columns_of(rules: Rules, values: bool = False) -> list[Column]:
    """The columns of a game's data set, in their order; with `values` the double-dummy ones too."""
    seat, bits = "seat", "bits"
    columns = [
        Column("deal", pa.int64(), "number", "the deal; with the seed it fixes the hands and who leads"),
        Column("ply", pa.int16(), "actions", "made in the deal before this one, passes and forced ones counted"),
        Column("seat", pa.uint8(), seat, "who decides"),
        Column("leader", pa.uint8(), seat, "who led the deal"),
        Column("player", pa.uint8(), "place", "who sits there, by the place in `agents` of the metadata"),
        Column("obs", pa.binary(layout_of(rules).nbytes), bits, "packed observation: bit b % 8 of byte b // 8"),
        Column("mask", pa.uint64(), bits, "legal actions, bit a for action a"),
        Column("action", pa.uint8(), "action", "what was played"),
        Column("result", pa.int16(), "points", "what the seat has won or lost when the deal is over"),
        Column("outcome", pa.uint8(), "code", "how the deal ends: 0 out, 1 block, 2 broken off"),
        Column("hands", pa.list_(pa.uint32(), rules.seats), bits, "tiles of every seat now, bit t for tile t: hidden"),
    ]
    if values:
        kind = pa.list_(pa.int16(), rules.num_actions)
        meaning = "worth of every action for the mover's side, all hands open; null where illegal"
        columns.append(Column("values", kind, "points", meaning))
    return columns


def schema_of(rules: Rules, values: bool, metadata: dict[str, Any]) -> pa.Schema:
    """The Parquet schema, with unit and meaning of each column; `metadata` stands in it as JSON, each key by itself."""
    fields = [
        pa.field(one.name, one.type, nullable=False, metadata={"unit": one.unit, "meaning": one.meaning})
        for one in columns_of(rules, values)
    ]
    whole = {"format": FORMAT, **metadata, "observation": _places(rules)}
    return pa.schema(fields, metadata={f"domino.{key}": json.dumps(value) for key, value in whole.items()})


def _places(rules: Rules) -> dict[str, Any]:
    """Where each part of an observation lies: name -> first bit, bit after the last, meaning."""
    layout = layout_of(rules)
    return {name: [part.start, part.stop, layout.meanings[name]] for name, part in layout.slices.items()}


def to_table(rows: Rows, schema: pa.Schema) -> pa.Table:
    """Rows as they are played, as an Arrow table; `obs` is (n, nbytes) uint8, `hands` and `values` have n rows too."""
    return pa.Table.from_arrays([_arrow(rows[field.name], field.type) for field in schema], schema=schema)


def to_parquet(rows: Rows, schema: pa.Schema) -> bytes:
    """The same as the content of a Parquet file."""
    sink = pa.BufferOutputStream()
    coded = [field.name for field in schema if field.name not in ("deal", "obs", "mask", "hands")]
    pq.write_table(to_table(rows, schema), sink, row_group_size=GROUP, compression="zstd", use_dictionary=coded)
    return bytes(sink.getvalue().to_pybytes())


def _arrow(array: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    array = np.ascontiguousarray(array)
    if pa.types.is_fixed_size_binary(kind):
        return pa.FixedSizeBinaryArray.from_buffers(kind, len(array), [None, pa.py_buffer(array)])
    if pa.types.is_fixed_size_list(kind):
        flat = array.reshape(-1)
        lost = flat == NO_VALUE if flat.dtype == np.int16 else None
        return pa.FixedSizeListArray.from_arrays(pa.array(flat, kind.value_type, mask=lost), type=kind)
    return pa.array(array, kind)


def to_rows(table: pa.Table | pa.RecordBatch) -> Rows:
    """The same back: columns as arrays, of which nobody else holds the memory."""
    return {name: _plain(table.column(name)) for name in table.schema.names}


def _plain(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_fixed_size_binary(kind):
        width, start = kind.byte_width, column.offset * kind.byte_width
        data = np.frombuffer(column.buffers()[1] or b"", np.uint8)
        return data[start : start + len(column) * width].reshape(-1, width).copy()
    if pa.types.is_fixed_size_list(kind):
        flat = column.flatten()
        flat = flat.fill_null(NO_VALUE) if flat.null_count else flat
        return np.array(flat.to_numpy(zero_copy_only=False)).reshape(-1, kind.list_size)
    return np.array(column.to_numpy(zero_copy_only=False))


# -- a data set ------------------------------------------------------------------------------------------------------


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """What a data set says of itself.

    Raises:
        DataError: there is none, or one that this version cannot read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder of decisions; `domino export AGENT --out FOLDER` makes one")
    if not (folder / MANIFEST).is_file():
        raise DataError(f"{folder} holds no decisions: it has no {MANIFEST}")
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        version, parts = manifest["format"], manifest["parts"]
        whole = all(isinstance(part[key], int) for part in parts for key in ("rows", "bytes", "deals"))
        whole &= isinstance(manifest["command"]["rules"], dict)
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{folder / MANIFEST} is damaged") from None
    if version != FORMAT or not whole:
        raise DataError(f"{folder} has format {version!r}; this version reads format {FORMAT}")
    return dict(manifest)


class DataSet:
    """A folder of decisions, opened for reading. Of an unfinished one the parts that are whole count."""

    def __init__(self, folder: str | Path) -> None:
        """DataError where it cannot be read, or holds no rows."""
        self.folder = Path(folder)
        self.manifest = read_manifest(folder)
        self.rules = self._rules()
        self.rows = sum(part["rows"] for part in self.manifest["parts"])
        if not self.rows:
            raise DataError(f"{self.folder} holds no decisions yet: its export has not finished a part")
        self.parts = [self.folder / part["file"] for part in self.manifest["parts"]]
        for path, part in zip(self.parts, self.manifest["parts"], strict=True):
            if not path.is_file() or path.stat().st_size != part["bytes"]:
                raise DataError(f"{path} is missing or damaged; the command that exported it makes it anew")
        self.columns = tuple(self._open(0).schema_arrow.names)
        # (G, 3) int64 row groups in order: part, group of the part, rows.
        self.groups = np.array([group for part in range(len(self.parts)) for group in self._groups(part)], np.int64)

    def _rules(self) -> Rules:
        said = self.manifest["command"]["rules"]
        try:
            rules = get_rules(said["name"], **said["overrides"])
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{self.folder}: its rules are not known here: {error}") from None
        if describe_rules(rules) != said:
            raise DataError(f"{self.folder}: the preset {rules.name!r} has changed since this was exported")
        return rules

    def _open(self, part: int) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self.parts[part])
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.parts[part]} cannot be read: {error}") from None

    def _groups(self, part: int) -> list[tuple[int, int, int]]:
        data = self._open(part).metadata
        return [(part, group, data.row_group(group).num_rows) for group in range(data.num_row_groups)]

    def check(self, columns: Sequence[str] | None) -> list[str]:
        """The columns that are wanted, all where None; DataError for one that is not there."""
        for name in columns or ():
            if name not in self.columns:
                more = "; export with --values for it" if name == "values" else ""
                raise DataError(f"{self.folder} has no column {name!r}; it has {', '.join(self.columns)}{more}")
        return list(self.columns if columns is None else columns)

    def group(self, part: int, number: int, columns: Sequence[str]) -> Rows:
        """One row group."""
        try:
            with self._open(part) as file:
                return to_rows(file.read_row_group(number, columns=list(columns), use_threads=False))
        except pa.ArrowException as error:
            raise DataError(f"{self.parts[part]} cannot be read: {error}") from None


def read(folder: str | Path, columns: Sequence[str] | None = None, rows: int = GROUP) -> Iterator[Rows]:
    """The rows of a data set in order, deal by deal, some at a time.

    Args:
        folder: of `domino export`.
        columns: names; None: all. See docs/export.md.
        rows: how many at most come at once.

    Returns:
        Dicts of arrays by column: (n,) of the column's type, `obs` (n, nbytes) uint8 (`domino_env.observation.unpack`
        makes bits of it), `hands` (n, seats) uint32, `values` (n, actions) int16 with NO_VALUE for illegal actions.

    Raises:
        DataError: it cannot be read, or has no such column.
    """
    if rows < 1:
        raise DataError(f"rows={rows} must be at least 1")
    data = DataSet(folder)
    return _read(data, data.check(columns), rows)


def _read(data: DataSet, columns: list[str], rows: int) -> Iterator[Rows]:
    for part, path in enumerate(data.parts):
        with data._open(part) as file:
            try:
                for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                    yield to_rows(batch)
            except pa.ArrowException as error:
                raise DataError(f"{path} cannot be read: {error}") from None


# -- shuffled --------------------------------------------------------------------------------------------------------


class Shuffled:
    """Batches of the rows in an order without end that follows from the seed alone: any batch can be asked for.

    In each epoch every row comes once. Row groups are put in a new order, cut into buffers of so many rows, and the
    rows of a buffer are shuffled; one buffer is in memory.
    """

    def __init__(
        self,
        data: DataSet,
        size: int,
        seed: int,
        columns: Sequence[str] | None = None,
        keep: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]] | None = None,
        buffer: int = BUFFER,
    ) -> None:
        """
        Args:
            size: rows of a batch; the last one of an epoch may have fewer.
            keep: (n,) numbers of deals -> (n,) bool, whose rows count; None: all.
            buffer: rows that are shuffled together, at least.

        Raises:
            DataError: an unknown column, no rows, a number out of range.
        """
        for name, value, least in (("size", size, 1), ("seed", seed, 0), ("buffer", buffer, 1)):
            if value < least:
                raise DataError(f"{name}={value} must be at least {least}")
        self.data, self.size, self.seed, self.keep, self.buffer = data, size, seed, keep, buffer
        self.columns = data.check(columns)
        self._counts = data.groups[:, 2]
        if keep is not None:
            deals = (data.group(part, group, ["deal"])["deal"] for part, group, _ in data.groups.tolist())
            self._counts = np.array([int(keep(one).sum()) for one in deals], np.int64)
        self.rows = int(self._counts.sum())
        if not self.rows:
            raise DataError(f"{data.folder}: none of its {data.rows} rows is left to learn from")
        self._epoch = -1
        self._loaded: tuple[int, int] | None = None  # epoch and number of the buffer in memory
        self._rows: Rows = {}

    def __len__(self) -> int:
        """Batches of an epoch."""
        return -(-self.rows // self.size)

    def batch(self, number: int) -> Rows:
        """Batch `number`, from 0; asked one after the other, each buffer is read once."""
        epoch, place = divmod(number, len(self))
        if epoch != self._epoch:
            self._order = np.random.default_rng([self.seed, epoch, 0]).permutation(len(self._counts))
            before = np.cumsum(self._counts[self._order]) - self._counts[self._order]
            self._which = before // self.buffer  # (G,) the buffer of each group, in the epoch's order
            self._ends = np.cumsum(np.bincount(self._which, weights=self._counts[self._order]).astype(np.int64))
            self._epoch = epoch
        start, stop = place * self.size, min((place + 1) * self.size, self.rows)
        parts: list[Rows] = []
        while start < stop:
            number = int(np.searchsorted(self._ends, start, side="right"))
            begin = int(self._ends[number - 1]) if number else 0
            until = min(stop, int(self._ends[number]))
            self._load(number)
            parts.append({name: self._rows[name][start - begin : until - begin] for name in self.columns})
            start = until
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _load(self, number: int) -> None:
        """Brings a buffer of the present epoch into memory."""
        if self._loaded == (self._epoch, number):
            return
        self._rows = {}  # first, so that two are never there
        columns = list(dict.fromkeys([*self.columns, *(["deal"] if self.keep else [])]))
        groups = self.data.groups[self._order[self._which == number]].tolist()
        parts = []
        for part, group, _ in groups:
            rows = self.data.group(part, group, columns)
            if self.keep is not None:
                chosen = self.keep(rows["deal"])
                rows = {name: rows[name][chosen] for name in self.columns}
            parts.append(rows)
        rows = _joined(parts)
        order = np.random.default_rng([self.seed, self._epoch, 1 + number]).permutation(len(rows[self.columns[0]]))
        self._rows = {name: array[order] for name, array in rows.items()}
        self._loaded = (self._epoch, number)


def _joined(parts: Sequence[Rows]) -> Rows:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def batches(
    folder: str | Path,
    size: int,
    seed: int = 0,
    epochs: int = 1,
    columns: Sequence[str] | None = None,
    buffer: int = BUFFER,
    first: int = 0,
) -> Iterator[Rows]:
    """Shuffled batches of a data set, for a learner; see `Shuffled` and `read`.

    Args:
        size: rows of a batch; the last one of an epoch may have fewer.
        epochs: how often every row comes.
        first: the batch to begin with, for who goes on.

    Raises:
        DataError: it cannot be read, an unknown column, a number out of range.
    """
    for name, value in (("epochs", epochs), ("first", first)):
        if value < 0:
            raise DataError(f"{name}={value} must not be negative")
    shuffled = Shuffled(DataSet(folder), size, seed, columns, buffer=buffer)
    return (shuffled.batch(number) for number in range(first, epochs * len(shuffled)))
