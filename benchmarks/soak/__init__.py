"""`make soak`: mixed queries in one session for a while. What its processes hold has to stay flat."""
