"""The classes of arguments: members of specs, by the names of the JSON Schema where it has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from chaski._access import HasToken, Token
from chaski._argument import Argument
from chaski._calls import entries
from chaski._fields import FieldLike
from chaski._plain import BBox, Columns, Crs, Path, RowsJson, Size, Tables, Timestamp, Where
from chaski._records import BadRow, FieldInfo, SampleRef, SourceInfo
from chaski._sources import Scenes, Split
from chaski._windows import Sampler

if TYPE_CHECKING:
    import grpc

__all__ = [
    "OnBad",
    "Strata",
    "Time",
    "Rows",
    "Source",
    "Mixture",
    "Engine",
    "Map",
    "FieldInfo",
    "SourceInfo",
    "SampleRef",
    "BadRow",
]
VERSION = 1
BadSamples: TypeAlias = Literal["error", "skip", "replace", "fill"]
Last: TypeAlias = Literal["short", "drop", "pad"]
Missing: TypeAlias = Literal["error", "drop"]
Transport: TypeAlias = Literal["auto", "shm", "grpc"]
Until: TypeAlias = Literal["shortest", "longest"] | int
Wire: TypeAlias = Literal["auto", "native", "final"]


@dataclass(frozen=True, repr=False)
class OnBad(Argument):
    """What a run does with samples that cannot be read.

    `Loader.bad` counts and lists them.

    Network and permission errors are not faults of a sample. They always end the run.

    Attributes:
        action: says what happens to samples that cannot be read: "error" (default) ends the run,
            "skip" marks the row as not valid, "replace" reads another sample, "fill" keeps what can
            be read: fields that cannot are nodata, of a sequence only their steps that cannot.
            `batch["there"]` says for each field where it is there.
        max_count: the number of bad rows that are allowed, at least 0. Default: any number. Every
            rank counts its own, from the start of the epoch or from where its loader began: a state
            has no count.
        max_rate: the share of the rank's rows of a whole epoch that may be bad, from 0 to 1.
            Default: any share.
        quarantine: file that bad samples are appended to, as lines of JSON that `Rows(bad=FILE)`
            reads; several processes may share one.
    """

    action: BadSamples = "error"
    max_count: int | None = None
    max_rate: float | None = None
    quarantine: str | os.PathLike[str] | None = None


@dataclass(frozen=True, repr=False)
class Strata(Argument):
    """Draws from the rows of every value of a column in fixed proportions.

    Attributes:
        column: the column whose values make the strata.
        temperature: weights each value by its number of rows, as in Mixture. Default: every value
            is drawn equally often (class-balanced).
        until: "shortest" or "longest" of the values' rows, or samples of an epoch. Default: as many
            as all rows have.
        per_batch: makes the shares exact in every global batch, and an epoch a whole number of
            batches, as in Mixture. In a mixture it needs `per_batch` of that mixture, too.
    """

    column: str
    temperature: float | None = None
    until: Until | None = None
    per_batch: bool = False


@dataclass(frozen=True, repr=False)
class Time(Argument):
    """Groups rows into sequences: the rows with one value of `key`, ordered by `order`.

    An axis t is then in layouts such as "n t b y x".

    Attributes:
        key: the column whose value is the same for all rows of a series, or several, such as
            "{tile}_{x}_{y}". Default: all rows are one series.
        order: the column that orders the rows of a series: numbers, times, or strings that say a
            time, such as ISO 8601 dates. Other strings are refused. Default: "row", the numbers of
            the rows.
        length: the number of steps of a sample, from 1 to 65,536.
        stride: the number of steps from the start of one sample of a series to the start of the
            next. Default: `length`, so that samples do not overlap.
        cut: leaves out the end of a series if it does not fill a sample. Without it the end is
            padded.
        validity: names a second tensor, uint8 (n t): 1 for a step that exists, 0 for padding.
            Default "steps".
    """

    key: str | None = None
    order: str | None = None
    length: int = 0
    stride: int | None = None
    cut: bool = False
    validity: str = "steps"


@dataclass(frozen=True, repr=False)
class Rows(RowsJson):
    """Which rows of a source are samples, and how many of them make an epoch.

    Attributes:
        ids: the samples that count: a list, or the path of one: a text file with an id on each
            line, or PATH::COLUMN, a column of a table (.csv, .tsv, .parquet, .json). A column by
            its number, from 0, is of a CSV file without a header. An id is what the sample is
            called, or the end of the path of one of its rasters from a slash on, with or without
            the ending. Samples keep the dataset's order. An id that names no sample is an error:
            see `missing`.
        id_column: the column of the dataset that holds the ids, or a text with columns in braces,
            such as "{scene}_{tile}". Each id then names all rows that have it. Default: what the
            samples are called.
        where: conditions (column, operator, value) that rows have to meet, such as ("cloud", "<",
            10); operators are == != < <= > >= and "in" with a list. Of a container also SQL, as a
            string: "cloud < 10 AND country = 'PE'".
        bbox: a bounding box (west, south, east, north) in the CRS of `bbox_crs`. It selects samples
            whose geometry, or in a catalog the bounds of the raster, intersects the box. In
            longitude and latitude the box crosses the antimeridian if west is greater than east.
            Geometries in another CRS are compared by where they lie on Earth; an unknown CRS is an
            error.
        bbox_crs: the EPSG code of the CRS of `bbox`. Default: 4326, longitude and latitude in
            degrees. Also as "EPSG:32633", or an object with `to_epsg()`.
        datetime: a range "A/B" of dates, which are whole days in UTC, or timestamps. It selects
            samples that begin in the range.
        bad: the samples that are left out: their ids, or the file that `chaski verify --samples` or
            `OnBad(quarantine=FILE)` wrote.
        split: divides the rows into named parts. It needs `use`. A string is the part that counts,
            where a column has the part of each row.
        use: the name of the part of `split` whose rows the run reads.
        strata: draws the rows of every value of a column in fixed shares. A string is the column.
        time: groups rows into sequences, which are then the samples. See `Time`.
        take: the number of samples of an epoch. The next epoch continues where this one ends, so
            every sample comes once before any comes again. Default: as many samples as the dataset
            has. Not for a `Source`.
        steps_per_epoch: the same in steps of `batch_size` samples.
        missing: says what happens to ids for which a field with a pattern has no file: "error"
            (default) refuses the dataset, "drop" leaves the ids out, and the engine logs how many.
            The same holds for `ids` that name no sample, and for samples without a row in one of
            `tables`.
        base_path: the directory of the containers of a TACOCAT or a TACOLLECTION.json. Default: the
            directory beside it.
        dims: names the dimensions of an array in their order: n, b, y and x, and t of a Zarr array.
            An array may lack n, t and b. Default: the names that the array has for them.
        timestamp: opens an array as it was in a range of time: only fragments that were written in
            this range are read. Default: all fragments. A time, or the first and last one:
            milliseconds since 1970, or datetimes with a time zone.
    """

    where: Where = ()
    bbox: BBox | None = None
    bbox_crs: Crs | None = None
    datetime: str | None = None
    bad: Path | Sequence[str] | None = None
    split: Split | str | None = None
    use: str | None = None
    strata: Strata | str | None = None
    time: Time | None = None
    take: int | None = None
    steps_per_epoch: int | None = None
    missing: Missing = "error"
    base_path: Path | None = None
    dims: str | None = None
    timestamp: Timestamp | None = None
    ids: Path | Sequence[str] | None = None
    id_column: str | None = None


@dataclass(frozen=True, repr=False)
class Source(Argument):
    """One of the datasets of a `Mixture`.

    Attributes:
        source: as `load` takes it.
        weight: the share of the source, relative to the other sources. Default 1.
        fields: how its fields differ from those of `load` with the same name: where they are found,
            `bands`, `normalize`, `fill`, `pad`, `wavelengths`, `gsd`, `vector`.
        window: in place of that of `load`; windows must come out at the same size.
        rows: which rows of it are samples.
        tables: as `load` takes them.
    """

    source: Path | Sequence[Path] | Columns
    weight: float = 1.0
    fields: Mapping[str, FieldLike] | None = None
    window: Size | Sampler | Sequence[Sampler] | None = None
    rows: Rows = field(default_factory=Rows)
    tables: Tables | None = None


@dataclass(frozen=True, repr=False)
class Mixture(Argument):
    """Draws samples from several sources in fixed proportions: in place of a source of `load`.

    Batches have a tensor "source": the number of a row's dataset, from 0 in the order of the
    sources (nested ones in their places), and -1 for padding. With `batches` it is the same in
    all rows, and `source` and `fields` of a batch say what that source is.

    Attributes:
        sources: by name: a `Source`, what `Source.source` is, or a `Mixture` again.
        temperature: weights each source by its number of samples to the power of 1/`temperature`: 1
            draws in proportion to the sizes, more draws more evenly. Default: the weights of the
            sources.
        until: an epoch ends when the "shortest" source would begin again, when the "longest" has
            given every sample, or after a number of samples.
        weight: its share in a mixture around it.
        per_batch: makes the shares exact in every global batch, and an epoch a whole number of
            batches. Without it they are exact in every 10,000 samples in a row. A mixture in a
            mixture can only have it if the outer one has it, too.
        batches: "one source" if every global batch comes wholly from one source, the same on all
            ranks. `sources` may then differ in bands, shapes, dtypes and steps of time. Shares are
            of batches: exact in every 10,000 in a row, and in any stretch but for about one batch;
            an epoch is a whole number of batches. A mixture in a mixture can only have it if the
            outer one has it, too. Default: batches are mixed, and all sources have one shape.
    """

    sources: Mapping[str, Source | Mixture | Path | Sequence[Path] | Columns]
    temperature: float | None = None
    until: Until = "shortest"
    weight: float = field(default=1.0, kw_only=True)
    per_batch: bool = field(default=False, kw_only=True)
    batches: Literal["one source"] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class Map(Argument):
    """A function of each batch that runs ahead of the loop, in a thread or in processes.

        loader = chaski.load("chips/", batch_size=32, map=chaski.Map(augment, processes=2))

    Order and states do not change: a resumed run gives the function the batches that it would have
    had. Its exception reaches the loop as the cause of a RuntimeError that names step and samples;
    the next loop goes on with that batch.

    Processes import the program, so it begins its work below `if __name__ == "__main__":`, and the
    function is one of a module. Random numbers of `random`, `numpy.random` and `torch` depend there
    on seed, epoch, step and rank alone. In a thread, which shares them with the loop, make a
    generator of `batch.epoch` and `batch.step`. What the function is given is the next batch's
    memory after it has returned, so it keeps copies.

    Attributes:
        function: takes the batch that the loop would get, and returns what the loop gets.
        processes: how many work at a time; 0 is a thread, for functions that leave Python soon.
        ahead: batches that are ready, or being worked on, before the loop takes them. Default: one
            more than processes, or two.
    """

    function: Callable[[Any], Any]
    processes: int = 0
    ahead: int | None = None


@dataclass(frozen=True, repr=False)
class Engine(HasToken):
    """How batches are made and received.

    None of it changes what is in them.

    Attributes:
        workers: threads that decode; default: one a core. Only for `load`.
        memory: bytes that the engine may hold in batches that are in the making. In shared memory
            batches that you keep count, too, until there is room for only one more. A batch that
            does not fit is a LimitError; where fewer than `prefetch` + 1 fit, a warning is logged.
            Default: eight batches of all ranks and the pools of a `TileWindow`, but at least 256
            MiB and at most a quarter of the machine's memory. Only for `load`.
        max_chunk: bytes of the largest chunk (a file's tile, strip or frame) that is decoded whole;
            default: 64 MiB. Larger tiles and strips of TIFFs are decoded in pieces of rows; larger
            chunks of other formats are a LimitError. Whole chunks over 64 MiB are decoded by as
            many workers at a time as `memory` has room for, at least one. Only for `load`.
        cache: a folder on a local disk that keeps ranges of remote files, also for later runs and
            other engines; default: what the environment variable CHASKI_CACHE_DIR has. Only for
            `load`.
        cache_bytes: the most that `cache` may take on disk, at least 64 KiB; default: what the
            environment variable CHASKI_CACHE_BYTES has. Only for `load`.
        recode: keep decoded chunks in memory in a form that decodes fast: from the second epoch on,
            samples take less work. Idle workers make it, and where none is idle, a tenth of their
            time goes to it; 0.2 gives a fifth. The chunks take at most a quarter of `memory`;
            without it, an eighth of the machine's, as long as nobody else needs it. Larger ones for
            which memory has no room go to `cache`. Only for `load`.
        requester_pays: your account pays for requests to S3, as buckets such as usgs-landsat ask
            for; default: whether the environment variable AWS_REQUEST_PAYER is "requester", as for
            GDAL. Only for `load`.
        prefetch: batches requested ahead. Without a number, as many as suit the data: 3, and of
            small samples of remote files up to 32, within a quarter of the engine's memory and 256
            MiB.
        transport: "shm" takes batches from memory shared with an engine on this host, without a
            copy, and fails where that is not possible; "grpc" has the engine that is asked send
            them; "auto" uses shared memory where it can. The batches are the same, bit for bit.
        wire: where a local engine is the client of servers (`connect`), "native" and "auto" let
            them send pixels as stored where that is smaller, and the local engine converts them;
            "final" has the servers convert. The batches are the same, bit for bit. Whatever hands
            batches to Python has converted them, so `wire` changes nothing without that engine.
        reuse: memory of batches that nothing refers to any more is used again (shared memory always
            is).
        timeout: seconds that an engine which owes an answer may be silent. Then it is asked again
            or, of several servers, another one, for `patience`. The engine of `load` counts as
            lost, and an error is raised.
        max_batch_bytes: the largest size of a batch.
        patience: seconds for which all servers may refuse, be silent or be away before a run ends,
            from the first failure on. One line in the log says that it waits, and the order goes on
            where it stood. What waiting does not change, such as a token that no server takes, ends
            a run once every server has said so, and so does opening one: each server is asked once.
            0 does not wait. Only for `connect`.
        prefetch_bytes: with several servers and a tile-aware order (`TileWindow`), more than
            `prefetch` batches are requested, so that every server has a pool of tiles to work on,
            while all of them fit into this many bytes. 0 keeps to `prefetch`. Only for `connect`.
        credentials: for TLS, what `chaski.tls` or `grpc.ssl_channel_credentials` returns; of one
            server, any credentials of gRPC. Default: plain text. Only for `connect`.
        token: for servers that ask for one: a `Token`, or its text. Default: what the environment
            variable CHASKI_TOKEN has, or the file that CHASKI_TOKEN_FILE names. Only for `connect`.
        plain_token: the token may go to other hosts in plain text, where others can read it. Only
            for `connect`.
        share: the processes of a job on this host share one engine, if their settings are equal:
            the first one starts it, and it ends with the last. Its workers and memory are then
            those of all together. False is an engine of this process's own.
        ledger: folder to which each rank appends what batches its loop was given, before it has
            them; `chaski ledger check` proves of it that every sample came once. Default: none.
    """

    workers: int | None = None
    memory: int | None = None
    max_chunk: int | None = None
    cache: Path | None = None
    cache_bytes: int | None = None
    recode: bool | float = False
    requester_pays: bool = False
    prefetch: int | None = None
    transport: Transport = "auto"
    wire: Wire = "auto"
    reuse: bool = True
    timeout: float = 120.0
    max_batch_bytes: int = 8 << 30
    patience: float = 300.0
    prefetch_bytes: int = 2 << 30
    credentials: grpc.ChannelCredentials | None = None
    token: Token | str | None = None
    plain_token: bool = False
    share: bool = True
    ledger: str | os.PathLike[str] | None = None


SourceLike: TypeAlias = Path | Sequence[Path] | Columns | Mixture | Scenes

for _record in (FieldInfo, SourceInfo, SampleRef, BadRow):
    _record.__module__ = __name__  # pickles find them here
entries(Argument)
