"""A worker that runs tasks for coordinators: it checks orders, keeps frames, and releases queries."""
