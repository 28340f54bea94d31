"""Where tasks run. `machine` decides, `coordinate` carries out; runners differ only in how they launch tasks."""
