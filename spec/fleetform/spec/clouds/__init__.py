"""What this release knows of clouds: the names that documents use, and the prices of types."""
