"""How rows get from one stage to the next: as Arrow IPC frames in files of a store, listed in manifests, or through a
channel in memory.

Tasks in `worker` write here; `runner` reads the manifests and puts the files into the next stage's plan.
"""
