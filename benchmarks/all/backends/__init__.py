"""How each engine is started and asked. Every module here runs in a process of its own (`serve.py`)."""
