"""The whole of apply under faults: trees edited, planned, entered, carried out, cut off, resumed."""
