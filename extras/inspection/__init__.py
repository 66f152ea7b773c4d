"""The settings that a server has, as a command shows them."""
