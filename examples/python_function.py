"""A Python function in SQL. It travels with the tasks and runs where they run, on whole Arrow arrays at a time."""

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import udf

import sparkfusion


def shout(names: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pc.utf8_upper(names), "!", "")


def main() -> None:
    with sparkfusion.connect(config={"sparkfusion.bytes_per_partition": 1}) as session:
        session.register_udf(udf(shout, [pa.string()], pa.string(), "stable", name="shout"))
        people = [pa.record_batch({"name": [f"person {i % 5}" for i in range(1000)]}) for _ in range(4)]
        session.register_record_batches("people", [[batch] for batch in people])
        session.sql("select shout(name) as loud, count(*) as n from people group by 1 order by 1").show()


if __name__ == "__main__":
    main()
