"""The loops that act: hosts are reached, runs driven, plans carried out, the tree kept."""
