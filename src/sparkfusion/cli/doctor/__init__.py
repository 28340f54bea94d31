"""The checks of `sparkfusion doctor`, and their findings."""
