"""Who hosts the tasks. The machine decides, the driver carries out, a task host runs; only the host differs by runner."""
