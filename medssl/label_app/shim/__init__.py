"""A folder for PYTHONPATH: the `sitecustomize` in it is run at the start of every Python process below the server."""
