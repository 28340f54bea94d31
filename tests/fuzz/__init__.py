"""Random tables and random SQL over them, for the differential tests."""
