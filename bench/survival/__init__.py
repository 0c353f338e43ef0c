"""What `python -m bench survive` strikes, by what, and what it looks for afterwards."""
