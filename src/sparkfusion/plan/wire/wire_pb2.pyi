from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Certainty(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXACT: _ClassVar[Certainty]
    INEXACT: _ClassVar[Certainty]
    ABSENT: _ClassVar[Certainty]

class AggregateMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARTIAL: _ClassVar[AggregateMode]
    FINAL: _ClassVar[AggregateMode]
    FINAL_PARTITIONED: _ClassVar[AggregateMode]
    SINGLE: _ClassVar[AggregateMode]
    SINGLE_PARTITIONED: _ClassVar[AggregateMode]
    PARTIAL_REDUCE: _ClassVar[AggregateMode]

class PartitionMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLLECT_LEFT: _ClassVar[PartitionMode]
    PARTITIONED: _ClassVar[PartitionMode]
    AUTO: _ClassVar[PartitionMode]

class JoinType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INNER: _ClassVar[JoinType]
    LEFT: _ClassVar[JoinType]
    RIGHT: _ClassVar[JoinType]
    FULL: _ClassVar[JoinType]
    LEFT_SEMI: _ClassVar[JoinType]
    LEFT_ANTI: _ClassVar[JoinType]
    RIGHT_SEMI: _ClassVar[JoinType]
    RIGHT_ANTI: _ClassVar[JoinType]
    LEFT_MARK: _ClassVar[JoinType]
    RIGHT_MARK: _ClassVar[JoinType]

class NullEquality(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NULL_EQUALS_NOTHING: _ClassVar[NullEquality]
    NULL_EQUALS_NULL: _ClassVar[NullEquality]
EXACT: Certainty
INEXACT: Certainty
ABSENT: Certainty
PARTIAL: AggregateMode
FINAL: AggregateMode
FINAL_PARTITIONED: AggregateMode
SINGLE: AggregateMode
SINGLE_PARTITIONED: AggregateMode
PARTIAL_REDUCE: AggregateMode
COLLECT_LEFT: PartitionMode
PARTITIONED: PartitionMode
AUTO: PartitionMode
INNER: JoinType
LEFT: JoinType
RIGHT: JoinType
FULL: JoinType
LEFT_SEMI: JoinType
LEFT_ANTI: JoinType
RIGHT_SEMI: JoinType
RIGHT_ANTI: JoinType
LEFT_MARK: JoinType
RIGHT_MARK: JoinType
NULL_EQUALS_NOTHING: NullEquality
NULL_EQUALS_NULL: NullEquality

class PlanNode(_message.Message):
    __slots__ = ("parquet_scan", "csv_scan", "empty", "projection", "global_limit", "local_limit", "aggregate", "hash_join", "sort", "coalesce_batches", "filter", "coalesce_partitions", "repartition", "window", "cross_join", "avro_scan", "extension", "union", "explain", "sort_preserving_merge", "nested_loop_join", "analyze", "json_sink", "symmetric_hash_join", "interleave", "placeholder_row", "csv_sink", "parquet_sink", "unnest", "json_scan", "cooperative", "generate_series", "sort_merge_join", "memory_scan", "async_func", "buffer", "arrow_scan", "scalar_subquery")
    PARQUET_SCAN_FIELD_NUMBER: _ClassVar[int]
    CSV_SCAN_FIELD_NUMBER: _ClassVar[int]
    EMPTY_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_LIMIT_FIELD_NUMBER: _ClassVar[int]
    LOCAL_LIMIT_FIELD_NUMBER: _ClassVar[int]
    AGGREGATE_FIELD_NUMBER: _ClassVar[int]
    HASH_JOIN_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    COALESCE_BATCHES_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    COALESCE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REPARTITION_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    CROSS_JOIN_FIELD_NUMBER: _ClassVar[int]
    AVRO_SCAN_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_FIELD_NUMBER: _ClassVar[int]
    UNION_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    SORT_PRESERVING_MERGE_FIELD_NUMBER: _ClassVar[int]
    NESTED_LOOP_JOIN_FIELD_NUMBER: _ClassVar[int]
    ANALYZE_FIELD_NUMBER: _ClassVar[int]
    JSON_SINK_FIELD_NUMBER: _ClassVar[int]
    SYMMETRIC_HASH_JOIN_FIELD_NUMBER: _ClassVar[int]
    INTERLEAVE_FIELD_NUMBER: _ClassVar[int]
    PLACEHOLDER_ROW_FIELD_NUMBER: _ClassVar[int]
    CSV_SINK_FIELD_NUMBER: _ClassVar[int]
    PARQUET_SINK_FIELD_NUMBER: _ClassVar[int]
    UNNEST_FIELD_NUMBER: _ClassVar[int]
    JSON_SCAN_FIELD_NUMBER: _ClassVar[int]
    COOPERATIVE_FIELD_NUMBER: _ClassVar[int]
    GENERATE_SERIES_FIELD_NUMBER: _ClassVar[int]
    SORT_MERGE_JOIN_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SCAN_FIELD_NUMBER: _ClassVar[int]
    ASYNC_FUNC_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    ARROW_SCAN_FIELD_NUMBER: _ClassVar[int]
    SCALAR_SUBQUERY_FIELD_NUMBER: _ClassVar[int]
    parquet_scan: ParquetScan
    csv_scan: CsvScan
    empty: Empty
    projection: Unary
    global_limit: GlobalLimit
    local_limit: LocalLimit
    aggregate: Aggregate
    hash_join: HashJoin
    sort: Sort
    coalesce_batches: CoalesceBatches
    filter: Filter
    coalesce_partitions: CoalescePartitions
    repartition: Repartition
    window: Window
    cross_join: CrossJoin
    avro_scan: FileScan
    extension: Opaque
    union: Inputs
    explain: Opaque
    sort_preserving_merge: SortPreservingMerge
    nested_loop_join: NestedLoopJoin
    analyze: Opaque
    json_sink: Unary
    symmetric_hash_join: Opaque
    interleave: Inputs
    placeholder_row: PlaceholderRow
    csv_sink: Unary
    parquet_sink: Unary
    unnest: Unary
    json_scan: FileScan
    cooperative: Unary
    generate_series: Opaque
    sort_merge_join: SortMergeJoin
    memory_scan: MemoryScan
    async_func: Unary
    buffer: Unary
    arrow_scan: FileScan
    scalar_subquery: ScalarSubquery
    def __init__(self, parquet_scan: _Optional[_Union[ParquetScan, _Mapping]] = ..., csv_scan: _Optional[_Union[CsvScan, _Mapping]] = ..., empty: _Optional[_Union[Empty, _Mapping]] = ..., projection: _Optional[_Union[Unary, _Mapping]] = ..., global_limit: _Optional[_Union[GlobalLimit, _Mapping]] = ..., local_limit: _Optional[_Union[LocalLimit, _Mapping]] = ..., aggregate: _Optional[_Union[Aggregate, _Mapping]] = ..., hash_join: _Optional[_Union[HashJoin, _Mapping]] = ..., sort: _Optional[_Union[Sort, _Mapping]] = ..., coalesce_batches: _Optional[_Union[CoalesceBatches, _Mapping]] = ..., filter: _Optional[_Union[Filter, _Mapping]] = ..., coalesce_partitions: _Optional[_Union[CoalescePartitions, _Mapping]] = ..., repartition: _Optional[_Union[Repartition, _Mapping]] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., cross_join: _Optional[_Union[CrossJoin, _Mapping]] = ..., avro_scan: _Optional[_Union[FileScan, _Mapping]] = ..., extension: _Optional[_Union[Opaque, _Mapping]] = ..., union: _Optional[_Union[Inputs, _Mapping]] = ..., explain: _Optional[_Union[Opaque, _Mapping]] = ..., sort_preserving_merge: _Optional[_Union[SortPreservingMerge, _Mapping]] = ..., nested_loop_join: _Optional[_Union[NestedLoopJoin, _Mapping]] = ..., analyze: _Optional[_Union[Opaque, _Mapping]] = ..., json_sink: _Optional[_Union[Unary, _Mapping]] = ..., symmetric_hash_join: _Optional[_Union[Opaque, _Mapping]] = ..., interleave: _Optional[_Union[Inputs, _Mapping]] = ..., placeholder_row: _Optional[_Union[PlaceholderRow, _Mapping]] = ..., csv_sink: _Optional[_Union[Unary, _Mapping]] = ..., parquet_sink: _Optional[_Union[Unary, _Mapping]] = ..., unnest: _Optional[_Union[Unary, _Mapping]] = ..., json_scan: _Optional[_Union[FileScan, _Mapping]] = ..., cooperative: _Optional[_Union[Unary, _Mapping]] = ..., generate_series: _Optional[_Union[Opaque, _Mapping]] = ..., sort_merge_join: _Optional[_Union[SortMergeJoin, _Mapping]] = ..., memory_scan: _Optional[_Union[MemoryScan, _Mapping]] = ..., async_func: _Optional[_Union[Unary, _Mapping]] = ..., buffer: _Optional[_Union[Unary, _Mapping]] = ..., arrow_scan: _Optional[_Union[FileScan, _Mapping]] = ..., scalar_subquery: _Optional[_Union[ScalarSubquery, _Mapping]] = ...) -> None: ...

class Opaque(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Unary(_message.Message):
    __slots__ = ("input",)
    INPUT_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ...) -> None: ...

class Inputs(_message.Message):
    __slots__ = ("inputs",)
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[PlanNode]
    def __init__(self, inputs: _Optional[_Iterable[_Union[PlanNode, _Mapping]]] = ...) -> None: ...

class ScalarSubquery(_message.Message):
    __slots__ = ("input", "subqueries")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    SUBQUERIES_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    subqueries: _containers.RepeatedCompositeFieldContainer[PlanNode]
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., subqueries: _Optional[_Iterable[_Union[PlanNode, _Mapping]]] = ...) -> None: ...

class FileRange(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: int
    end: int
    def __init__(self, start: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class PartitionedFile(_message.Message):
    __slots__ = ("path", "size", "last_modified_ns", "partition_values", "range")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    LAST_MODIFIED_NS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_VALUES_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    path: str
    size: int
    last_modified_ns: int
    partition_values: _containers.RepeatedScalarFieldContainer[bytes]
    range: FileRange
    def __init__(self, path: _Optional[str] = ..., size: _Optional[int] = ..., last_modified_ns: _Optional[int] = ..., partition_values: _Optional[_Iterable[bytes]] = ..., range: _Optional[_Union[FileRange, _Mapping]] = ...) -> None: ...

class FileGroup(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[PartitionedFile]
    def __init__(self, files: _Optional[_Iterable[_Union[PartitionedFile, _Mapping]]] = ...) -> None: ...

class ScanLimit(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class FileScanConf(_message.Message):
    __slots__ = ("file_groups", "schema", "projection", "limit", "statistics", "table_partition_cols", "object_store_url", "output_ordering", "constraints", "projection_exprs", "output_partitioning")
    FILE_GROUPS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    TABLE_PARTITION_COLS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_STORE_URL_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_ORDERING_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_EXPRS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    file_groups: _containers.RepeatedCompositeFieldContainer[FileGroup]
    schema: bytes
    projection: _containers.RepeatedScalarFieldContainer[int]
    limit: ScanLimit
    statistics: bytes
    table_partition_cols: _containers.RepeatedScalarFieldContainer[str]
    object_store_url: str
    output_ordering: _containers.RepeatedCompositeFieldContainer[SortExprs]
    constraints: bytes
    projection_exprs: bytes
    output_partitioning: Partitioning
    def __init__(self, file_groups: _Optional[_Iterable[_Union[FileGroup, _Mapping]]] = ..., schema: _Optional[bytes] = ..., projection: _Optional[_Iterable[int]] = ..., limit: _Optional[_Union[ScanLimit, _Mapping]] = ..., statistics: _Optional[bytes] = ..., table_partition_cols: _Optional[_Iterable[str]] = ..., object_store_url: _Optional[str] = ..., output_ordering: _Optional[_Iterable[_Union[SortExprs, _Mapping]]] = ..., constraints: _Optional[bytes] = ..., projection_exprs: _Optional[bytes] = ..., output_partitioning: _Optional[_Union[Partitioning, _Mapping]] = ...) -> None: ...

class Statistics(_message.Message):
    __slots__ = ("num_rows", "columns")
    NUM_ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    num_rows: Estimate
    columns: _containers.RepeatedCompositeFieldContainer[ColumnStatistics]
    def __init__(self, num_rows: _Optional[_Union[Estimate, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[ColumnStatistics, _Mapping]]] = ...) -> None: ...

class ColumnStatistics(_message.Message):
    __slots__ = ("min", "max")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    min: Estimate
    max: Estimate
    def __init__(self, min: _Optional[_Union[Estimate, _Mapping]] = ..., max: _Optional[_Union[Estimate, _Mapping]] = ...) -> None: ...

class Estimate(_message.Message):
    __slots__ = ("certainty", "value")
    CERTAINTY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    certainty: Certainty
    value: Value
    def __init__(self, certainty: _Optional[_Union[Certainty, str]] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class FileScan(_message.Message):
    __slots__ = ("base_conf",)
    BASE_CONF_FIELD_NUMBER: _ClassVar[int]
    base_conf: FileScanConf
    def __init__(self, base_conf: _Optional[_Union[FileScanConf, _Mapping]] = ...) -> None: ...

class ParquetScan(_message.Message):
    __slots__ = ("base_conf", "predicate", "options")
    BASE_CONF_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    base_conf: FileScanConf
    predicate: Expr
    options: ParquetTableOptions
    def __init__(self, base_conf: _Optional[_Union[FileScanConf, _Mapping]] = ..., predicate: _Optional[_Union[Expr, _Mapping]] = ..., options: _Optional[_Union[ParquetTableOptions, _Mapping]] = ...) -> None: ...

class ParquetTableOptions(_message.Message):
    __slots__ = ()
    GLOBAL_FIELD_NUMBER: _ClassVar[int]
    def __init__(self, **kwargs) -> None: ...

class ParquetOptions(_message.Message):
    __slots__ = ("pushdown_filters", "max_in_list_size")
    PUSHDOWN_FILTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_LIST_SIZE_FIELD_NUMBER: _ClassVar[int]
    pushdown_filters: bool
    max_in_list_size: int
    def __init__(self, pushdown_filters: bool = ..., max_in_list_size: _Optional[int] = ...) -> None: ...

class CsvScan(_message.Message):
    __slots__ = ("base_conf",)
    BASE_CONF_FIELD_NUMBER: _ClassVar[int]
    base_conf: FileScanConf
    def __init__(self, base_conf: _Optional[_Union[FileScanConf, _Mapping]] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("name", "arrow_type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARROW_TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    arrow_type: bytes
    def __init__(self, name: _Optional[str] = ..., arrow_type: _Optional[bytes] = ...) -> None: ...

class Schema(_message.Message):
    __slots__ = ("columns",)
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[Field]
    def __init__(self, columns: _Optional[_Iterable[_Union[Field, _Mapping]]] = ...) -> None: ...

class ColumnCast(_message.Message):
    __slots__ = ("cast",)
    CAST_FIELD_NUMBER: _ClassVar[int]
    cast: Cast
    def __init__(self, cast: _Optional[_Union[Cast, _Mapping]] = ...) -> None: ...

class Cast(_message.Message):
    __slots__ = ("expr", "arrow_type")
    EXPR_FIELD_NUMBER: _ClassVar[int]
    ARROW_TYPE_FIELD_NUMBER: _ClassVar[int]
    expr: Expr
    arrow_type: bytes
    def __init__(self, expr: _Optional[_Union[Expr, _Mapping]] = ..., arrow_type: _Optional[bytes] = ...) -> None: ...

class ScanExpr(_message.Message):
    __slots__ = ("alias", "expr")
    ALIAS_FIELD_NUMBER: _ClassVar[int]
    EXPR_FIELD_NUMBER: _ClassVar[int]
    alias: str
    expr: Expr
    def __init__(self, alias: _Optional[str] = ..., expr: _Optional[_Union[Expr, _Mapping]] = ...) -> None: ...

class ScanExprs(_message.Message):
    __slots__ = ("exprs",)
    EXPRS_FIELD_NUMBER: _ClassVar[int]
    exprs: _containers.RepeatedCompositeFieldContainer[ScanExpr]
    def __init__(self, exprs: _Optional[_Iterable[_Union[ScanExpr, _Mapping]]] = ...) -> None: ...

class MemoryScan(_message.Message):
    __slots__ = ("partitions", "schema", "projection", "sort_information", "fetch")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    SORT_INFORMATION_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedScalarFieldContainer[bytes]
    schema: bytes
    projection: _containers.RepeatedScalarFieldContainer[int]
    sort_information: _containers.RepeatedCompositeFieldContainer[SortExprs]
    fetch: int
    def __init__(self, partitions: _Optional[_Iterable[bytes]] = ..., schema: _Optional[bytes] = ..., projection: _Optional[_Iterable[int]] = ..., sort_information: _Optional[_Iterable[_Union[SortExprs, _Mapping]]] = ..., fetch: _Optional[int] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ("schema", "partitions")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    schema: bytes
    partitions: int
    def __init__(self, schema: _Optional[bytes] = ..., partitions: _Optional[int] = ...) -> None: ...

class PlaceholderRow(_message.Message):
    __slots__ = ("partitions",)
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    partitions: int
    def __init__(self, partitions: _Optional[int] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("input", "expr", "projection", "fetch")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    EXPR_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    expr: Expr
    projection: _containers.RepeatedScalarFieldContainer[int]
    fetch: int
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., expr: _Optional[_Union[Expr, _Mapping]] = ..., projection: _Optional[_Iterable[int]] = ..., fetch: _Optional[int] = ...) -> None: ...

class CoalesceBatches(_message.Message):
    __slots__ = ("input", "fetch")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    fetch: int
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., fetch: _Optional[int] = ...) -> None: ...

class CoalescePartitions(_message.Message):
    __slots__ = ("input", "fetch")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    fetch: int
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., fetch: _Optional[int] = ...) -> None: ...

class GlobalLimit(_message.Message):
    __slots__ = ("input", "skip", "fetch")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    SKIP_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    skip: int
    fetch: int
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., skip: _Optional[int] = ..., fetch: _Optional[int] = ...) -> None: ...

class LocalLimit(_message.Message):
    __slots__ = ("input", "fetch")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    fetch: int
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., fetch: _Optional[int] = ...) -> None: ...

class Sort(_message.Message):
    __slots__ = ("input", "fetch", "preserve_partitioning")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    PRESERVE_PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    fetch: int
    preserve_partitioning: bool
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., fetch: _Optional[int] = ..., preserve_partitioning: bool = ...) -> None: ...

class SortPreservingMerge(_message.Message):
    __slots__ = ("input", "fetch")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    fetch: int
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., fetch: _Optional[int] = ...) -> None: ...

class AggLimit(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class Aggregate(_message.Message):
    __slots__ = ("group_expr", "mode", "input", "groups", "limit", "has_grouping_set")
    GROUP_EXPR_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    HAS_GROUPING_SET_FIELD_NUMBER: _ClassVar[int]
    group_expr: _containers.RepeatedCompositeFieldContainer[Expr]
    mode: AggregateMode
    input: PlanNode
    groups: _containers.RepeatedScalarFieldContainer[bool]
    limit: AggLimit
    has_grouping_set: bool
    def __init__(self, group_expr: _Optional[_Iterable[_Union[Expr, _Mapping]]] = ..., mode: _Optional[_Union[AggregateMode, str]] = ..., input: _Optional[_Union[PlanNode, _Mapping]] = ..., groups: _Optional[_Iterable[bool]] = ..., limit: _Optional[_Union[AggLimit, _Mapping]] = ..., has_grouping_set: bool = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("input", "function", "partition_keys")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEYS_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    function: _containers.RepeatedCompositeFieldContainer[WindowFunction]
    partition_keys: _containers.RepeatedCompositeFieldContainer[Expr]
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., function: _Optional[_Iterable[_Union[WindowFunction, _Mapping]]] = ..., partition_keys: _Optional[_Iterable[_Union[Expr, _Mapping]]] = ...) -> None: ...

class WindowFunction(_message.Message):
    __slots__ = ("argument", "order_by", "column", "function")
    ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    argument: _containers.RepeatedCompositeFieldContainer[Expr]
    order_by: _containers.RepeatedCompositeFieldContainer[SortExpr]
    column: str
    function: str
    def __init__(self, argument: _Optional[_Iterable[_Union[Expr, _Mapping]]] = ..., order_by: _Optional[_Iterable[_Union[SortExpr, _Mapping]]] = ..., column: _Optional[str] = ..., function: _Optional[str] = ...) -> None: ...

class HashPartitioning(_message.Message):
    __slots__ = ("hash_expr", "partition_count")
    HASH_EXPR_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    hash_expr: _containers.RepeatedCompositeFieldContainer[Expr]
    partition_count: int
    def __init__(self, hash_expr: _Optional[_Iterable[_Union[Expr, _Mapping]]] = ..., partition_count: _Optional[int] = ...) -> None: ...

class Partitioning(_message.Message):
    __slots__ = ("round_robin", "hash", "unknown", "range")
    ROUND_ROBIN_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    round_robin: int
    hash: HashPartitioning
    unknown: int
    range: Opaque
    def __init__(self, round_robin: _Optional[int] = ..., hash: _Optional[_Union[HashPartitioning, _Mapping]] = ..., unknown: _Optional[int] = ..., range: _Optional[_Union[Opaque, _Mapping]] = ...) -> None: ...

class Repartition(_message.Message):
    __slots__ = ("input", "partitioning", "preserve_order")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    PARTITIONING_FIELD_NUMBER: _ClassVar[int]
    PRESERVE_ORDER_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    partitioning: Partitioning
    preserve_order: bool
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., partitioning: _Optional[_Union[Partitioning, _Mapping]] = ..., preserve_order: bool = ...) -> None: ...

class JoinOn(_message.Message):
    __slots__ = ("left", "right")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    left: Expr
    right: Expr
    def __init__(self, left: _Optional[_Union[Expr, _Mapping]] = ..., right: _Optional[_Union[Expr, _Mapping]] = ...) -> None: ...

class JoinColumn(_message.Message):
    __slots__ = ("index", "side")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    index: int
    side: int
    def __init__(self, index: _Optional[int] = ..., side: _Optional[int] = ...) -> None: ...

class JoinFilter(_message.Message):
    __slots__ = ("column_indices",)
    COLUMN_INDICES_FIELD_NUMBER: _ClassVar[int]
    column_indices: _containers.RepeatedCompositeFieldContainer[JoinColumn]
    def __init__(self, column_indices: _Optional[_Iterable[_Union[JoinColumn, _Mapping]]] = ...) -> None: ...

class HashJoin(_message.Message):
    __slots__ = ("left", "right", "on", "join_type", "partition_mode", "null_equality", "filter", "projection", "null_aware", "fetch")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    JOIN_TYPE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_MODE_FIELD_NUMBER: _ClassVar[int]
    NULL_EQUALITY_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    NULL_AWARE_FIELD_NUMBER: _ClassVar[int]
    FETCH_FIELD_NUMBER: _ClassVar[int]
    left: PlanNode
    right: PlanNode
    on: _containers.RepeatedCompositeFieldContainer[JoinOn]
    join_type: JoinType
    partition_mode: PartitionMode
    null_equality: NullEquality
    filter: JoinFilter
    projection: _containers.RepeatedScalarFieldContainer[int]
    null_aware: bool
    fetch: int
    def __init__(self, left: _Optional[_Union[PlanNode, _Mapping]] = ..., right: _Optional[_Union[PlanNode, _Mapping]] = ..., on: _Optional[_Iterable[_Union[JoinOn, _Mapping]]] = ..., join_type: _Optional[_Union[JoinType, str]] = ..., partition_mode: _Optional[_Union[PartitionMode, str]] = ..., null_equality: _Optional[_Union[NullEquality, str]] = ..., filter: _Optional[_Union[JoinFilter, _Mapping]] = ..., projection: _Optional[_Iterable[int]] = ..., null_aware: bool = ..., fetch: _Optional[int] = ...) -> None: ...

class NestedLoopJoin(_message.Message):
    __slots__ = ("left", "right", "join_type")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    JOIN_TYPE_FIELD_NUMBER: _ClassVar[int]
    left: PlanNode
    right: PlanNode
    join_type: JoinType
    def __init__(self, left: _Optional[_Union[PlanNode, _Mapping]] = ..., right: _Optional[_Union[PlanNode, _Mapping]] = ..., join_type: _Optional[_Union[JoinType, str]] = ...) -> None: ...

class CrossJoin(_message.Message):
    __slots__ = ("left", "right")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    left: PlanNode
    right: PlanNode
    def __init__(self, left: _Optional[_Union[PlanNode, _Mapping]] = ..., right: _Optional[_Union[PlanNode, _Mapping]] = ...) -> None: ...

class SortMergeJoin(_message.Message):
    __slots__ = ("left", "right", "on", "join_type")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    JOIN_TYPE_FIELD_NUMBER: _ClassVar[int]
    left: PlanNode
    right: PlanNode
    on: _containers.RepeatedCompositeFieldContainer[JoinOn]
    join_type: JoinType
    def __init__(self, left: _Optional[_Union[PlanNode, _Mapping]] = ..., right: _Optional[_Union[PlanNode, _Mapping]] = ..., on: _Optional[_Iterable[_Union[JoinOn, _Mapping]]] = ..., join_type: _Optional[_Union[JoinType, str]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "index")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    name: str
    index: int
    def __init__(self, name: _Optional[str] = ..., index: _Optional[int] = ...) -> None: ...

class Expr(_message.Message):
    __slots__ = ("column", "literal")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    column: Column
    literal: bytes
    def __init__(self, column: _Optional[_Union[Column, _Mapping]] = ..., literal: _Optional[bytes] = ...) -> None: ...

class SortExpr(_message.Message):
    __slots__ = ("expr", "asc", "nulls_first")
    EXPR_FIELD_NUMBER: _ClassVar[int]
    ASC_FIELD_NUMBER: _ClassVar[int]
    NULLS_FIRST_FIELD_NUMBER: _ClassVar[int]
    expr: Expr
    asc: bool
    nulls_first: bool
    def __init__(self, expr: _Optional[_Union[Expr, _Mapping]] = ..., asc: bool = ..., nulls_first: bool = ...) -> None: ...

class SortExprs(_message.Message):
    __slots__ = ("exprs",)
    EXPRS_FIELD_NUMBER: _ClassVar[int]
    exprs: _containers.RepeatedCompositeFieldContainer[SortExpr]
    def __init__(self, exprs: _Optional[_Iterable[_Union[SortExpr, _Mapping]]] = ...) -> None: ...

class Projection(_message.Message):
    __slots__ = ("input", "expr", "expr_name")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    EXPR_FIELD_NUMBER: _ClassVar[int]
    EXPR_NAME_FIELD_NUMBER: _ClassVar[int]
    input: PlanNode
    expr: _containers.RepeatedCompositeFieldContainer[Expr]
    expr_name: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, input: _Optional[_Union[PlanNode, _Mapping]] = ..., expr: _Optional[_Iterable[_Union[Expr, _Mapping]]] = ..., expr_name: _Optional[_Iterable[str]] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("column", "literal", "binary", "is_null", "is_not_null", "negation", "in_list", "like")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    IS_NULL_FIELD_NUMBER: _ClassVar[int]
    IS_NOT_NULL_FIELD_NUMBER: _ClassVar[int]
    NEGATION_FIELD_NUMBER: _ClassVar[int]
    IN_LIST_FIELD_NUMBER: _ClassVar[int]
    LIKE_FIELD_NUMBER: _ClassVar[int]
    column: Column
    literal: Value
    binary: Binary
    is_null: OfOne
    is_not_null: OfOne
    negation: OfOne
    in_list: InList
    like: Like
    def __init__(self, column: _Optional[_Union[Column, _Mapping]] = ..., literal: _Optional[_Union[Value, _Mapping]] = ..., binary: _Optional[_Union[Binary, _Mapping]] = ..., is_null: _Optional[_Union[OfOne, _Mapping]] = ..., is_not_null: _Optional[_Union[OfOne, _Mapping]] = ..., negation: _Optional[_Union[OfOne, _Mapping]] = ..., in_list: _Optional[_Union[InList, _Mapping]] = ..., like: _Optional[_Union[Like, _Mapping]] = ...) -> None: ...

class OfOne(_message.Message):
    __slots__ = ("expr",)
    EXPR_FIELD_NUMBER: _ClassVar[int]
    expr: Condition
    def __init__(self, expr: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class Binary(_message.Message):
    __slots__ = ("left", "right", "op", "operands")
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    OPERANDS_FIELD_NUMBER: _ClassVar[int]
    left: Condition
    right: Condition
    op: str
    operands: _containers.RepeatedCompositeFieldContainer[Condition]
    def __init__(self, left: _Optional[_Union[Condition, _Mapping]] = ..., right: _Optional[_Union[Condition, _Mapping]] = ..., op: _Optional[str] = ..., operands: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ...) -> None: ...

class InList(_message.Message):
    __slots__ = ("expr", "list", "negated")
    EXPR_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    NEGATED_FIELD_NUMBER: _ClassVar[int]
    expr: Condition
    list: _containers.RepeatedCompositeFieldContainer[Condition]
    negated: bool
    def __init__(self, expr: _Optional[_Union[Condition, _Mapping]] = ..., list: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ..., negated: bool = ...) -> None: ...

class Like(_message.Message):
    __slots__ = ("negated", "case_insensitive", "expr", "pattern")
    NEGATED_FIELD_NUMBER: _ClassVar[int]
    CASE_INSENSITIVE_FIELD_NUMBER: _ClassVar[int]
    EXPR_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    negated: bool
    case_insensitive: bool
    expr: Condition
    pattern: Condition
    def __init__(self, negated: bool = ..., case_insensitive: bool = ..., expr: _Optional[_Union[Condition, _Mapping]] = ..., pattern: _Optional[_Union[Condition, _Mapping]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("boolean", "utf8", "large_utf8", "int8", "int16", "int32", "int64", "uint64", "float32", "float64", "date32", "decimal128", "utf8_view", "timestamp", "binary", "large_binary")
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    UTF8_FIELD_NUMBER: _ClassVar[int]
    LARGE_UTF8_FIELD_NUMBER: _ClassVar[int]
    INT8_FIELD_NUMBER: _ClassVar[int]
    INT16_FIELD_NUMBER: _ClassVar[int]
    INT32_FIELD_NUMBER: _ClassVar[int]
    INT64_FIELD_NUMBER: _ClassVar[int]
    UINT64_FIELD_NUMBER: _ClassVar[int]
    FLOAT32_FIELD_NUMBER: _ClassVar[int]
    FLOAT64_FIELD_NUMBER: _ClassVar[int]
    DATE32_FIELD_NUMBER: _ClassVar[int]
    DECIMAL128_FIELD_NUMBER: _ClassVar[int]
    UTF8_VIEW_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    BINARY_FIELD_NUMBER: _ClassVar[int]
    LARGE_BINARY_FIELD_NUMBER: _ClassVar[int]
    boolean: bool
    utf8: str
    large_utf8: str
    int8: int
    int16: int
    int32: int
    int64: int
    uint64: int
    float32: float
    float64: float
    date32: int
    decimal128: DecimalValue
    utf8_view: str
    timestamp: TimestampValue
    binary: bytes
    large_binary: bytes
    def __init__(self, boolean: bool = ..., utf8: _Optional[str] = ..., large_utf8: _Optional[str] = ..., int8: _Optional[int] = ..., int16: _Optional[int] = ..., int32: _Optional[int] = ..., int64: _Optional[int] = ..., uint64: _Optional[int] = ..., float32: _Optional[float] = ..., float64: _Optional[float] = ..., date32: _Optional[int] = ..., decimal128: _Optional[_Union[DecimalValue, _Mapping]] = ..., utf8_view: _Optional[str] = ..., timestamp: _Optional[_Union[TimestampValue, _Mapping]] = ..., binary: _Optional[bytes] = ..., large_binary: _Optional[bytes] = ...) -> None: ...

class DecimalValue(_message.Message):
    __slots__ = ("value", "precision", "scale")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    value: bytes
    precision: int
    scale: int
    def __init__(self, value: _Optional[bytes] = ..., precision: _Optional[int] = ..., scale: _Optional[int] = ...) -> None: ...

class TimestampValue(_message.Message):
    __slots__ = ("microseconds", "timezone")
    MICROSECONDS_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    microseconds: int
    timezone: str
    def __init__(self, microseconds: _Optional[int] = ..., timezone: _Optional[str] = ...) -> None: ...
