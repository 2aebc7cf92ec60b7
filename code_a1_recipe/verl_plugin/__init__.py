"""Everything that touches verl's names: the plug-in, rollout backends, servers, and CPU support."""
