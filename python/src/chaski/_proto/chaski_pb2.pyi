from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DescribeRequest(_message.Message):
    __slots__ = ("spec", "rows", "upstream", "rank", "world_size")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    spec: bytes
    rows: int
    upstream: Upstream
    rank: int
    world_size: int
    def __init__(self, spec: _Optional[bytes] = ..., rows: _Optional[int] = ..., upstream: _Optional[_Union[Upstream, _Mapping]] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ...) -> None: ...

class Upstream(_message.Message):
    __slots__ = ("targets", "tls", "transport", "timeout_seconds", "prefetch", "prefetch_bytes", "max_batch_bytes", "token", "token_file", "plain_token", "patience_seconds")
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FILE_FIELD_NUMBER: _ClassVar[int]
    PLAIN_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PATIENCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    targets: _containers.RepeatedScalarFieldContainer[str]
    tls: Tls
    transport: str
    timeout_seconds: float
    prefetch: int
    prefetch_bytes: int
    max_batch_bytes: int
    token: str
    token_file: str
    plain_token: bool
    patience_seconds: float
    def __init__(self, targets: _Optional[_Iterable[str]] = ..., tls: _Optional[_Union[Tls, _Mapping]] = ..., transport: _Optional[str] = ..., timeout_seconds: _Optional[float] = ..., prefetch: _Optional[int] = ..., prefetch_bytes: _Optional[int] = ..., max_batch_bytes: _Optional[int] = ..., token: _Optional[str] = ..., token_file: _Optional[str] = ..., plain_token: bool = ..., patience_seconds: _Optional[float] = ...) -> None: ...

class Tls(_message.Message):
    __slots__ = ("roots", "certificate", "key")
    ROOTS_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    roots: bytes
    certificate: bytes
    key: bytes
    def __init__(self, roots: _Optional[bytes] = ..., certificate: _Optional[bytes] = ..., key: _Optional[bytes] = ...) -> None: ...

class DescribeReply(_message.Message):
    __slots__ = ("spec_hash", "fingerprint", "samples", "spec", "fields", "shared", "handle", "groups", "batches", "run", "bad_limit", "sources", "pipe", "prefetch", "marks")
    SPEC_HASH_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    BAD_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    PIPE_FIELD_NUMBER: _ClassVar[int]
    PREFETCH_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    spec_hash: str
    fingerprint: str
    samples: int
    spec: bytes
    fields: _containers.RepeatedCompositeFieldContainer[FieldInfo]
    shared: Shared
    handle: str
    groups: Groups
    batches: int
    run: bytes
    bad_limit: int
    sources: _containers.RepeatedCompositeFieldContainer[SourceInfo]
    pipe: bytes
    prefetch: int
    marks: str
    def __init__(self, spec_hash: _Optional[str] = ..., fingerprint: _Optional[str] = ..., samples: _Optional[int] = ..., spec: _Optional[bytes] = ..., fields: _Optional[_Iterable[_Union[FieldInfo, _Mapping]]] = ..., shared: _Optional[_Union[Shared, _Mapping]] = ..., handle: _Optional[str] = ..., groups: _Optional[_Union[Groups, _Mapping]] = ..., batches: _Optional[int] = ..., run: _Optional[bytes] = ..., bad_limit: _Optional[int] = ..., sources: _Optional[_Iterable[_Union[SourceInfo, _Mapping]]] = ..., pipe: _Optional[bytes] = ..., prefetch: _Optional[int] = ..., marks: _Optional[str] = ...) -> None: ...

class SourceInfo(_message.Message):
    __slots__ = ("name", "fields")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    fields: _containers.RepeatedCompositeFieldContainer[FieldInfo]
    def __init__(self, name: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[FieldInfo, _Mapping]]] = ...) -> None: ...

class Groups(_message.Message):
    __slots__ = ("dataset", "pool", "levels", "lanes")
    class Level(_message.Message):
        __slots__ = ("drawn", "samples")
        DRAWN_FIELD_NUMBER: _ClassVar[int]
        SAMPLES_FIELD_NUMBER: _ClassVar[int]
        drawn: int
        samples: int
        def __init__(self, drawn: _Optional[int] = ..., samples: _Optional[int] = ...) -> None: ...
    DATASET_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    dataset: int
    pool: int
    levels: _containers.RepeatedCompositeFieldContainer[Groups.Level]
    lanes: int
    def __init__(self, dataset: _Optional[int] = ..., pool: _Optional[int] = ..., levels: _Optional[_Iterable[_Union[Groups.Level, _Mapping]]] = ..., lanes: _Optional[int] = ...) -> None: ...

