"""How the cost of coordination grows: with files, partitions, stages and columns, and with the size of a cluster."""
