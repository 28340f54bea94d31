"""Ready-made feeds, one idea a module. Users import them from `sparkfusion.feeds`."""
