"""Programs that end in every way there is, and what their exit status has to be."""
