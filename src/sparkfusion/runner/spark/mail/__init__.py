"""Messages of tasks that read feeds, carried by small files of the query's store instead of a connection."""
