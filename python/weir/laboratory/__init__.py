"""The laboratory's page with the native engine behind it: a server on loopback for one user."""
