"""All code that uses verl's names: the plug-in, rollout backends, servers, update phases and CPU support."""
