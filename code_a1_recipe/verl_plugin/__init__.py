"""The code around verl: the plug-in, rollout backends, servers, update phases and CPU support."""
