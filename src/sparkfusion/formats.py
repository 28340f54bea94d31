"""File formats and compressions by the ending of a file's name."""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal["parquet", "csv", "json", "arrow", "avro"]
FORMATS: tuple[Format, ...] = get_args(Format)

_ENDINGS: dict[Format, tuple[str, ...]] = {
    "parquet": (".parquet", ".parq", ".pq"),
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "arrow": (".arrow", ".ipc", ".feather"),
    "avro": (".avro",),
}
_DATAFUSION_NAMES = {
    ".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd",
}  # fmt: skip
_WRITTEN_ENDINGS = {
    "gzip": ".gz", "gz": ".gz", "bzip2": ".bz2", "bz2": ".bz2", "xz": ".xz", "zstd": ".zst", "zst": ".zst",
}  # fmt: skip
_COMPRESSIONS = (*_DATAFUSION_NAMES, ".lz4", ".sz", ".snappy", ".br", ".zip")


def format_of(name: str) -> Format | None:
    """The format that a name's extension stands for, also if the file is compressed.

    >>> format_of("a.parquet"), format_of("a.csv.gz"), format_of("README")
    ('parquet', 'csv', None)
    """
    plain = name.lower().removesuffix(_packed_ending(name).lower())
    return next((format for format, endings in _ENDINGS.items() if plain.endswith(endings)), None)


def ending_of(name: str) -> tuple[str, str | None]:
    """The extension of a name, including its compression, and DataFusion's name for that compression.

    >>> ending_of("a.jsonl"), ending_of("b.csv.gz"), ending_of("README")
    (('.jsonl', None), ('.csv.gz', 'gzip'), ('', None))
    """
    packed = _packed_ending(name)
    stem = name.removesuffix(packed)
    dot = stem.rfind(".", stem.rfind("/") + 1)
    return stem[dot:] * (dot >= 0) + packed, compression_of(name)


def compression_of(name: str) -> str | None:
    """The compression that a name stands for, if DataFusion can unpack it: DataFusion's name for it.

    >>> compression_of("a.csv.GZIP"), compression_of("a.csv.lz4"), compression_of("a.csv")
    ('gzip', None, None)
    """
    return _DATAFUSION_NAMES.get(_packed_ending(name).lower())


def is_compressed(name: str) -> bool:
    """Whether a name stands for a file that is compressed as a whole, even if DataFusion cannot unpack it.

    >>> is_compressed("a.csv.gz"), is_compressed("a.csv.lz4"), is_compressed("a.parquet")
    (True, True, False)
    """
    return _packed_ending(name) != ""


def written_ending(compression: str) -> str:
    """What DataFusion appends to the names of files that it writes with this compression, by any of its names.

    >>> written_ending("gzip"), written_ending("BZ2"), written_ending("uncompressed")
    ('.gz', '.bz2', '')
    """
    return _WRITTEN_ENDINGS.get(compression.lower(), "")


def _packed_ending(name: str) -> str:
    return next((name[-len(each) :] for each in _COMPRESSIONS if name.lower().endswith(each)), "")
