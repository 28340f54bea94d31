"""File formats by the extension of a file's name."""

from __future__ import annotations

from typing import Literal, get_args

from sparkfusion.errors import UserError

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
_COMPRESSIONS = (".gz", ".gzip", ".bz2", ".xz", ".zst", ".zstd", ".lz4", ".sz", ".snappy", ".br", ".zip")


def format_of(name: str) -> Format | None:
    """The format that a name's extension stands for, also if the file is compressed.

    >>> format_of("a.parquet"), format_of("a.csv.gz"), format_of("README")
    ('parquet', 'csv', None)
    """
    plain = _without_compression(name.lower())
    return next((format for format, endings in _ENDINGS.items() if plain.endswith(endings)), None)


def ending_of(name: str) -> tuple[str, str | None]:
    """The extension of a name, including its compression, and DataFusion's name for that compression.

    >>> ending_of("a.jsonl"), ending_of("b.csv.gz"), ending_of("README")
    (('.jsonl', None), ('.csv.gz', 'gzip'), ('', None))
    """
    stem, packed = name, ""
    for ending in _COMPRESSIONS:
        if name.lower().endswith(ending):
            stem, packed = name[: -len(ending)], name[-len(ending) :]
    dot = stem.rfind(".", stem.rfind("/") + 1)
    return stem[dot:] * (dot >= 0) + packed, _DATAFUSION_NAMES.get(packed.lower())


def refuse_compressed(path: str) -> None:
    """Raise if the file is compressed: encoded plans do not have the compression, so a feed cannot read it."""
    if _without_compression(path.lower()) != path.lower():
        raise UserError(
            f"a feed of files cannot read {path!r}, because the file is compressed",
            hint="unpack it, use Parquet, or read it with Items(paths, reader=…)",
        )


def _without_compression(name: str) -> str:
    return next((name[: -len(each)] for each in _COMPRESSIONS if name.endswith(each)), name)
