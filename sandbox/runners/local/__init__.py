"""The runner on this machine: confined forks of clean interpreters."""
