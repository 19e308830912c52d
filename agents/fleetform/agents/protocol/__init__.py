"""What controller and agent say to each other: values, states and frames, and no I/O."""
