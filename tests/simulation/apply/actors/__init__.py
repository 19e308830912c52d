"""Who acts in a simulation: a user who plans and applies, `serve`, and a user of overrides."""
