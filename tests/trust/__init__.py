"""A test for every threat of docs/security.md, and `mutations.py`, which takes the defences out and wants to see the tests fail."""
