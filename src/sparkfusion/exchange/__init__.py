"""How rows cross a stage border: Arrow IPC frames in files, named in manifests, kept in a store; or a live channel.

Tasks in `worker` write here; `runner` reads manifests from here and binds them to the next stage's plan.
"""
