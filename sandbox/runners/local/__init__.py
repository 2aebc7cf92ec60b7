"""The runner on this machine. Programs run in confined forks of clean interpreters."""
