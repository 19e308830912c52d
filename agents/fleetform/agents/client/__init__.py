"""The controller's end of the agent's protocol, and the builder of the agent's archive."""
