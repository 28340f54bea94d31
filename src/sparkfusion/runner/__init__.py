"""Who hosts the tasks: the machine decides, the driver carries out, and only the task host differs by runner."""