class Shared(_message.Message):
    __slots__ = ("address", "token")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    address: str
    token: bytes
    def __init__(self, address: _Optional[str] = ..., token: _Optional[bytes] = ...) -> None: ...

class FieldInfo(_message.Message):
    __slots__ = ("name", "kind", "dtype", "shape", "axes", "bands", "wavelengths", "gsd", "classes", "palette")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    AXES_FIELD_NUMBER: _ClassVar[int]
    BANDS_FIELD_NUMBER: _ClassVar[int]
    WAVELENGTHS_FIELD_NUMBER: _ClassVar[int]
    GSD_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    PALETTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    axes: _containers.RepeatedScalarFieldContainer[str]
    bands: _containers.RepeatedScalarFieldContainer[str]
    wavelengths: _containers.RepeatedScalarFieldContainer[float]
    gsd: float
    classes: _containers.RepeatedScalarFieldContainer[str]
    palette: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., axes: _Optional[_Iterable[str]] = ..., bands: _Optional[_Iterable[str]] = ..., wavelengths: _Optional[_Iterable[float]] = ..., gsd: _Optional[float] = ..., classes: _Optional[_Iterable[str]] = ..., palette: _Optional[_Iterable[str]] = ...) -> None: ...

class StreamRequest(_message.Message):
    __slots__ = ("ticket", "credit", "attach")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    ticket: Ticket
    credit: Credit
    attach: Attach
    def __init__(self, ticket: _Optional[_Union[Ticket, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., attach: _Optional[_Union[Attach, _Mapping]] = ...) -> None: ...

class Attach(_message.Message):
    __slots__ = ("secret", "stream", "pipe", "requests", "native")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PIPE_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    NATIVE_FIELD_NUMBER: _ClassVar[int]
    secret: bytes
    stream: int
    pipe: bytes
    requests: bool
    native: bool
    def __init__(self, secret: _Optional[bytes] = ..., stream: _Optional[int] = ..., pipe: _Optional[bytes] = ..., requests: bool = ..., native: bool = ...) -> None: ...

class Ticket(_message.Message):
    __slots__ = ("id", "handle", "epoch", "first", "count", "row_start", "row_stride", "native", "positions", "corners", "trace", "unpadded", "weights")
    ID_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ROW_START_FIELD_NUMBER: _ClassVar[int]
    ROW_STRIDE_FIELD_NUMBER: _ClassVar[int]
    NATIVE_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    CORNERS_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    UNPADDED_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    handle: str
    epoch: int
    first: int
    count: int
    row_start: int
    row_stride: int
    native: bool
    positions: _containers.RepeatedScalarFieldContainer[int]
    corners: _containers.RepeatedScalarFieldContainer[int]
    trace: str
    unpadded: bool
    weights: RowWeights
    def __init__(self, id: _Optional[int] = ..., handle: _Optional[str] = ..., epoch: _Optional[int] = ..., first: _Optional[int] = ..., count: _Optional[int] = ..., row_start: _Optional[int] = ..., row_stride: _Optional[int] = ..., native: bool = ..., positions: _Optional[_Iterable[int]] = ..., corners: _Optional[_Iterable[int]] = ..., trace: _Optional[str] = ..., unpadded: bool = ..., weights: _Optional[_Union[RowWeights, _Mapping]] = ...) -> None: ...

class RowWeights(_message.Message):
    __slots__ = ("path", "hash", "once")
    PATH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    ONCE_FIELD_NUMBER: _ClassVar[int]
    path: str
    hash: str
    once: bool
    def __init__(self, path: _Optional[str] = ..., hash: _Optional[str] = ..., once: bool = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("batches", "waited", "stepped")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    WAITED_FIELD_NUMBER: _ClassVar[int]
    STEPPED_FIELD_NUMBER: _ClassVar[int]
    batches: int
    waited: int
    stepped: int
    def __init__(self, batches: _Optional[int] = ..., waited: _Optional[int] = ..., stepped: _Optional[int] = ...) -> None: ...

class StreamReply(_message.Message):
    __slots__ = ("part", "fault", "lease", "shared")
    PART_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    part: Part
    fault: Fault
    lease: Lease
    shared: Shared
    def __init__(self, part: _Optional[_Union[Part, _Mapping]] = ..., fault: _Optional[_Union[Fault, _Mapping]] = ..., lease: _Optional[_Union[Lease, _Mapping]] = ..., shared: _Optional[_Union[Shared, _Mapping]] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("ticket", "id", "segment", "head")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    ticket: int
    id: int
    segment: int
    head: bytes
    def __init__(self, ticket: _Optional[int] = ..., id: _Optional[int] = ..., segment: _Optional[int] = ..., head: _Optional[bytes] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("ticket", "offset", "total", "data")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ticket: int
    offset: int
    total: int
    data: bytes
    def __init__(self, ticket: _Optional[int] = ..., offset: _Optional[int] = ..., total: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ("ticket", "kind", "file", "part", "offset", "message", "sample", "member")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    ticket: int
    kind: str
    file: str
    part: str
    offset: int
    message: str
    sample: FaultSample
    member: FaultMember
    def __init__(self, ticket: _Optional[int] = ..., kind: _Optional[str] = ..., file: _Optional[str] = ..., part: _Optional[str] = ..., offset: _Optional[int] = ..., message: _Optional[str] = ..., sample: _Optional[_Union[FaultSample, _Mapping]] = ..., member: _Optional[_Union[FaultMember, _Mapping]] = ...) -> None: ...

class FaultMember(_message.Message):
    __slots__ = ("where", "name", "value", "rule")
    WHERE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    where: str
    name: str
    value: str
    rule: str
    def __init__(self, where: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...

class StatusDetails(_message.Message):
    __slots__ = ("details",)
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class FaultSample(_message.Message):
    __slots__ = ("source", "epoch", "position", "sample", "row", "id", "message")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    source: str
    epoch: int
    position: int
    sample: int
    row: int
    id: str
    message: str
    def __init__(self, source: _Optional[str] = ..., epoch: _Optional[int] = ..., position: _Optional[int] = ..., sample: _Optional[int] = ..., row: _Optional[int] = ..., id: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("paths", "layout", "sizes", "n", "b", "y", "x", "num_threads", "headers", "t", "corners", "attach", "overview", "check_headers")
    class SizesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PATHS_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    NUM_THREADS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    CORNERS_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    OVERVIEW_FIELD_NUMBER: _ClassVar[int]
    CHECK_HEADERS_FIELD_NUMBER: _ClassVar[int]
    paths: _containers.RepeatedScalarFieldContainer[str]
    layout: str
    sizes: _containers.ScalarMap[str, int]
    n: str
    b: str
    y: str
    x: str
    num_threads: int
    headers: _containers.RepeatedScalarFieldContainer[bytes]
    t: str
    corners: _containers.RepeatedScalarFieldContainer[int]
    attach: Attach
    overview: int
    check_headers: bool
    def __init__(self, paths: _Optional[_Iterable[str]] = ..., layout: _Optional[str] = ..., sizes: _Optional[_Mapping[str, int]] = ..., n: _Optional[str] = ..., b: _Optional[str] = ..., y: _Optional[str] = ..., x: _Optional[str] = ..., num_threads: _Optional[int] = ..., headers: _Optional[_Iterable[bytes]] = ..., t: _Optional[str] = ..., corners: _Optional[_Iterable[int]] = ..., attach: _Optional[_Union[Attach, _Mapping]] = ..., overview: _Optional[int] = ..., check_headers: bool = ...) -> None: ...

class InfoRequest(_message.Message):
    __slots__ = ("path",)
    PATH_FIELD_NUMBER: _ClassVar[int]
    path: str
    def __init__(self, path: _Optional[str] = ...) -> None: ...

class InfoReply(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("handle", "first_epoch", "epochs", "rank", "world_size", "cache_bytes", "weights")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    FIRST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    CACHE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    handle: str
    first_epoch: int
    epochs: int
    rank: int
    world_size: int
    cache_bytes: int
    weights: _containers.RepeatedCompositeFieldContainer[WeightsSince]
    def __init__(self, handle: _Optional[str] = ..., first_epoch: _Optional[int] = ..., epochs: _Optional[int] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., cache_bytes: _Optional[int] = ..., weights: _Optional[_Iterable[_Union[WeightsSince, _Mapping]]] = ...) -> None: ...

class WeightsSince(_message.Message):
    __slots__ = ("weights", "epoch", "samples")
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    weights: RowWeights
    epoch: int
    samples: int
    def __init__(self, weights: _Optional[_Union[RowWeights, _Mapping]] = ..., epoch: _Optional[int] = ..., samples: _Optional[int] = ...) -> None: ...

class PlanReply(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("since",)
    SINCE_FIELD_NUMBER: _ClassVar[int]
    since: bytes
    def __init__(self, since: _Optional[bytes] = ...) -> None: ...

class ReportReply(_message.Message):
    __slots__ = ("table", "figures")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    table: str
    figures: bytes
    def __init__(self, table: _Optional[str] = ..., figures: _Optional[bytes] = ...) -> None: ...
