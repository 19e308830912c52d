"""Where desired state comes from, and how a change of it is noticed."""
