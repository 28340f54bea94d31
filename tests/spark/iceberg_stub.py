"""A stand-in for Spark's Iceberg catalogs: their class names, and as much as a plan of Spark's shows of a table.

Spark finds no rows in its tables. So rows in an answer were read by DataFusion.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.compiled_java import java_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG = """
import java.io.*;
import java.util.*;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class IcebergCatalog implements TableCatalog {
    private String name;
    private String home;
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.home = options.get("home");
    }
    public String name() { return name; }
    public Identifier[] listTables(String[] namespace) { return new Identifier[0]; }
    public Table loadTable(Identifier table) throws NoSuchTableException { return load(table, table.name(), null); }
    public Table loadTable(Identifier table, String version) throws NoSuchTableException {
        return load(table, table.name() + "@" + version, Long.valueOf(version));
    }
    private Table load(Identifier table, String file, Long snapshot) throws NoSuchTableException {
        Properties known = new Properties();
        try {
            FileReader reader = new FileReader(home + "/" + file);
            known.load(reader);
            reader.close();
        } catch (IOException error) { throw new NoSuchTableException(table); }
        return new SparkTable(known, snapshot);
    }
    public Table createTable(Identifier t, StructType s, Transform[] p, Map o) { return null; }
    public Table alterTable(Identifier table, TableChange[] changes) { return null; }
    public boolean dropTable(Identifier table) { return false; }
    public void renameTable(Identifier from, Identifier to) { }
}
"""
_TABLE = """
import java.util.*;
import org.apache.iceberg.BaseTable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class SparkTable implements SupportsRead, ScanBuilder, LocalScan {
    private final Properties known;
    private final Long snapshot;
    public SparkTable(Properties known, Long snapshot) { this.known = known; this.snapshot = snapshot; }
    public BaseTable table() { return new BaseTable(known.getProperty("metadata"), known.getProperty("current")); }
    public Long snapshotId() { return snapshot; }
    public String branch() { return known.getProperty("branch"); }
    public String name() { return "t"; }
    public StructType schema() { return StructType.fromDDL(known.getProperty("columns")); }
    public Set capabilities() { return EnumSet.of(TableCapability.BATCH_READ); }
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return this; }
    public Scan build() { return this; }
    public StructType readSchema() { return schema(); }
    public InternalRow[] rows() { return new InternalRow[0]; }
}
"""
_LOADED = """
public class BaseTable {
    private final String metadata;
    private final String current;
    public BaseTable(String metadata, String current) { this.metadata = metadata; this.current = current; }
    public BaseTable currentSnapshot() { return this; }
    public long snapshotId() { return Long.parseLong(current); }
    public BaseTable operations() { return this; }
    public BaseTable current() { return this; }
    public String metadataFileLocation() { return metadata; }
}
"""
_SOURCES = {
    "org.apache.iceberg.BaseTable": _LOADED,
    "org.apache.iceberg.spark.source.SparkTable": _TABLE,
    "stub.IcebergCatalog": _CATALOG,
}


@contextmanager
def iceberg_stub(spark: SparkSession, catalog: str, home: Path) -> Iterator[None]:
    """Let this thread read tables of a catalog, which `describe_iceberg_table` puts into `home`."""
    with java_classes(spark, home / "java", _SOURCES):
        spark.conf.set(f"spark.sql.catalog.{catalog}", "stub.IcebergCatalog")
        spark.conf.set(f"spark.sql.catalog.{catalog}.home", str(home))
        yield


def describe_iceberg_table(home: Path, name: str, **known: object) -> None:
    """Tell the stand-in of a table: `metadata`, `current` (a snapshot), `columns` and perhaps `branch`.

    `name@7` is what Spark finds for the snapshot 7 of the table.
    """
    (home / name).write_text("".join(f"{key}={value}\n" for key, value in known.items()))
