"""How a job is executed: one module a runtime. `process` needs nothing but the host."""
