"""Tests, a folder for each package; reference.py is the slow, plain second implementation of the rules."""
