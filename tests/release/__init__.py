"""What is checked before a release: the packages themselves, instead of the source tree."""
