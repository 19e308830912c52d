"""Where capacity comes from."""
