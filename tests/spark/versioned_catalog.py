"""A catalog of Spark whose tables have versions, as those of Iceberg and Delta have.

Spark has no such catalog of its own. This one is compiled by the compiler that Spark has for its own code. Its table
`orders` has the columns `id` and `version`, three rows, and the versions 1 and 2; 2 is the current one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCE = """
import java.util.*;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class VersionedCatalog implements TableCatalog {
    private String name;
    public void initialize(String name, CaseInsensitiveStringMap options) { this.name = name; }
    public String name() { return name; }
    public Identifier[] listTables(String[] namespace) { return new Identifier[0]; }
    public Table loadTable(Identifier table) throws NoSuchTableException {
        if (!table.name().equals("orders")) throw new NoSuchTableException(table);
        return new Versioned(2L);
    }
    public Table loadTable(Identifier table, String version) {
        if (!version.equals("1") && !version.equals("2")) throw new IllegalArgumentException("no version " + version);
        return new Versioned(Long.parseLong(version));
    }
    public Table loadTable(Identifier table, long micros) {
        return new Versioned(micros < 1577836800000000L ? 1L : 2L);  // 2020-01-01
    }
    public Table createTable(Identifier t, StructType s, Transform[] p, Map o) { return null; }
    public Table alterTable(Identifier table, TableChange[] changes) { return null; }
    public boolean dropTable(Identifier table) { return false; }
    public void renameTable(Identifier from, Identifier to) { }

    public static class Versioned implements SupportsRead, ScanBuilder, LocalScan {
        private final long version;
        public Versioned(long version) { this.version = version; }
        public String name() { return "orders"; }
        public StructType schema() {
            return new StructType().add("id", DataTypes.LongType).add("version", DataTypes.LongType);
        }
        public Set capabilities() { return EnumSet.of(TableCapability.BATCH_READ); }
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) { return this; }
        public Scan build() { return this; }
        public StructType readSchema() { return schema(); }
        public InternalRow[] rows() {
            InternalRow[] rows = new InternalRow[3];
            for (int i = 0; i < 3; i++)
                rows[i] = new GenericInternalRow(new Object[] { Long.valueOf(i), Long.valueOf(version) });
            return rows;
        }
    }
}
"""


def add_versioned_catalog(spark: SparkSession, name: str) -> None:
    """Let Spark find the catalog under a name."""
    jvm: Any = spark.sparkContext._jvm
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(before)
    compiler.cook(_SOURCE)
    spark.conf.set(f"spark.sql.catalog.{name}", "VersionedCatalog")
    thread.setContextClassLoader(compiler.getClassLoader())
    try:
        spark.table(f"{name}.shop.orders")  # Spark loads the catalog now, and keeps it
    finally:
        thread.setContextClassLoader(before)
