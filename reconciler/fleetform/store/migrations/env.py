"""
Where Alembic meets the ledger: it gets a connection and never opens one itself.

The connection comes in `config.attributes`, inside a transaction of its own, so that an upgrade
that fails leaves the ledger as it was. Without one it writes down the statements.
"""

from alembic import context

from fleetform.store.tables import metadata

if context.is_offline_mode():
    context.configure(
        dialect_name=context.config.attributes["dialect"],
        target_metadata=metadata,
        # Whoever carries the statements out does so in a transaction of its own.
        transactional_ddl=False,
    )
else:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        # SQLite alters a column by copying its table.
        render_as_batch=True,
    )
with context.begin_transaction():
    context.run_migrations()
