"""A stand-in for Spark's Delta package: its class names, and as much as a plan of Spark's shows of it.

Spark reads the files that the test names, as Parquet files with partitions in their directories. A real Delta package
lists them from the table's log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.compiled_java import java_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INDEX = """
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.*;

public class TahoeLogFileIndex extends InMemoryFileIndex {
    private final Path root;
    private final long version;
    public TahoeLogFileIndex(SparkSession spark, Seq files, Map options, StructType schema, Path root, long version) {
        super(spark, files, options, scala.Option.apply(schema), FileStatusCache.getOrCreate(spark),
              scala.Option.empty(), scala.Option.empty());
        this.root = root;
        this.version = version;
    }
    public Path path() { return root; }
    public long version() { return version; }
}
"""
_FORMAT = """
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.*;

public class DeltaParquetFileFormat extends ParquetFileFormat {
    public scala.Function1 buildReaderWithPartitionValues(
            SparkSession spark, StructType data, StructType partitions, StructType required, Seq filters, Map options,
            Configuration conf) {  // by a class that executors know too
        return new ParquetFileFormat().buildReaderWithPartitionValues(
            spark, data, partitions, required, filters, options, conf);
    }
}
"""
_SOURCE = """
import java.io.FileReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Properties;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.delta.DeltaParquetFileFormat;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.*;

public class DefaultSource implements RelationProvider {
    public BaseRelation createRelation(SQLContext context, Map options) {
        Properties table = new Properties();
        try {
            FileReader reader = new FileReader(new Path((String) options.apply("path")).toUri().getPath() + "/table");
            table.load(reader);
            reader.close();
        } catch (IOException error) { throw new RuntimeException(error); }
        ArrayList files = new ArrayList();
        String[] named = table.getProperty("files").split(",");
        for (int i = 0; i < named.length; i++) files.add(new Path("file:" + named[i]));
        StructType schema = StructType.fromDDL(table.getProperty("columns"));
        String root = table.getProperty("root");
        Map base = (Map) Map$.MODULE$.empty().updated("basePath", root);
        TahoeLogFileIndex index = new TahoeLogFileIndex(
            context.sparkSession(), scala.jdk.javaapi.CollectionConverters.asScala(files).toList(), base, schema,
            new Path("file:" + root), Long.parseLong(table.getProperty("version")));
        return new HadoopFsRelation(index, index.partitionSchema(), schema, scala.Option.empty(),
                                    new DeltaParquetFileFormat(), (Map) Map$.MODULE$.empty(), context.sparkSession());
    }
}
"""
_CATALOG = """
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;

public class DeltaCatalog extends DelegatingCatalogExtension {
    public Table loadTable(Identifier table, String version) throws NoSuchTableException {
        return loadTable(Identifier.of(table.namespace(), table.name() + "_" + version));
    }
    public Table loadTable(Identifier table, long micros) throws NoSuchTableException {
        return loadTable(table, "0");
    }
}
"""
_SOURCES = {
    "org.apache.spark.sql.delta.files.TahoeLogFileIndex": _INDEX,
    "org.apache.spark.sql.delta.DeltaParquetFileFormat": _FORMAT,
    "delta.DefaultSource": _SOURCE,
    "stub.DeltaCatalog": _CATALOG,
}


@contextmanager
def delta_stub(spark: SparkSession, directory: Path) -> Iterator[None]:
    """Let this thread create and read tables of the format `delta`, as long as the `with` lasts.

    `t VERSION AS OF n` is the table `t_n`; every time is a time of version 0.
    """
    with java_classes(spark, directory, _SOURCES):
        spark.conf.set("spark.sql.catalog.spark_catalog", "stub.DeltaCatalog")
        try:
            yield
        finally:
            spark.conf.unset("spark.sql.catalog.spark_catalog")


def create_delta_table(
    spark: SparkSession, name: str, home: Path, root: Path, version: int, files: list[str], columns: str
) -> None:
    """A table of Spark's catalog that reads these files of the Delta table at `root`.

    Args:
        home: a directory for what the stand-in has to know. `columns`: the schema, as Spark's DDL has it.
    """
    place = home / name
    place.mkdir(parents=True)
    known = {"root": str(root), "version": str(version), "files": ",".join(files), "columns": columns}
    (place / "table").write_text("".join(f"{key}={value}\n" for key, value in known.items()))
    spark.sql(f"create table {name} using delta location '{place}'")
