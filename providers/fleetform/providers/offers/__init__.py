"""What clouds have for sale: catalogues of instance types with their prices, which need no account."""
