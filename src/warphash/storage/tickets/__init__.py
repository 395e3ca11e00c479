"""Tables with a ticket board."""
