"""Everything that can run a program: the protocol, this machine, a service."""
